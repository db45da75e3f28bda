"""The stdin of a fake agent: lines, with a tap that a script can turn off."""

import os
import select
import threading
from collections.abc import Iterator
from contextlib import suppress

_CHUNK = 256 * 1024


class Inlet:
    """Lines of a descriptor; another thread may stop the reading, or close it for good."""

    def __init__(self, fd: int, *, allowed: bool) -> None:
        self._fd = fd
        self._allowed = threading.Event()
        self._closing = False
        self._wake_read, self._wake_write = os.pipe()
        if allowed:
            self._allowed.set()

    def allow(self, allowed: bool) -> None:
        """Turn the tap on or off; what is off stays in the pipe."""
        if allowed:
            self._allowed.set()
        else:
            self._allowed.clear()
            self._wake()

    def close(self) -> None:
        """Close the descriptor; `lines` never ends after that."""
        self._closing = True
        self._wake()

    def _wake(self) -> None:
        os.write(self._wake_write, b".")

    def lines(self) -> Iterator[bytes]:
        """Every line without its newline, blank ones left out, until the end of the input."""
        tail = bytearray()
        while chunk := self._read():
            *complete, rest = chunk.split(b"\n")
            for piece in complete:
                line = bytes(tail + piece).rstrip(b"\r")
                tail.clear()
                self._allowed.wait()
                if line:
                    yield line
            tail += rest
        if tail:
            yield bytes(tail)

    def _read(self) -> bytes:
        while True:
            self._allowed.wait()
            if self._closing:
                with suppress(OSError):
                    os.close(self._fd)
                threading.Event().wait()
            ready, _, _ = select.select([self._fd, self._wake_read], [], [])
            if self._wake_read in ready:
                os.read(self._wake_read, 64)
            elif self._allowed.is_set():
                return os.read(self._fd, _CHUNK)
