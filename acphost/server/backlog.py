"""What was committed while a client was not ready for it: no I/O, bounded in bytes."""

from collections import deque

from acphost.journal.feed import Batch

#: Of payload that one subscription may keep. Batches are shared by all who missed them.
BACKLOG_BYTES = 4 << 20


class Backlog:
    """The batches that follow a cursor, or the latest of them; the store has the others.

    While it is `whole`, nothing is missing between the cursor and the end of the journal, and the
    store need not be asked. It stops being so when it overflows, and is so again as soon as what
    was read from the store reaches the batches that are left.
    """

    def __init__(self, limit: int = BACKLOG_BYTES) -> None:
        self._limit = limit
        self._batches: deque[Batch] = deque()
        self._size = 0
        #: A cursor begins somewhere in the store.
        self.is_whole = False
        self._has_lost = False

    def put(self, batch: Batch) -> None:
        """Add what was committed next; the oldest batches are given up for it if need be."""
        self._batches.append(batch)
        self._size += batch.size
        while self._size > self._limit:
            self._drop()
            self.is_whole = False
            self._has_lost = True

    def take(self) -> Batch | None:
        """The next batch of a whole backlog; None if there is nothing left to catch up with."""
        if not self._batches:
            return None
        batch = self._batches[0]
        self._drop()
        return batch

    def begin_read(self) -> int:
        """To be called before the store is read; what it returns is for `nothing_read`."""
        self._has_lost = False
        return len(self._batches)

    def has_read(self, position: int) -> None:
        """Everything up to `position` was read from the store."""
        while self._batches and self._batches[0].last_position <= position:
            self._drop()
        if self._batches and self._batches[0].first_position <= position + 1:
            self.is_whole = True

    def nothing_read(self, begun: int) -> None:
        """The store had nothing more for the cursor than what has come since `begin_read`."""
        if not self._has_lost:
            for _ in range(begun):
                self._drop()
            self.is_whole = True

    def _drop(self) -> None:
        self._size -= self._batches.popleft().size
