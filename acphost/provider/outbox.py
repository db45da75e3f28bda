"""What an agent is sent: lines in a row, written by one task, and bounded by what it reads."""

from collections import deque
from collections.abc import Callable

import anyio

from acphost.errors import ConnectionLostError
from acphost.transport.child import Child

#: With so many bytes unread an agent is not sent what it only asks for, until it reads;
MUCH_UNREAD = 4 << 20
#: with so many it is taken for one that will not.
MAX_UNREAD = 64 << 20
#: How long an agent that closed its stdin may say its last words on stdout.
LAST_WORDS = 1.0


class Outbox:
    """The lines for one agent process; putting one in never waits."""

    def __init__(self, child: Child, on_refused: Callable[[str], None]) -> None:
        """`on_refused` is told why, where the agent does not read any more."""
        self._child = child
        self._on_refused = on_refused
        #: Not written yet, the first of them in part, and of which request each is.
        self._lines: deque[tuple[bytes, int | None]] = deque()
        #: Bytes of them, those that are being written included.
        self.unread = 0
        self._wake = anyio.Event()
        self._relieved = anyio.Event()
        self._is_closed = False

    @property
    def unheard(self) -> frozenset[int]:
        """Requests that were not written to their end: the agent cannot have acted on them."""
        return frozenset(request_id for _, request_id in self._lines if request_id is not None)

    def put(self, line: bytes, request_id: int | None = None) -> None:
        """Have a line written in its turn; nothing once the agent is gone."""
        if not self._is_closed:
            self._lines.append((line, request_id))
            self.unread += len(line)
            self._wake.set()

    def put_reply(self, line: bytes) -> None:
        """As `put`: many are asked for by one who reads none, and must not fill the memory."""
        if self._lines and self.unread >= MAX_UNREAD:
            self._on_refused("asks for more than it reads")
        else:
            self.put(line)

    async def relief(self) -> None:
        """Wait until the agent has read most of what it was sent, or will never."""
        while self.unread >= MUCH_UNREAD and not self._is_closed:
            self._relieved = anyio.Event()
            await self._relieved.wait()

    def close(self) -> None:
        """The agent is gone: what is left will not be written."""
        self._is_closed = True
        self._lines.clear()
        self._relieved.set()

    async def write_all(self) -> None:
        """Write until cancelled, or until nobody reads."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._lines:
                line, _ = self._lines[0]
                try:
                    await self._child.write(line)
                except ConnectionLostError:
                    # Its stdout may still hold the last words. But nobody who cannot be told
                    # anything is waited for: what is written now would never be answered.
                    await anyio.sleep(LAST_WORDS)
                    self._on_refused("does not read its stdin any more")
                    return
                self._lines.popleft()
                self.unread -= len(line)
                if self.unread < MUCH_UNREAD:
                    self._relieved.set()
