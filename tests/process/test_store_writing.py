"""What is appended is committed in groups, delivered, and read back."""

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from acphost.errors import StorageFullError
from acphost.journal.event import Draft, EventRow, RunRef
from acphost.journal.feed import Batch
from acphost.journal.health import StorageState, WalState
from acphost.journal.migrations import migrate
from acphost.journal.recovery import Heads
from acphost.journal.rows import BindingRow, DecisionRow, ProcessRow, RunRow, SessionRow
from acphost.journal.statements import (
    save_binding,
    save_decision,
    save_process,
    save_prompt,
    save_run,
    save_session,
    stored_columns,
)
from acphost.journal.writer import SessionLog, WriterOptions
from tests.support.stores import (
    Gate,
    Listener,
    all_events,
    chunks,
    events_of,
    now,
    opened,
    run_row,
    session_row,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_what_is_appended_is_read_back_with_its_text_ids(path: Path) -> None:
    async with opened(path) as store:
        log, run = SessionLog(1, "sess_1"), RunRef(1, "run_1")
        store.writer.append(
            log,
            [Draft("session.created", b"{}", host=b'{"a":1}', origin=b'{"b":2}')],
            [save_session(session_row()), save_run(run_row(1)), save_prompt(1, b"[1]")],
            at=5,
        )
        for place in range(40):
            store.writer.append_event(log, "message.delta", b"%d" % place, at=6, run=run, flags=2)
        await store.writer.durable(store.writer.append(None, [Draft("host.started", b"{}")], at=7))

        rows = await all_events(store.reader)

        assert rows == [
            EventRow(1, 1, 1, None, "session.created", "mnote", 0, 0, b"{}", b'{"a":1}',
                     b'{"b":2}', 5, "sess_1", None),
            *(
                EventRow(2 + place, 1, 2 + place, 1, "message.delta", "mnote", 0, 2,
                         b"%d" % place, None, None, 6, "sess_1", "run_1")
                for place in range(40)
            ),
            EventRow(42, None, None, None, "host.started", "mnote", 0, 0, b"{}", None, None, 7),
        ]  # fmt: skip
        assert await store.reader.prompt(1) == b"[1]"
        assert store.writer.head == 42


async def test_a_store_goes_on_where_it_stopped(path: Path) -> None:
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        store.writer.append(log, chunks(3), [save_session(session_row())], at=1)
        await store.writer.drain()
        store_id = store.store_id

    async with opened(path) as store:
        heads = await store.reader.session_heads()
        log = SessionLog(1, "sess_1", heads[1])
        store.writer.append(log, chunks(1), at=2)
        await store.writer.drain()

        assert (store.store_id, heads) == (store_id, {1: 3})
        assert await store.reader.head_seq(1) == 4
        assert await store.reader.heads() == Heads(4, 1, 0)
        assert store.writer.next_session_key() == 2


@pytest.mark.parametrize(
    ("payload", "host"),
    [(b"", None), (b'"\x00\xff\xfe"', b"{}"), ("\u2028é".encode(), None), (b"x" * 3_000_000, None)],
    ids=["empty", "broken", "text", "large"],
)
async def test_payload_bytes_come_back_exactly(
    path: Path, payload: bytes, host: bytes | None
) -> None:
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        for _ in range(9):
            store.writer.append_event(log, "evidence", payload, at=1, host=host)
        await store.writer.drain()

        rows = await events_of(store.reader, 1)

        assert [(row.payload, row.host) for row in rows] == [(payload, host)] * 9


async def test_rows_of_every_table_come_back_as_they_were(path: Path) -> None:
    session = session_row(pinned=True, title="t", settings=b'{"x":1}')
    run = run_row(1, status="running", is_empty=True, hold_after=True, target=b"{}", first_seq=3)
    decision = DecisionRow(
        permission_id="perm_1", kind="permission", session_key=1, session_id="sess_1", run_key=1,
        options=b"[1]", by=b"{}", created_at=1,
    )  # fmt: skip
    binding = BindingRow(binding_id="b1", session_key=1, mode="native_live", created_at=1)
    process = ProcessRow(launch_id="l1", agent_id="hermes", pid=4, birth="12", started_at=1)
    async with opened(path) as store:
        store.writer.record(
            [
                save_session(session),
                save_run(run),
                save_decision(decision),
                save_binding(binding),
                save_process(process),
            ]
        )
        await store.writer.drain()
        reader = store.reader

        assert await reader.session("sess_1") == await reader.session_by_key(1) == session
        assert await reader.run("run_1") == run
        assert await reader.decision("perm_1") == decision
        assert await reader.decisions(session_key=1, status="pending") == ([decision], None)
        assert await reader.binding(1) == binding
        assert await reader.bindings(1) == [binding]
        assert await reader.processes() == [process]
        assert await reader.session("sess_2") is None


@pytest.mark.parametrize(
    ("row", "table"),
    [
        (SessionRow, "sessions"),
        (RunRow, "runs"),
        (DecisionRow, "decisions"),
        (BindingRow, "bindings"),
        (ProcessRow, "processes"),
    ],
)
def test_the_fields_of_a_row_are_the_columns_of_its_table(row: type, table: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, at=1)
        columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]

    assert list(stored_columns(row)) == columns
    assert set(columns) <= {field.name for field in fields(row)}


