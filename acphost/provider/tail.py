"""The last lines of a stream, in bounded memory."""

from collections import deque

MAX_LINES = 50
MAX_LINE_BYTES = 1000


class Tail:
    """Keeps the last `MAX_LINES` lines, each cut at `MAX_LINE_BYTES`."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=MAX_LINES)
        self._open = b""
        self.total_lines = 0
        self.total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(data)
        # Only the end can survive: do not split megabytes to throw them away.
        *complete, rest = data.split(b"\n")
        self.total_lines += len(complete)
        if complete:
            complete[0] = self._open + complete[0]
            self._open = b""
            for line in complete[-MAX_LINES:]:
                self._lines.append(line[:MAX_LINE_BYTES])
        self._open = (self._open + rest)[:MAX_LINE_BYTES]

    def lines(self) -> list[str]:
        """What is kept, oldest first, an unfinished line included."""
        kept = [*self._lines, self._open] if self._open else list(self._lines)
        return [line.decode("utf-8", "replace").rstrip("\r") for line in kept]

    def text(self) -> str:
        """`lines`, joined."""
        return "\n".join(self.lines())
