"""The daemon, on a disk that fails as a file says.

    python broken_disk.py FILE python -m acphost serve …

While FILE holds a word no commit goes through: `readonly` as on a file system that takes no writes
any more, `SQLITE_IOERR_…` as on a disk that answers with an error, `stuck` on one that does not.
"""

import sqlite3
import sys
import time
from pathlib import Path
from typing import Any


def wear_out(file: Path) -> None:
    """Look at the file before each commit."""
    from acphost.journal import connection  # noqa: PLC0415  the path to it is known by now

    really = connection._transact  # noqa: SLF001  a seam that the product need not know of

    def transact(db: sqlite3.Connection, *args: Any) -> None:  # noqa: ANN401  whatever it takes
        while (word := file.read_text() if file.exists() else "") == "stuck":
            time.sleep(0.01)
        db.execute(f"PRAGMA query_only = {word == 'readonly':d}").close()
        if word.startswith("SQLITE_"):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = getattr(sqlite3, word)
            raise error
        really(db, *args)

    connection._transact = transact  # type: ignore[assignment]  # noqa: SLF001


def main() -> None:
    """Have the disk fail, and be what follows."""
    _, file, _, *rest = sys.argv
    sys.path[0] = str(Path(__file__).parents[2])  # the sources that this file belongs to
    from tests.support.becoming import become  # noqa: PLC0415  only now it can be found

    wear_out(Path(file))
    become(rest)


if __name__ == "__main__":
    main()