async def test_while_one_commit_runs_the_next_batch_gathers(path: Path) -> None:
    gate, listener = Gate(), Listener()
    async with opened(path, WriterOptions(before_commit=gate)) as store:
        log = SessionLog(1, "sess_1")
        store.feed.attach(listener, 1)
        store.writer.append(log, chunks(1), at=1)
        await gate.reached()
        for _ in range(100):
            store.writer.append(log, chunks(2), at=1)
        assert (store.writer.head, listener.batches) == (0, [])

        gate.open()
        await store.writer.drain()

        assert gate.passed == 2
        assert [len(rows) for rows in listener.batches] == [1, 200]
        assert [row.seq for row in listener.rows] == list(range(1, 202))


async def test_a_unit_is_never_split(path: Path) -> None:
    listener = Listener()
    async with opened(path, WriterOptions(batch_bytes=1_000)) as store:
        log = SessionLog(1, "sess_1")
        store.feed.attach(listener, 1)
        for _ in range(20):
            store.writer.append(log, chunks(7, size=100), at=1)
        await store.writer.drain()

        sizes = [len(rows) for rows in listener.batches]
        assert sum(sizes) == 140
        assert len(sizes) > 1
        assert [size % 7 for size in sizes] == [0] * len(sizes)


async def test_a_unit_that_fails_leaves_no_part_of_itself(path: Path) -> None:
    """A mistake in a statement is the program's, and ends the writer; the file stays whole."""

    async def make_mistake() -> None:
        async with opened(path) as store:
            log = SessionLog(1, "sess_1")
            store.writer.append(log, chunks(3), [("INSERT INTO nowhere VALUES (1)", ())], at=1)
            await store.writer.drain()

    with pytest.raises(ExceptionGroup) as caught:
        await make_mistake()
    assert caught.group_contains(sqlite3.OperationalError)

    async with opened(path) as store:
        assert await all_events(store.reader) == []
        assert store.writer.head == 0


