"""The write side of one connection: whole lines, in order, from one place."""

from collections import deque

import anyio

from acphost.errors import ConnectionLostError
from acphost.transport.unix import SocketStream

#: Bytes that may wait for a client before subscriptions stop filling its buffer and read the store
#: at its pace instead.
HIGH_WATER = 1 << 20

#: Bytes that may wait before no more requests are taken. So much higher than the other mark that a
#: client that is behind with its events can still ask, to stop a run for instance.
FLOOD = 4 * HIGH_WATER


class Outbox:
    """Lines on their way to a client.

    `put` never blocks: answers are bounded by the requests in flight, and subscriptions ask
    `has_room` first.
    """

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        #: Lines, the first perhaps only the rest of one: a view of each would cost twice as much.
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0
        self._work = anyio.Event()
        self._drained = anyio.Event()
        self.is_broken = False

    @property
    def has_room(self) -> bool:
        """Whether a subscription may add a batch now."""
        return self._size < HIGH_WATER

    @property
    def is_empty(self) -> bool:
        """Whether everything has been handed to the kernel."""
        return not self._size

    async def room(self) -> None:
        """Wait until `has_room`, or until nothing can be sent any more."""
        while not self.has_room and not self.is_broken:
            await self._drained.wait()

    @property
    def is_flooded(self) -> bool:
        """Whether a client asks for more than it reads; events alone never come to that."""
        return self._size >= FLOOD

    async def relief(self) -> None:
        """Wait until the client has read what it asked for, or nothing can be sent any more."""
        while self.is_flooded and not self.is_broken:
            await self._drained.wait()

    async def flushed(self) -> None:
        """Wait until everything has been handed to the kernel, or cannot be any more."""
        while self._size and not self.is_broken:
            await self._drained.wait()

    def put(self, line: bytes) -> None:
        """Send a line, at once if the kernel takes it."""
        if self.is_broken:
            return
        rest: bytes | memoryview = line
        if not self._size:
            # The common case saves a wake-up of the writing task: that is most of its latency.
            try:
                sent = self._stream.try_send(line)
            except ConnectionLostError:
                self._break()
                return
            if sent:
                rest = memoryview(line)[sent:]
        if rest:
            self._waiting.append(rest)
            self._size += len(rest)
            self._work.set()

    async def run(self) -> None:
        """Write what `put` could not, until the client is gone."""
        try:
            while True:
                await self._work.wait()
                self._work = anyio.Event()
                while self._waiting:
                    await self._stream.writable()
                    self._push()
        except ConnectionLostError:
            self._break()

    def _push(self) -> None:
        while self._waiting:
            rest = self._waiting[0]
            sent = self._stream.try_send(rest)
            self._size -= sent
            if sent < len(rest):
                self._waiting[0] = memoryview(rest)[sent:]
                break
            self._waiting.popleft()
        if self.has_room:
            self._signal_drained()

    def _signal_drained(self) -> None:
        drained, self._drained = self._drained, anyio.Event()
        drained.set()

    def _break(self) -> None:
        self.is_broken = True
        self._waiting.clear()
        self._size = 0
        self._signal_drained()
