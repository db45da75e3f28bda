"""When runs are sealed, and which sessions retention deletes, on a real store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream

from acphost.archive.retention import Cause, Keeper, Rules
from acphost.archive.seal import Sealer
from acphost.ids import Clock
from acphost.journal.event import Draft, RunRef
from acphost.journal.rows import RunRow
from acphost.journal.statements import forget_session, save_run, save_session
from acphost.journal.store import Store
from acphost.journal.writer import SessionLog
from tests.support.patience import PATIENCE
from tests.support.stores import now, opened, run_row, session_row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def write_run(store: Store, log: SessionLog, run: RunRow, *, ended_at: int) -> None:
    """A whole run, from its first event to its last."""
    ref = RunRef(run.key, run.run_id)
    drafts = [Draft("run.created", b"{}", ref), Draft("message.delta", b'"a"', ref),
              Draft("run.completed", b"{}", ref)]  # fmt: skip
    run.status, run.ended_at, run.terminal_seq = "completed", ended_at, log.seq + 3
    store.writer.append(log, drafts, [save_run(run)], at=ended_at)


class Watcher:
    """Waits for sealing as a reader of the figures would."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def sealed(self, count: int) -> None:
        with anyio.fail_after(PATIENCE):
            while True:
                if (await self._store.reader.space()).sealed_events >= count:
                    return
                await anyio.sleep(0.01)


@asynccontextmanager
async def sealing(store: Store, settle: float = 0.0, clock: Clock = now) -> AsyncGenerator[Watcher]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(Sealer(store, settle=lambda: settle, now=clock).run)
        yield Watcher(store)
        tasks.cancel_scope.cancel()


async def test_a_run_is_sealed_when_it_has_ended_and_what_follows_is_not(path: Path) -> None:
    async with opened(path) as store, sealing(store) as watcher:
        log = SessionLog(1, "sess_1")
        store.writer.append(log, [Draft("session.created", b"{}")], [save_session(session_row())],
                            at=1)  # fmt: skip
        write_run(store, log, run_row(1), ended_at=now())
        store.writer.append(log, [Draft("evidence", b"{}", RunRef(1, "run_1"))], at=1)

        await watcher.sealed(4)
        assert (await store.reader.space()).sealed_events == 4

        write_run(store, log, run_row(2), ended_at=now())
        await watcher.sealed(8)
        assert await store.reader.head_seq(1) == 8


async def test_what_an_earlier_daemon_left_is_sealed_too(path: Path) -> None:
    async with opened(path) as store:
        for key in (1, 2):
            log = SessionLog(key, f"sess_{key}")
            write_run(store, log, run_row(key, key), ended_at=5)
        store.writer.append(SessionLog(3, "sess_3"), [Draft("evidence", b"{}")], at=1)
        await store.writer.drain()
        async with sealing(store) as watcher:
            await watcher.sealed(6)

        assert (await store.reader.space()).segments == 2


async def test_a_run_that_has_just_ended_is_left_to_settle(path: Path) -> None:
    async with opened(path) as store:
        old, young = SessionLog(1, "sess_1"), SessionLog(2, "sess_2")
        write_run(store, young, run_row(1, 2), ended_at=now())
        write_run(store, old, run_row(2, 1), ended_at=now() - 61_000)
        await store.writer.drain()
        async with sealing(store, settle=60.0) as watcher:
            await watcher.sealed(3)

        assert (await store.reader.events_after_seq(2, 0, limit=9, max_bytes=99))[0].seq == 1
        assert (await store.reader.space()).sealed_events == 3


async def test_many_ends_of_one_session_are_one_piece_of_work(path: Path) -> None:
    """A daemon whose runs end faster than they could be packed one by one does not fall behind."""
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        async with sealing(store) as watcher:
            for key in range(1, 201):
                write_run(store, log, run_row(key), ended_at=now())
            await store.writer.drain()
            before = store.writer.record([save_session(session_row())])
            await watcher.sealed(600)
            after = store.writer.record([save_session(session_row())])

        assert (await store.reader.space()).segments == 1
        # Each piece of sealing is a transaction of its own.
        assert after - before < 20


async def test_a_clock_that_was_put_back_keeps_nothing_from_being_sealed(path: Path) -> None:
    """Runs that ended in the future, as it seems, are sealed when they have settled from now on."""
    moment, asked = now(), anyio.Event()

    def clock() -> int:
        asked.set()
        return moment

    async with opened(path) as store, sealing(store, settle=0.1, clock=clock) as watcher:
        for key in (1, 2):
            log = SessionLog(key, f"sess_{key}")
            write_run(store, log, run_row(key, key), ended_at=moment + 3_600_000)
        await store.writer.drain()
        await asked.wait()
        assert (await store.reader.space()).sealed_events == 0
        moment += 150
        await watcher.sealed(6)


