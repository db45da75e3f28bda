"""Bytes in, lines out: split on 0x0A only, no I/O, each byte copied a bounded number of times."""

from acphost.errors import FrameTooLongError

#: How much of an over-long line is kept to say which one it was.
_HEAD = 256


class Oversized(bytes):
    """The beginning of a line that was over the limit; the rest of it is thrown away."""


class LineFramer:
    """Cuts a byte stream into lines; how the bytes arrive never changes the lines.

    A line over `max_line` bytes breaks the framer: nothing is returned after the lines before it,
    and `error` says why. With `discard` it is reported as `Oversized` as soon as it is over the
    limit, and the next line is read as if nothing had been.
    """

    def __init__(self, max_line: int, *, discard: bool = False) -> None:
        #: Why nothing more will come; look at it behind the lines of each `feed`.
        self.error: FrameTooLongError | None = None
        self._max_line = max_line
        self._discard = discard
        # Only ever appended to: a line of many chunks costs its length, not the square of it.
        self._tail = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Every line that `chunk` completes: without its end, blank ones left out.

        Raises FrameTooLongError if a line is over the limit and none came before it in `chunk`.
        """
        if self.error is not None:
            raise self.error
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and (self._tail or self._skipping):
            lines[:1] = self._completed(lines[0])
            if b"\r" not in chunk:
                # Of that line alone the end may have come earlier than the newline.
                lines[:1] = map(_without_return, lines[:1])
        if len(chunk) > self._max_line:
            lines = self._within_limit(lines)
        if rest and self.error is None:
            lines += self._begun(rest)
        if b"\r" in chunk:
            lines = [_without_return(line) for line in lines]
        lines = list(filter(bytes.strip, lines))
        if self.error is not None and not lines:
            raise self.error
        return lines

    def allow(self, max_line: int) -> None:
        """From the next bytes on lines may be so long."""
        self._max_line = max_line

    def finish(self) -> list[bytes]:
        """The last line of a stream that ended without a newline: one or none."""
        line = _without_return(self._taken())
        return [line] if line.strip() else []

    def _completed(self, end: bytes) -> list[bytes]:
        """The line that earlier chunks began."""
        if self._skipping:
            self._skipping = False
            return []
        lines = self._begun(end)
        if lines or self.error is not None:
            self._skipping = False
            return lines
        return [self._taken()]

    def _taken(self) -> bytes:
        line = bytes(self._tail)
        self._tail.clear()
        return line

    def _begun(self, piece: bytes) -> list[bytes]:
        """Keep `piece` of a line whose end has not come; returns what its length gave rise to."""
        if self._skipping:
            return []
        if len(self._tail) + len(piece) <= self._max_line:
            self._tail += piece
            return []
        head = bytes(self._tail[:_HEAD]) + piece[:_HEAD]
        # A fresh buffer gives the memory back at once.
        self._tail = bytearray()
        self._skipping = True
        return self._too_long(head)

    def _within_limit(self, lines: list[bytes]) -> list[bytes]:
        kept: list[bytes] = []
        for line in lines:
            if self.error is not None:
                break
            kept += [line] if len(line) <= self._max_line else self._too_long(line)
        return kept

    def _too_long(self, line: bytes) -> list[bytes]:
        if self._discard:
            return [line if isinstance(line, Oversized) else Oversized(line[:_HEAD])]
        self.error = FrameTooLongError(f"line longer than {self._max_line} bytes")
        return []


def _without_return(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") and not isinstance(line, Oversized) else line
