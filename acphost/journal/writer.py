"""The one pen of the journal: numbers at append, commits in groups, publishes what is committed."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Sequence
from typing import NewType

import anyio
from anyio.abc import TaskStatus

from acphost.errors import StorageError, StorageFullError
from acphost.ids import Clock
from acphost.journal.connection import WritingConnection
from acphost.journal.event import EVENT_BYTES, Draft, RunRef, Stretch
from acphost.journal.feed import Feed
from acphost.journal.health import StorageHealth, Trouble, WalState, Watch, trouble
from acphost.journal.options import WriterOptions
from acphost.journal.recovery import Heads
from acphost.journal.statements import Statement
from acphost.journal.wal import WalKeeper

__all__ = ["SessionLog", "Ticket", "Writer", "WriterOptions"]

#: Names the transaction a unit is part of; a later unit never has a smaller one.
Ticket = NewType("Ticket", int)

#: In place of the numbering of a session, for what the host itself says.
_HOST = (None, None, None)


class SessionLog:
    """The numbering of one session's events; `seq` is the last one given."""

    __slots__ = ("key", "seq", "session_id")

    def __init__(self, key: int, session_id: str, seq: int = 0) -> None:
        self.key = key
        self.session_id = session_id
        self.seq = seq


class _Group:
    """Units that will be one transaction."""

    __slots__ = ("begun", "size", "statements", "stretches", "ticket")

    def __init__(self, ticket: int) -> None:
        #: The transaction, if it was begun ahead of the task that sees it through.
        self.begun: asyncio.Future[int] | None = None
        self.ticket = ticket
        self.stretches: list[Stretch] = []
        self.statements: list[Statement] = []
        self.size = 0

    @property
    def is_empty(self) -> bool:
        return not self.stretches and not self.statements


