"""The daemon, on a system that lets it make no control groups.

python uncontained.py python -m acphost serve …
"""

import sys
from pathlib import Path


def main() -> None:
    """Take the groups away, and be what follows."""
    _, _, *rest = sys.argv
    sys.path[0] = str(Path(__file__).parents[2])  # the sources that this file belongs to
    from acphost.transport import cgroups  # noqa: PLC0415  only now they can be found
    from tests.support.becoming import become  # noqa: PLC0415  as above

    cgroups.home = lambda: None  # type: ignore[assignment]
    become(rest)


if __name__ == "__main__":
    main()
