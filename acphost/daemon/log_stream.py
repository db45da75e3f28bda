"""stderr as a log that perhaps nobody reads: a terminal that was stopped, a pipe that is full."""

import os
import select
import stat
import sys

from acphost.log import LogStream

#: So much a pipe takes in one piece, or says that it has no room.
_PIECE = select.PIPE_BUF


class Unhurried:
    """Writes what is taken at once; the rest is left out, and how much that was is told later."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_terminal = os.isatty(descriptor)
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)
        self._lost = 0

    def write(self, text: str, /) -> None:
        """Add a line. Raises OSError if nobody can read it any more."""
        if self._lost and self._has_room():
            told, self._lost = self._lost, 0
            self._put(f"... {told} lines of the log were left out: nobody read them\n")
        self._put(text)

    def _put(self, text: str) -> None:
        data = text.encode(errors="replace")
        for start in range(0, len(data), _PIECE):
            if not self._has_room():
                self._lost += 1
                return
            os.write(self._descriptor, data[start : start + _PIECE])

    def _has_room(self) -> bool:
        return bool(self._room.poll(0))

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return self._is_terminal


def stderr() -> LogStream:
    """The log where none is named: a file as it is, anything else without waiting for it."""
    try:
        is_file = stat.S_ISREG(os.fstat(2).st_mode)
    except OSError:  # it was closed
        return sys.stderr
    return sys.stderr if is_file else Unhurried(2)
