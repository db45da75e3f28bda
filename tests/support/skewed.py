"""The daemon, on a machine whose clock is set while it runs.

    python skewed.py FILE python -m acphost serve …

FILE holds how many seconds its time of day is off, as text; it may change at any moment. What
measures how long something takes is left alone, as it is by the system.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path


def set_clock(offset: Callable[[], float]) -> None:
    """Have the time of day be off by so many seconds."""
    really = time.time_ns
    time.time_ns = lambda: really() + int(offset() * 1e9)
    time.time = lambda: time.time_ns() / 1e9


def main() -> None:
    """Set the clock, and be what follows."""
    _, offset, _, *rest = sys.argv
    sys.path[0] = str(Path(__file__).parents[2])  # the sources that this file belongs to
    from tests.support.becoming import become  # noqa: PLC0415  only now it can be found

    set_clock(lambda: float(Path(offset).read_text()))
    become(rest)


if __name__ == "__main__":
    main()
