"""A store that is full, locked or killed: nothing is lost, and it goes on by itself."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from acphost.errors import (
    StorageError,
    StorageFullError,
)
from acphost.journal.connection import writing
from acphost.journal.event import Draft
from acphost.journal.feed import Feed
from acphost.journal.health import StorageHealth, StorageState
from acphost.journal.recovery import Heads
from acphost.journal.store import Store, open_store
from acphost.journal.writer import SessionLog, Writer, WriterOptions
from tests.support.patience import NEVER, PATIENCE
from tests.support.stores import Gate, Listener, all_events, chunks, events_of, now, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


IMPATIENT = WriterOptions(patience=0.05, first_retry=0.01, last_retry=0.02, busy_timeout=0.01)


@asynccontextmanager
async def small_disk(
    path: Path, options: WriterOptions = IMPATIENT
) -> AsyncGenerator[tuple[Writer, Feed, Callable[[int], Awaitable[None]]]]:
    """A writer, and what sets how many pages its file may have."""
    async with open_store(path, now=now):
        pass
    feed = Feed()
    async with writing(path, busy_timeout=0.05) as connection, anyio.create_task_group() as tasks:

        async def limit(pages: int) -> None:
            await connection.call(
                lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone()
            )

        writer = Writer(connection, feed, Heads(), now=now, options=options)
        await tasks.start(writer.run)
        with anyio.fail_after(PATIENCE):
            yield writer, feed, limit
        tasks.cancel_scope.cancel()


async def test_a_full_store_is_told_waited_for_and_loses_nothing(path: Path) -> None:
    health: list[StorageHealth] = []
    listener = Listener()
    async with small_disk(path, replace(IMPATIENT, on_health=health.append)) as (
        writer,
        feed,
        limit,
    ):
        feed.attach(listener, None)
        log = SessionLog(1, "sess_1")
        await writer.durable(writer.append(log, chunks(2), at=1))
        await limit(1)

        ticket = writer.append(log, chunks(50, size=1_000), at=2)
        with pytest.raises(StorageFullError):
            await writer.durable(ticket)
        writer.append(log, chunks(3), at=3)
        with pytest.raises(StorageFullError):
            await writer.durable(ticket)
        assert writer.health.state is StorageState.FULL
        assert (writer.head, len(listener.rows)) == (2, 2)

        await limit(100_000)
        await writer.settled(ticket)
        await writer.drain()

        assert [row.seq for row in listener.rows] == list(range(1, 56))
        assert [change.state for change in health] == [StorageState.FULL, StorageState.OK]
        assert (health[0].since, health[1].since) == (now(), None)

    async with opened(path) as store:
        assert await all_events(store.reader) == [
            row._replace(session_id=None) for row in listener.rows
        ]


async def test_a_store_that_was_full_when_the_daemon_died_opens_again(path: Path) -> None:
    async with small_disk(path) as (writer, _, limit):
        log = SessionLog(1, "sess_1")
        await writer.durable(writer.append(log, chunks(2), at=1))
        await limit(1)
        with pytest.raises(StorageFullError):
            await writer.durable(writer.append(log, chunks(50, size=1_000), at=2))

    async with opened(path) as store:
        assert store.writer.head == 2


@contextmanager
def lock_of_another_program(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_a_short_lock_by_another_program_is_nobodys_business(path: Path) -> None:
    health: list[StorageHealth] = []
    async with opened(
        path,
        WriterOptions(
            busy_timeout=0.01, first_retry=0.01, lock_grace=NEVER, on_health=health.append
        ),
    ) as store:
        log = SessionLog(1, "sess_1")
        with lock_of_another_program(path):
            ticket = store.writer.append(log, chunks(4), at=1)
            with anyio.move_on_after(0.2):
                await store.writer.durable(ticket)
            assert store.writer.head == 0
        await store.writer.durable(ticket)

        assert (store.writer.head, health) == (4, [])


async def test_a_long_lock_is_told_and_passes_by_itself(path: Path) -> None:
    health: list[StorageHealth] = []
    options = replace(IMPATIENT, lock_grace=0.05, on_health=health.append)
    async with opened(path, options) as store:
        log = SessionLog(1, "sess_1")
        with lock_of_another_program(path):
            tickets = [store.writer.append(log, chunks(4), at=1) for _ in range(3)]
            with pytest.raises(StorageError):
                await store.writer.durable(tickets[0])
            tickets.append(store.writer.append(log, chunks(4), at=1))
        await store.writer.settled(tickets[-1])

        assert [change.state for change in health] == [StorageState.ERROR, StorageState.OK]
        rows = await events_of(store.reader, 1)
        assert [(row.offset, row.seq) for row in rows] == [(n, n) for n in range(1, 17)]


async def test_health_may_be_journaled_where_it_is_told(path: Path) -> None:
    """The daemon writes storage.degraded and storage.recovered from the hook."""
    stores: list[Store] = []
    failures = iter([StorageError("no"), StorageError("no"), StorageFullError("full")])

    def fail() -> None:
        for failure in failures:
            raise failure

    def journal(health: StorageHealth) -> None:
        stores[0].writer.append(None, [Draft(f"storage.{health.state}", b"{}")], at=1)

    async with opened(
        path, WriterOptions(before_commit=fail, on_health=journal, first_retry=0.01)
    ) as store:
        stores.append(store)
        await store.writer.settled(store.writer.append(None, [Draft("host.started", b"{}")], at=1))
        await store.writer.drain()

        rows = await all_events(store.reader)
        assert [row.kind for row in rows] == [
            "host.started", "storage.error", "storage.full", "storage.ok",
        ]  # fmt: skip


async def test_a_waiter_that_goes_away_takes_nothing_with_it(path: Path) -> None:
    gate = Gate()
    async with opened(path, WriterOptions(before_commit=gate)) as store:
        log = SessionLog(1, "sess_1")
        async with anyio.create_task_group() as waiters:
            waiters.start_soon(store.writer.durable, store.writer.append(log, chunks(2), at=1))
            await gate.reached()
            waiters.start_soon(store.writer.durable, store.writer.append(log, chunks(2), at=1))
            waiters.start_soon(store.writer.drain)
            await anyio.wait_all_tasks_blocked()
            waiters.cancel_scope.cancel()
        gate.open()
        await store.writer.durable(store.writer.append(log, chunks(1), at=1))

        rows = await events_of(store.reader, 1)
        assert [row.seq for row in rows] == [1, 2, 3, 4, 5]


async def test_ending_the_writer_waits_for_its_transaction(path: Path) -> None:
    gate, listener = Gate(), Listener()
    async with open_store(path, now=now, options=WriterOptions(before_commit=gate)) as store:
        store.feed.attach(listener, None)
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.writer.run)
            store.writer.append(SessionLog(1, "sess_1"), chunks(3), at=1)
            await gate.reached()
            tasks.cancel_scope.cancel()
            gate.open()

        assert (store.writer.head, len(listener.rows)) == (3, 3)
        with closing(sqlite3.connect(path, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE").close()


async def test_room_comes_back_with_the_commit(path: Path) -> None:
    gate = Gate()
    async with opened(path, WriterOptions(before_commit=gate, budget_bytes=1_000)) as store:
        store.writer.append(SessionLog(1, "sess_1"), chunks(1, size=1_000), at=1)
        await gate.reached()
        assert not store.writer.has_room

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.writer.room)
            await anyio.wait_all_tasks_blocked()
            gate.open()

        assert (store.writer.has_room, store.writer.uncommitted_bytes) == (True, 0)


KILLED = """
import anyio, sys
from pathlib import Path
from acphost.journal.event import Draft
from acphost.journal.statements import save_session
from acphost.journal.store import open_store
from acphost.journal.writer import SessionLog, WriterOptions
from tests.support.stores import session_row