async def test_sessions_in_use_are_never_among_those_that_may_go(path: Path) -> None:
    async with opened(path) as store:
        store.writer.record(
            [
                save_session(session_row(1, pinned=True)),
                save_session(session_row(2, active_run_id="run_1")),
                save_session(session_row(3)),
                save_session(session_row(4, held_reason="held")),
                save_session(session_row(5, held_reason="held")),
                save_session(session_row(6)),
                save_run(run_row(1, 2, status="running")),
                save_run(run_row(2, 3)),
                save_run(run_row(3, 4)),
                save_run(run_row(4, 6, status="interrupted")),
            ]
        )
        store.writer.append(SessionLog(6, "sess_6"), [Draft("evidence", bytes(1000))], at=1)
        await store.writer.drain()

        free = await store.reader.holdings()

        assert [each.session_id for each in free] == ["sess_5", "sess_6"]
        assert free[0].bytes == 0
        assert 1000 < free[1].bytes < 2000


async def test_the_keeper_deletes_by_the_rules_and_gives_the_room_back(path: Path) -> None:
    async with opened(path) as store:
        for key in (1, 2, 3):
            row = session_row(key, updated_at=now() - key * 86_400_000)
            log = SessionLog(key, row.session_id)
            store.writer.append(
                log, [Draft("evidence", bytes(1_000_000))], [save_session(row)], at=1
            )
        await store.writer.drain()
        full = await store.reader.space()
        rules = Rules(max_age_days=2)

        async def forget(session_id: str, cause: Cause) -> bool:
            assert cause == Cause.AGE if session_id == "sess_3" else Cause.SIZE
            await store.writer.settled(store.writer.record(forget_session(int(session_id[5:]))))
            return True

        keeper = Keeper(
            store,
            rules=lambda: rules,
            forget=forget,
            is_at_rest=lambda each: each != "sess_2",
            now=now,
        )
        assert [each.holding.session_id for each in await keeper.plan()] == ["sess_3"]
        assert [each.holding.session_id for each in await keeper.apply()] == ["sess_3"]
        rules = Rules(max_bytes=500_000)
        assert [each.holding.session_id for each in await keeper.apply()] == ["sess_1"]
        rules = Rules()
        assert await keeper.apply() == []

        left, _ = await store.reader.sessions()
        assert [row.session_id for row in left] == ["sess_2"]
        assert (await store.reader.space()).bytes < full.bytes / 2
        assert store.writer.head == 3


@asynccontextmanager
async def keeping(
    store: Store, clock: Clock
) -> AsyncGenerator[tuple[list[str], MemoryObjectReceiveStream[None]]]:
    """A keeper at work with two days as its rule; what is gone, and a word for each look."""
    gone: list[str] = []
    told, looks = anyio.create_memory_object_stream[None](1)

    async def forget(session_id: str, cause: Cause) -> bool:
        assert cause is Cause.AGE
        gone.append(session_id)
        await store.writer.settled(store.writer.record(forget_session(int(session_id[5:]))))
        return True

    def rules() -> Rules:
        with suppress(anyio.WouldBlock):
            told.send_nowait(None)
        return Rules(max_age_days=2)

    keeper = Keeper(
        store, rules=rules, forget=forget, is_at_rest=lambda _: True, now=clock, pause=0.001
    )
    async with told, looks, anyio.create_task_group() as tasks:
        tasks.start_soon(keeper.run)
        yield gone, looks
        tasks.cancel_scope.cancel()


DAY = 86_400_000


@pytest.mark.parametrize(
    ("clock", "left"),
    [
        ([now() + 10_000 * DAY, now(), now() + 10_000 * DAY, now()], ["sess_1"]),
        ([now() - 10_000 * DAY] * 4, ["sess_1", "sess_3"]),
        ([now()] * 4, ["sess_1"]),
        ([now(), now() - 10_000 * DAY, now(), now()], ["sess_1"]),
    ],
    ids=["ahead now and then", "behind", "right", "behind for a while"],
)
async def test_a_clock_that_is_wrong_for_a_while_deletes_nothing(
    path: Path, clock: list[int], left: list[str]
) -> None:
    """By age goes only what was too old at two looks in a row."""
    async with opened(path) as store:
        for key in (1, 3):
            row = session_row(key, updated_at=now() - key * DAY)
            store.writer.append(SessionLog(key, row.session_id), [Draft("evidence", b"{}")],
                                [save_session(row)], at=1)  # fmt: skip
        await store.writer.drain()
        times = iter(clock)
        async with keeping(store, lambda: next(times, clock[-1])) as (gone, looks):
            for _ in range(len(clock) + 2):
                await looks.receive()
        rows, _ = await store.reader.sessions()
        assert sorted(row.session_id for row in rows) == left
        assert gone == sorted({"sess_1", "sess_3"} - set(left))
