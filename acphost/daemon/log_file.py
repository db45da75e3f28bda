"""Where the daemon's log is: in a file of its own that stays small, or wherever stderr leads."""

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from acphost.errors import StartError

#: When a file has grown so much it becomes the one before, which is kept beside it.
MAX_BYTES = 8 << 20


class LogFile:
    """A log that nobody else rotates: this file and its predecessor, FILE.1."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """Raises StartError if it cannot be written."""
        self._path = path
        self._max_bytes = max_bytes
        _shorten_stderr(max_bytes)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._open()
        except OSError as exc:
            raise StartError(f"cannot write the log {path}: {exc.strerror}") from exc

    def _open(self) -> TextIO:
        descriptor = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
        )
        file = os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")
        self._size = os.fstat(descriptor).st_size
        return file

    def write(self, text: str, /) -> None:
        """Add a line."""
        if self._size >= self._max_bytes:
            self._turn_over()
        self._size += len(text.encode(errors="replace"))
        self._file.write(text)

    def _turn_over(self) -> None:
        """Begin a new file; where that is not possible now the old one goes on for a while."""
        old, self._size = self._file, 0
        try:
            with suppress(FileNotFoundError):  # somebody has cleared it away
                os.replace(self._path, f"{self._path}.1")  # noqa: PTH105  a suffix behind the suffix
            self._file = self._open()
        except OSError:
            return
        old.close()

    def flush(self) -> None:
        """Hand it to the system."""
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def isatty(self) -> bool:
        """It is for programs."""
        return False


def _shorten_stderr(max_bytes: int) -> None:
    """Beside a log of our own, stderr gets what comes before: launchd keeps that for ever."""
    with suppress(OSError):
        found = os.fstat(2)
        if stat.S_ISREG(found.st_mode) and found.st_size >= max_bytes:
            os.ftruncate(2, 0)


def log_place(flags: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Where this process's log goes: `to` is file, journal, terminal or elsewhere."""
    named = flags.get("log")
    if named is not None:
        return {"to": "file", "path": str(Path(str(named)).absolute())}
    try:
        found = os.fstat(2)
    except OSError:
        return {"to": "elsewhere"}
    # Set by systemd; a child of a service that redirects its stderr still has the variable.
    if environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}":
        return {"to": "journal"}
    if stat.S_ISREG(found.st_mode):
        path = _path_of_stderr()
        return {"to": "file"} if path is None else {"to": "file", "path": path}
    return {"to": "terminal" if os.isatty(2) else "elsewhere"}


def _path_of_stderr() -> str | None:
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  the constant is there on macOS only

        return os.fsdecode(fcntl.fcntl(2, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        return os.readlink("/proc/self/fd/2")  # noqa: PTH115  text is wanted
    except OSError:
        return None
