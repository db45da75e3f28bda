"""The write-ahead log: how big it is, when it is emptied, and who is told when it is not.

SQLite begins it anew only when nobody reads from it. Our own reads are over in milliseconds, but
where many are under way there is always one: from some size on the writer waits for those that have
begun. A program that holds a read open from outside can only be told of.
"""

import math

import anyio

from acphost.ids import Clock, ticks_ms
from acphost.journal.connection import WritingConnection
from acphost.journal.health import WalState
from acphost.journal.options import WriterOptions

#: The part of its limit from which on it is emptied between two commits,
_BIG = 4
#: within so many milliseconds, in which nothing is committed; if that fails,
_PATIENCE_MS = 250
#: not again for so many.
_PAUSE_MS = 5_000


class WalKeeper:
    """Keeps the log within its limit, or says that it cannot."""

    def __init__(self, connection: WritingConnection, options: WriterOptions, now: Clock) -> None:
        self._connection = connection
        self._options = options
        self._now = now
        self.state = WalState()
        self._not_before = 0

    def grown(self, size: int) -> None:
        """Something was committed."""
        self._set(self.state._replace(bytes=size, is_behind=True))

    def _set(self, state: WalState) -> None:
        was_over = self.state.is_over
        self.state = state = state._replace(is_over=state.bytes > self._options.wal_limit())
        if state.is_over is not was_over:
            self._tell()

    def _tell(self) -> None:
        if self._options.on_wal is not None:
            self._options.on_wal(self.state)

    @property
    def pause_before_emptying(self) -> float:
        """After so much quiet it is to be emptied."""
        return self._options.idle_checkpoint if self.state.is_behind else math.inf

    @property
    def is_big(self) -> bool:
        """Whether it is time to wait for those who read from it."""
        is_big = self.state.bytes > self._options.wal_limit() // _BIG
        return is_big and ticks_ms() >= self._not_before

    async def wait_and_empty(self) -> None:
        """Write it back and truncate it when those who read from it now are done with that."""
        await self.empty(patience_ms=_PATIENCE_MS)
        if self.state.is_starved:
            self._not_before = ticks_ms() + _PAUSE_MS

    async def empty(self, *, patience_ms: int = 0) -> None:
        """Write it back and truncate it, if nobody reads from it."""
        with anyio.CancelScope(shield=True):
            size, is_done = await self._connection.empty_wal(patience_ms)
        at = self._now() if is_done else self.state.checkpointed_at
        self.state = WalState(
            size, at, is_behind=not is_done, is_starved=not is_done,
            is_over=size > self._options.wal_limit(),
        )  # fmt: skip
        self._tell()