async def main():
    options = WriterOptions(batch_bytes=4_000)
    async with open_store(Path(sys.argv[1]), now=lambda: 1, options=options) as store:
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.writer.run)
            log = SessionLog(1, "sess_1")
            while True:
                row = session_row(title=str(log.seq + 3))
                drafts = [Draft("message.delta", b"1")] * 3
                ticket = store.writer.append(log, drafts, [save_session(row)], at=1)
                if log.seq % 30 == 0:
                    await store.writer.durable(ticket)
                    print(log.seq, flush=True)

anyio.run(main)
"""


def endless_writer(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)


@pytest.mark.parametrize("acknowledged", [1, 7, 20])
async def test_what_was_acknowledged_survives_a_kill(path: Path, acknowledged: int) -> None:
    with endless_writer(path) as child:
        assert child.stdout is not None
        said = [int(child.stdout.readline()) for _ in range(acknowledged)]
        child.send_signal(signal.SIGKILL)
        said.extend(int(line) for line in child.stdout if line.endswith(b"\n"))

    async with opened(path) as store:
        rows = await events_of(store.reader, 1)
        session = await store.reader.session("sess_1")

        assert session is not None
        assert [(row.offset, row.seq) for row in rows] == [
            (number, number) for number in range(1, len(rows) + 1)
        ]
        assert len(rows) >= said[-1]
        # Units are whole: three events, and the row that tells of them.
        assert (len(rows) % 3, session.title) == (0, str(len(rows)))
