"""The daemon, with a point at which it kills itself.

    python lethal.py PATTERN COUNT NOTE python -m acphost serve …

Everything it does to files of the store has a text: `sql <statement>` before a statement that is
no SELECT, `committed` between a commit and what it makes visible, `copied` between two steps of a
backup, `file <event> <paths>` before it creates, renames, links or removes a file. From the first
text that PATTERN finds on they are counted; before the COUNT-th the process kills itself, as if
by kill -9. NOTE is a file that then holds the text; it is not there if the point was not reached.
"""

import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

#: What Python tells of before it happens, among much else.
_FILE_EVENTS = {"os.rename", "os.link", "os.remove"}


class Point:
    """Counts down to the end."""

    def __init__(self, pattern: str, count: int, note: str) -> None:
        self._find = re.compile(pattern, re.DOTALL).search
        self._left = count
        self._note = note
        self._is_armed = False
        self._lock = Lock()

    def reach(self, text: str) -> None:
        """About to do this."""
        if self._note in text:
            return
        with self._lock:
            self._is_armed = self._is_armed or self._find(text) is not None
            if not self._is_armed:
                return
            self._left -= 1
            if self._left == 0:
                note = os.open(self._note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.write(note, text[:200].encode())
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()

    def traced(self, sql: str) -> None:
        """What SQLite is about to carry out."""
        text = " ".join(sql[:200].split())
        if not text.upper().startswith(("SELECT", "--")):
            self.reach(f"sql {text}")

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What Python is about to do."""
        if event in _FILE_EVENTS:
            self.reach(f"file {event} {arguments[0]} {arguments[1]}")
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT:
            self.reach(f"file create {arguments[0]}")


def arm(point: Point) -> None:
    """Have everything tell the point of itself."""

    class Connection(sqlite3.Connection):
        """Tells of its statements."""

        def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  as sqlite3's
            super().__init__(*args, **options)
            self.set_trace_callback(point.traced)

    really_connect = sqlite3.connect

    def connect(*args: Any, **options: Any) -> Any:  # noqa: ANN401  as above
        kind = {} if "mode=ro" in str(args[0]) else {"factory": Connection}
        return really_connect(*args, **{**kind, **options})

    sqlite3.connect = connect
    sys.addaudithook(point.audited)

    from acphost.journal import connection as journal  # noqa: PLC0415  after `connect` is in place

    really_transact = journal._transact  # noqa: SLF001  a seam that the product need not know of

    def transact(*args: Any) -> None:  # noqa: ANN401  whatever it takes
        really_transact(*args)
        point.reach("committed")

    journal._transact = transact  # type: ignore[assignment]  # noqa: SLF001

    from acphost.journal import backup  # noqa: PLC0415  as above

    really_copy = backup._copy  # noqa: SLF001  as above

    def copy(store: Path, new: Path, on_step: Callable[[int, int], None] | None) -> None:
        def stepped(done: int, total: int) -> None:
            point.reach(f"copied {done} of {total}")
            if on_step is not None:
                on_step(done, total)

        really_copy(store, new, stepped)

    backup._copy = copy  # noqa: SLF001  as above


def main() -> int:
    """Arm the point, and be the daemon."""
    pattern, count, note, *command = sys.argv[1:]
    arm(Point(pattern, int(count), note))
    from acphost.cli.main import main as acphost  # noqa: PLC0415  as in `arm`

    # After `python -m acphost` come its own words.
    sys.argv = ["acphost", *command[3:]]
    return acphost()


if __name__ == "__main__":
    sys.exit(main())
