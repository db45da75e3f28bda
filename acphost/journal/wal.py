"""The write-ahead log: how big it is, when it is emptied, and who is told when it is not.

SQLite begins it anew only when nobody reads from it. Our own reads are over in milliseconds; a
program that holds a read open from outside can only be told of.
"""

import math

import anyio

from acphost.ids import Clock
from acphost.journal.connection import WritingConnection
from acphost.journal.health import WalState
from acphost.journal.options import WriterOptions


class WalKeeper:
    """Keeps the log within its limit, or says that it cannot."""

    def __init__(self, connection: WritingConnection, options: WriterOptions, now: Clock) -> None:
        self._connection = connection
        self._options = options
        self._now = now
        self.state = WalState()

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

    async def empty(self) -> None:
        """Write it back and truncate it, if nobody reads from it."""
        with anyio.CancelScope(shield=True):
            size, is_done = await self._connection.empty_wal()
        at = self._now() if is_done else self.state.checkpointed_at
        self.state = WalState(
            size, at, is_behind=not is_done, is_starved=not is_done,
            is_over=size > self._options.wal_limit(),
        )  # fmt: skip
        self._tell()
