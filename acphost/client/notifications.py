"""What the daemon tells a client by itself, apart from the events of subscriptions."""

from collections import deque

import anyio

from acphost.wire.jsonrpc import Notification

#: Nothing in them is worth stopping the socket for: the oldest are dropped, and counted.
KEPT = 256


class Notifications:
    """An async iterator that never ends while its client lives."""

    def __init__(self) -> None:
        #: How many were lost because nobody took them in time.
        self.dropped = 0
        self._waiting: deque[Notification] = deque(maxlen=KEPT)
        self._came = anyio.Event()

    def put(self, notification: Notification) -> None:
        """Keep one for whoever iterates."""
        self.dropped += len(self._waiting) == KEPT
        self._waiting.append(notification)
        self._came.set()

    def __aiter__(self) -> "Notifications":
        return self

    async def __anext__(self) -> Notification:
        while not self._waiting:
            self._came = anyio.Event()
            await self._came.wait()
        return self._waiting.popleft()
