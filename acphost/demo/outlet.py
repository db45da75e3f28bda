"""The two files a fake agent writes while it plays: its stdout and its record."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from acphost.demo import plain_json


def json_line(message: object, eol: bytes = b"\n") -> bytes:
    """A message as it travels: UTF-8, nothing escaped that JSON does not force."""
    return plain_json.encode(message) + eol


class Outlet:
    """Whole writes to a descriptor, one writer at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._open = True

    def write(self, data: bytes) -> None:
        """Write everything; once the reader is gone, or after `close`, do nothing."""
        view = memoryview(data)
        with self._lock:
            while view and self._open:
                try:
                    view = view[os.write(self._fd, view) :]
                except BrokenPipeError:
                    self._open = False

    def close(self) -> None:
        """Close the descriptor for good."""
        with self._lock:
            self._open = False
            with suppress(OSError):
                os.close(self._fd)

    def freeze(self) -> None:
        """Let nobody write any more; the caller's thread never comes back."""
        self._lock.acquire()
        threading.Event().wait()


class Record:
    """JSON lines about one process, appended whole, so that several processes may share a file."""

    def __init__(self, path: str | None) -> None:
        self._fd = (
            None
            if path is None
            else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        )
        self._pid = os.getpid()

    def write(self, **facts: object) -> None:
        """Append one line `{"pid": …, …facts}`; it is in the file when this returns."""
        if self._fd is not None:
            os.write(self._fd, json_line({"pid": self._pid, **facts}))

    def read_line(self, line: bytes, message: object) -> None:
        """Note a line that was read: as the message it is, or as text where it is none."""
        if isinstance(message, Mapping):
            self.write(read=message)
        else:
            self.write(garbage=line.decode(errors="replace"))


def write_atomically(path: str | Path, data: bytes) -> None:
    """Create or replace a file so that nobody ever sees half of it."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    draft.write_bytes(data)
    draft.replace(target)
