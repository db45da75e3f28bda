"""When ended runs are sealed: a while after their end, one segment at a time, never in a hurry."""

import math
import time
from collections import deque
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from acphost.errors import StorageError
from acphost.ids import Clock
from acphost.journal.feed import Batch
from acphost.journal.pool import ReadPool, read_pool
from acphost.journal.seal import Ended, read_sealable, read_unsealed
from acphost.journal.segment_cache import SegmentCache
from acphost.journal.space import STEP
from acphost.journal.store import Store
from acphost.log import get_logger
from acphost.wire.event import TERMINAL_KINDS

log = get_logger()

#: After a segment that took so long, this many times as long belongs to others.
_LEISURE = 3.0
_BUSY_TIMEOUT = 1.0


class Sealer:
    """Knows which sessions have events of ended runs, and seals them when they have settled."""

    def __init__(self, store: Store, *, settle: Callable[[], float], now: Clock) -> None:
        """`settle` is how many seconds a run must be over; it is asked anew each time."""
        self._store = store
        self._settle = settle
        self._now = now
        self._due: deque[Ended] = deque()
        self._wake = anyio.Event()

    def deliver(self, batch: Batch) -> None:
        """Take note of runs that ended; called by the feed."""
        for stretch in batch.stretches:
            if stretch.kind in TERMINAL_KINDS and stretch.session_key is not None:
                self._due.append(Ended(stretch.session_key, stretch.last_seq or 0, stretch.at))
                self._wake.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Seal until cancelled, first what earlier daemons left."""
        # Attached first: a run that ends while the store is looked through is not missed.
        self._store.feed.attach(self, None)
        try:
            task_status.started()
            async with read_pool(self._store.path, busy_timeout=_BUSY_TIMEOUT, size=1) as pool:
                await self._look(pool)
                while True:
                    await self._wait()
                    await self._work(pool)
        finally:
            self._store.feed.detach(self, None)

    async def _look(self, pool: ReadPool) -> None:
        try:
            left = await pool.call(read_unsealed)
        except StorageError as exc:
            log.warning("not_sealed", reason=str(exc))
        else:
            self._due.extendleft(sorted(left, key=lambda each: each.ended_at, reverse=True))

    async def _work(self, pool: ReadPool) -> None:
        """Seal all that is due now, then give room back."""
        sealed = 0
        for ended in self._take():
            try:
                sealed += await self._seal(pool, ended)
            except StorageError as exc:
                # Its events stay as they are, and readable as far as they are.
                log.warning("not_sealed", session=ended.session_key, reason=str(exc))
            except Exception:  # border: packing can wait, the daemon cannot
                log.exception("sealing_failed", session=ended.session_key)
        if sealed:
            await give_back(self._store)

    def _take(self) -> list[Ended]:
        """What is due: a session once, up to the latest end that has settled.

        One by one they would be more work than a busy daemon gets done, and wait for ever.
        """
        latest: dict[int, Ended] = {}
        while self._seconds_left() <= 0:
            ended = self._due.popleft()
            known = latest.get(ended.session_key)
            if known is None or known.upto_seq < ended.upto_seq:
                latest[ended.session_key] = ended
        return list(latest.values())

    async def _wait(self) -> None:
        """Return when something is due."""
        while (left := self._seconds_left()) > 0:
            self._wake = anyio.Event()
            with anyio.move_on_after(left):
                await self._wake.wait()

    def _seconds_left(self) -> float:
        if not self._due:
            return math.inf
        now = self._now()
        if self._due[0].ended_at > now:
            # The clock was put back: nobody waits for it to come there again.
            self._due = deque(each._replace(ended_at=min(each.ended_at, now)) for each in self._due)
        return (self._due[0].ended_at - now) / 1000 + self._settle()

    async def _seal(self, pool: ReadPool, ended: Ended) -> int:
        """Seal a session up to the end of that run; returns how many segments were written."""
        cache, segments = SegmentCache(), 0
        key, upto = ended.session_key, ended.upto_seq
        while True:
            # A store that is full, or busy, has better to do than this.
            await self._store.writer.drain()
            started = time.monotonic()
            sealed = await pool.call(lambda connection: read_sealable(connection, cache, key, upto))
            if sealed is None:
                return segments
            await self._store.writer.settled(self._store.writer.record(sealed.statements()))
            segments += 1
            await anyio.sleep(_LEISURE * (time.monotonic() - started))


async def give_back(store: Store) -> None:
    """Shrink the file by what sealing or deleting has freed, a little at a time."""
    try:
        while (await store.reader.space()).can_shrink:
            await store.writer.drain()
            started = time.monotonic()
            if not await store.writer.shorten(STEP):
                return
            await anyio.sleep(_LEISURE * (time.monotonic() - started))
    except StorageError as exc:
        log.warning("not_shortened", reason=str(exc))