async def test_subscribers_get_exactly_the_committed_rows_in_order(path: Path) -> None:
    first, second, everything = Listener(), Listener(), Listener()
    async with opened(path, WriterOptions(batch_bytes=2_000)) as store:
        logs = [SessionLog(1, "sess_1"), SessionLog(2, "sess_2")]
        store.writer.record([save_session(session_row(1)), save_session(session_row(2))])
        store.feed.attach(first, 1)
        store.feed.attach(second, 2)
        store.feed.attach(everything, None)
        for place in range(300):
            log = logs[place // 7 % 2]
            store.writer.append_event(log, "message.delta", b"%d" % place, at=place // 50)
            if place % 40 == 0:
                store.writer.append(None, [Draft("agent.state", b"{}")], at=1)
            if place % 90 == 0:
                await anyio.lowlevel.checkpoint()
        await store.writer.drain()

        committed = await all_events(store.reader)
        assert len(committed) == 308
        assert everything.rows == committed
        assert first.rows == [row for row in committed if row.session_key == 1]
        assert second.rows == [row for row in committed if row.session_key == 2]


async def test_what_was_delivered_is_on_disk_for_any_other_reader(path: Path) -> None:
    seen: list[int] = []

    class Witness:
        def deliver(self, batch: Batch) -> None:
            with closing(sqlite3.connect(path)) as other:
                (head,) = other.execute("SELECT max(offset) FROM events").fetchone()
            seen.append(head - batch.last_offset)

    async with opened(path) as store:
        store.feed.attach(Witness(), None)
        log = SessionLog(1, "sess_1")
        for _ in range(5):
            await store.writer.durable(store.writer.append(log, chunks(3), at=1))

    assert seen == [0] * 5


class Wal:
    """Sees each attempt to empty the write-ahead log."""

    def __init__(self) -> None:
        self.state = WalState()
        self._emptied, self._starved = anyio.Event(), anyio.Event()

    def __call__(self, state: WalState) -> None:
        self.state = state
        (self._starved if state.is_starved else self._emptied).set()

    async def emptied(self) -> WalState:
        await self._emptied.wait()
        return self.state

    async def starved(self) -> WalState:
        await self._starved.wait()
        return self.state

    def forget(self) -> None:
        self._emptied = anyio.Event()


async def test_a_quiet_store_empties_its_wal(path: Path) -> None:
    wal = Wal()
    async with opened(path, WriterOptions(idle_checkpoint=0.01, on_wal=wal)) as store:
        store.writer.append(SessionLog(1, "sess_1"), chunks(200, size=1_000), at=1)

        assert await wal.emptied() == WalState(0, now(), is_behind=False, is_starved=False)
        assert store.writer.wal == wal.state


async def test_a_reader_that_does_not_end_is_noticed_and_outlived(path: Path) -> None:
    wal = Wal()
    async with opened(path, WriterOptions(idle_checkpoint=0.01, on_wal=wal)) as store:
        log = SessionLog(1, "sess_1")
        await store.writer.durable(store.writer.append(log, chunks(10), at=1))
        await wal.emptied()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN").close()
            other.execute("SELECT count(*) FROM events").fetchone()
            store.writer.append(log, chunks(200, size=1_000), at=1)
            assert (await wal.starved()).bytes > 200_000
            wal.forget()
            other.execute("ROLLBACK").close()

        assert (await wal.emptied()).bytes == 0


async def test_a_log_over_its_limit_is_told_once_in_each_direction(path: Path) -> None:
    """A program outside holds a read open: the log grows, which is said; let go, it shrinks."""
    told: list[tuple[bool, bool]] = []
    over, within = anyio.Event(), anyio.Event()

    def on_wal(state: WalState) -> None:
        told.append((state.is_over, state.bytes > 500_000))
        (over if state.is_over else within).set()

    options = WriterOptions(idle_checkpoint=0.01, on_wal=on_wal, wal_limit=lambda: 500_000)
    async with opened(path, options) as store:
        log = SessionLog(1, "sess_1")
        await store.writer.durable(store.writer.append(log, chunks(1), at=1))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN").close()
            other.execute("SELECT count(*) FROM events").fetchone()
            store.writer.append(log, chunks(800, size=1_000), at=1)
            await over.wait()
            assert store.writer.wal.is_over
            within = anyio.Event()
            other.execute("ROLLBACK").close()
        await within.wait()

        assert store.writer.wal.bytes == 0
        assert all(is_over is is_big for is_over, is_big in told)


async def test_our_own_readers_never_let_the_log_grow(path: Path) -> None:
    """Every place of the pool is in use all the time, while megabytes are written."""
    seen: list[int] = []
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        store.writer.append(log, chunks(300, size=4_000), at=1)
        done = anyio.Event()

        async def read() -> None:
            while not done.is_set():
                await store.reader.events_after_seq(1, 0, limit=200, max_bytes=1 << 20)

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(read)
            for _ in range(100):
                await store.writer.durable(store.writer.append(log, chunks(100, size=4_000), at=1))
                seen.append(store.writer.wal.bytes)
            done.set()

        assert sum(seen) > 0
        assert max(seen) < 32_000_000


async def test_whoever_asks_for_room_has_what_was_said_written_once(path: Path) -> None:
    """The transaction is begun ahead of the task that writes, and the task goes on with it."""
    async with opened(path) as store:
        log, listener = SessionLog(1, "sess_1"), Listener()
        await store.writer.settled(
            store.writer.append(log, [Draft("session.created", b"{}")],
                                [save_session(session_row())], at=1)
        )  # fmt: skip
        await anyio.lowlevel.checkpoint()
        store.feed.attach(listener, 1)
        for seq in range(2, 8):
            store.writer.append_event(log, "message.delta", b"%d" % seq, at=1)
            # There is room: nothing is awaited, and the task has not had its turn.
            await store.writer.room()
        await store.writer.drain()

        assert [row.seq for rows in listener.batches for row in rows] == [2, 3, 4, 5, 6, 7]
        assert [row.seq for row in await events_of(store.reader, 1)] == [1, 2, 3, 4, 5, 6, 7]


async def test_what_was_begun_ahead_and_failed_is_tried_again(path: Path) -> None:
    failures: list[Exception] = []

    def fail() -> None:
        if failures:
            raise failures.pop()

    async with opened(path, WriterOptions(before_commit=fail, first_retry=0.001)) as store:
        log = SessionLog(1, "sess_1")
        await store.writer.settled(
            store.writer.append(log, [Draft("session.created", b"{}")],
                                [save_session(session_row())], at=1)
        )  # fmt: skip
        await anyio.lowlevel.checkpoint()
        failures += [StorageFullError("the disk is full"), StorageFullError("the disk is full")]
        store.writer.append_event(log, "message.delta", b"2", at=1)
        await store.writer.room()
        store.writer.append_event(log, "message.delta", b"3", at=1)
        await store.writer.drain()

        assert failures == []
        assert [row.seq for row in await events_of(store.reader, 1)] == [1, 2, 3]
        # That it works again is noted a moment behind the commit that shows it.
        while store.writer.health.state is not StorageState.OK:
            await anyio.lowlevel.checkpoint()