class Writer:
    """Takes events and rows from anyone on the loop; `run` is the only one that writes them."""

    def __init__(
        self,
        connection: WritingConnection,
        feed: Feed,
        heads: Heads,
        *,
        now: Clock,
        options: WriterOptions,
    ) -> None:
        self._connection = connection
        self._feed = feed
        self._now = now
        self._options = options
        self._offset, self._session_key, self._run_key = heads
        self._head = heads.offset
        self._gathering = _Group(1)
        #: The stretch that the next event may lengthen.
        self._last: Stretch | None = None
        self._batch_bytes = options.batch_bytes
        self._full: deque[_Group] = deque()
        #: Bytes of the groups that no longer gather and are not committed yet.
        self._held_bytes = 0
        self._committed = 0
        self._is_resting = False
        self._is_quiet = False
        #: Has been put in line to wake the task.
        self._call: asyncio.Handle | None = None
        self._wake = anyio.Event()
        self._watch = Watch(options.patience, options.on_health, now)
        self._wal = WalKeeper(connection, options, now)

    # -- what others ask --------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The last committed offset."""
        return self._head

    @property
    def health(self) -> StorageHealth:
        """Whether commits go through."""
        return self._watch.health

    @property
    def wal(self) -> WalState:
        """Size of the write-ahead log, and when it was last emptied."""
        return self._wal.state

    @property
    def uncommitted_bytes(self) -> int:
        """What is appended and not yet on disk."""
        return self._held_bytes + self._gathering.size

    @property
    def has_room(self) -> bool:
        """Whether the byte budget allows more; nothing is refused, whoever reads a pipe asks."""
        return self._held_bytes + self._gathering.size < self._options.budget_bytes

    async def room(self) -> None:
        """Return once there is room. Whoever asks has said for now what there was to say."""
        if self._is_resting and not self._full and not self._gathering.is_empty:
            # The task that writes may sleep on: it is wanted only when this is over. Waking it now
            # would keep the worker waiting, for the two share one interpreter.
            self._close_group()
            self._full[0].begun = self._begin(self._full[0])
            if self._call is not None:
                self._call.cancel()
                self._call = None
        while not self.has_room:
            await self._watch.turn()

    def next_session_key(self) -> int:
        """A key no session has had."""
        self._session_key += 1
        return self._session_key

    def next_run_key(self) -> int:
        """A key no run has had."""
        self._run_key += 1
        return self._run_key

    # -- appending --------------------------------------------------------------------------------

    def append_event(
        self,
        log: SessionLog,
        kind: str,
        payload: bytes,
        *,
        at: int,
        run: RunRef | None = None,
        source: str = "mnote",
        host: bytes | None = None,
        origin: bytes | None = None,
        flags: int = 0,
    ) -> int:
        """Append one event that stands for itself; returns its seq."""
        return self.append_alike(
            log, kind, [payload], at=at, run=run, source=source, host=host, origin=origin,
            flags=flags,
        )  # fmt: skip

    def append_alike(
        self,
        log: SessionLog,
        kind: str,
        payloads: list[bytes],
        *,
        at: int,
        run: RunRef | None = None,
        source: str = "mnote",
        host: bytes | None = None,
        origin: bytes | None = None,
        flags: int = 0,
    ) -> int:
        """Append events that differ in nothing else, each for itself; returns the last seq.

        This is the hot path, and `payloads` becomes the writer's own.
        """
        first, seq = self._offset + 1, log.seq + 1
        self._offset += len(payloads)
        log.seq += len(payloads)
        group = self._gathering
        last = self._last
        if (
            last is not None
            and last.kind is kind
            and last.at == at
            and last.run is run
            and last.session_key == log.key
            and last.flags == flags
            and last.host is host
            and last.source is source
            and last.origin is origin
        ):
            last.payloads.extend(payloads)
        else:
            self._last = Stretch(
                first, log.key, log.session_id, seq, at, kind, payloads, run, source,
                host, origin, flags,
            )  # fmt: skip
            group.stretches.append(self._last)
        group.size += sum(map(len, payloads)) + len(payloads) * EVENT_BYTES
        if group.size >= self._batch_bytes:
            self._close_group()
        self._rouse()
        return log.seq

    def append(
        self,
        log: SessionLog | None,
        drafts: Sequence[Draft],
        statements: Sequence[Statement] = (),
        *,
        at: int,
    ) -> Ticket:
        """Append one unit, all or none: events of a session (None: of the host) and rows."""
        group = self._gathering
        for draft in drafts:
            self._offset += 1
            if log is not None:
                log.seq += 1
            key, session_id, seq = (log.key, log.session_id, log.seq) if log else _HOST
            kind, payload, run, source, host, origin, flags = draft
            stretch = Stretch(
                self._offset, key, session_id, seq, at, kind, [payload], run, source,
                host, origin, flags,
            )  # fmt: skip
            self._last = stretch
            group.stretches.append(stretch)
            group.size += len(payload) + EVENT_BYTES
        return self.record(statements)

    def record(self, statements: Sequence[Statement]) -> Ticket:
        """Append a unit of rows only."""
        group = self._gathering
        group.statements.extend(statements)
        for _, parameters in statements:
            group.size += EVENT_BYTES + sum(
                len(value) for value in parameters if isinstance(value, bytes | str)
            )
        if group.is_empty:
            return Ticket(group.ticket - 1)
        if group.size >= self._batch_bytes:
            self._close_group()
        self._rouse()
        return Ticket(group.ticket)

    def _close_group(self) -> None:
        group = self._gathering
        self._held_bytes += group.size
        self._full.append(group)
        self._gathering = _Group(group.ticket + 1)
        self._last = None

    def _rouse(self) -> None:
        if self._is_resting and self._call is None:
            self._call = asyncio.get_running_loop().call_soon(self._wake.set)

    # -- waiting ----------------------------------------------------------------------------------

    async def durable(self, ticket: Ticket) -> None:
        """Return once the unit is on disk.

        Raises StorageFullError or StorageError when the store has been degraded for longer than
        the patience; the unit stays in line all the same.
        """
        # Who comes late to a degraded store waits a little too: asking again is never a busy loop.
        least = anyio.current_time() + self._options.first_retry
        while ticket > self._committed:
            left = max(self._watch.patience_ends, least) - anyio.current_time()
            if left <= 0:
                raise self._watch.health.error()
            with anyio.move_on_after(left):
                await self._watch.turn()

    async def settled(self, ticket: Ticket) -> None:
        """Return once the unit is on disk, however long that takes."""
        while ticket > self._committed:
            await self._watch.turn()

    async def drain(self) -> None:
        """Return once all that was appended before the call is on disk."""
        await self.settled(self.record(()))

    async def shorten(self, pages: int) -> bool:
        """Give so many free pages back to the disk; False if the store is in trouble."""
        with anyio.CancelScope(shield=True):
            size, is_done = await self._connection.shorten(pages)
        self._wal.grown(size)
        self._rouse()
        return is_done

    # -- the one writer task ----------------------------------------------------------------------

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Commit and publish until cancelled; `drain` first to leave nothing behind."""
        task_status.started()
        while True:
            if not self._full:
                if self._gathering.is_empty:
                    await self._rest()
                    continue
                self._close_group()
            await self._commit(self._full[0])
            if self._wal.is_big:
                await self._wal.wait_and_empty()

    async def _rest(self) -> None:
        """Until there is something to write; a long rest is used to empty the WAL."""
        self._wake = anyio.Event()
        self._is_resting, self._is_quiet = True, False
        # There is a rest between any two events of a slow stream: this costs less than a scope.
        quiet = self._wal.pause_before_emptying
        alarm = asyncio.get_running_loop().call_later(quiet, self._note_quiet)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()
            self._is_resting, self._call = False, None
        if self._is_quiet and not self._full and self._gathering.is_empty:
            await self._wal.empty()

    def _note_quiet(self) -> None:
        self._is_quiet = True
        self._wake.set()

    async def _commit(self, group: _Group) -> None:
        """Write one group, trying for as long as it takes."""
        problem = await self._attempt(group)
        if problem is not None:
            await self._insist(group, problem)
        if self._committed < group.ticket:
            raise RuntimeError("a commit was not published; the log tells why")
        self._watch.recover()

    async def _insist(self, group: _Group, problem: Trouble | None) -> None:
        """Try again what went wrong at first."""
        delay, first_failure = self._options.first_retry, anyio.current_time()
        while problem is not None:
            waited = anyio.current_time() - first_failure
            if not problem.is_busy or waited >= self._options.lock_grace:
                self._watch.degrade(problem)
            await anyio.sleep(delay)
            delay = min(2 * delay, self._options.last_retry)
            problem = await self._attempt(group)

    def _publish(self) -> None:
        """The group that was being written is on disk: let everybody see it."""
        group = self._full[0]
        if group.stretches:
            self._head = group.stretches[-1].last_offset
        self._feed.publish_stretches(group.stretches)
        self._full.popleft()
        self._held_bytes -= group.size
        self._committed = group.ticket
        self._watch.take_turn()

    def _begin(self, group: _Group) -> "asyncio.Future[int]":
        begun = self._connection.transact(
            group.stretches,
            group.statements,
            before_commit=self._options.before_commit,
            on_commit=self._publish,
        )
        begun.add_done_callback(self._note_end)
        return begun

    def _note_end(self, begun: "asyncio.Future[int]") -> None:
        """Have the task look whether there is more to do, or something to do again."""
        if not begun.cancelled() and begun.exception() is None:
            self._wal.grown(begun.result())
        self._wake.set()

    async def _attempt(self, group: _Group) -> Trouble | None:
        """One transaction; cancellation waits for its end, so that what is committed is known."""
        begun, group.begun = group.begun or self._begin(group), None
        with anyio.CancelScope(shield=True):
            try:
                await begun
            except (sqlite3.Error, StorageError, StorageFullError) as exc:
                problem = trouble(exc)
                if problem is None:
                    raise
                return problem
        return None
