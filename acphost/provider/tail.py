"""The last lines of a stream, in bounded memory."""

from collections import deque
from collections.abc import Callable

MAX_LINES = 50
MAX_LINE_BYTES = 1000
#: So much more of a line is kept until it is read: what is hidden then must not be cut before.
_MARGIN = 512


class Tail:
    """Keeps the last `MAX_LINES` lines, each cut at `MAX_LINE_BYTES`, without what `mask` hides."""

    def __init__(self, mask: Callable[[str], str] = str) -> None:
        self._mask = mask
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
                self._lines.append(line[: MAX_LINE_BYTES + _MARGIN])
        self._open = (self._open + rest)[: MAX_LINE_BYTES + _MARGIN]

    def lines(self) -> list[str]:
        """What is kept, oldest first, an unfinished line included."""
        kept = [*self._lines, self._open] if self._open else list(self._lines)
        return [self._shown(line) for line in kept]

    def _shown(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        masked = self._mask(text)
        if masked == text:
            text = line[:MAX_LINE_BYTES].decode("utf-8", "replace")
        else:
            text = masked[:MAX_LINE_BYTES]
        return text.rstrip("\r")

    def text(self) -> str:
        """`lines`, joined."""
        return "\n".join(self.lines())
