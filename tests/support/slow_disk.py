"""The daemon, on a disk that takes its time over every commit.

    python slow_disk.py SECONDS FILE python -m acphost serve …

FILE grows by a byte with each of them.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any


def slow_down(seconds: float, count: str) -> None:
    """Have each commit take so much longer."""
    from acphost.journal import connection  # noqa: PLC0415  the path to it is known by now

    really = connection._transact  # noqa: SLF001  a seam that the product need not know of
    tally = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def transact(*args: Any) -> None:  # noqa: ANN401  whatever it takes
        really(*args)
        time.sleep(seconds)
        os.write(tally, b".")

    connection._transact = transact  # type: ignore[assignment]  # noqa: SLF001


def main() -> None:
    """Slow the disk down, and be what follows."""
    _, seconds, count, _, *rest = sys.argv
    sys.path[0] = str(Path(__file__).parents[2])  # the sources that this file belongs to
    from tests.support.becoming import become  # noqa: PLC0415  only now it can be found

    slow_down(float(seconds), count)
    become(rest)


if __name__ == "__main__":
    main()
