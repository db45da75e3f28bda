"""What a command has said, as far as it is kept: its end, cut at a character. Pure."""


class OutputTail:
    """The last `limit` bytes of a stream of UTF-8 text."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        #: Something at the front was dropped.
        self.truncated = False
        #: All that came, kept or not.
        self.total = 0

    def feed(self, data: bytes) -> None:
        """More of it."""
        self.total += len(data)
        self._kept += data
        # Now and then is enough; dropping a few bytes at each call would move all the others.
        if len(self._kept) > 2 * self._limit + 4096:
            self._cut()

    def text(self, *, whole: bool, limit: int | None = None) -> str:
        """What is kept, or less of it; the begin of a last character only once that is `whole`."""
        self._cut()
        data = bytes(self._kept)
        text = (data if whole else data[: _complete(data)]).decode(errors="replace")
        most = self._limit if limit is None else min(limit, self._limit)
        encoded = text.encode()
        if len(encoded) > most:  # a replacement may be longer than what it replaces
            return encoded[_start(encoded, len(encoded) - most) :].decode()
        return text

    def _cut(self) -> None:
        surplus = len(self._kept) - self._limit
        if surplus > 0:
            del self._kept[: _start(self._kept, surplus)]
            self.truncated = True


def _start(data: bytes | bytearray, surplus: int) -> int:
    """Where the first character begins that lies behind the surplus."""
    start = surplus
    # No character has more than three bytes that only continue it; others are no text anyway.
    while start < len(data) and start < surplus + 3 and data[start] & 0xC0 == 0x80:
        start += 1
    return start


def _complete(data: bytes) -> int:
    """How much of the data are whole characters, if it is text."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return len(data) - back if needed > back else len(data)
    return len(data)
