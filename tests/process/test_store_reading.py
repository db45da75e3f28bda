"""Cursors, listings and what recovery asks."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acphost.errors import (
    CursorMalformedError,
    StorageError,
)
from acphost.journal.event import Draft, EventRow, RunRef
from acphost.journal.rows import BindingRow, DecisionRow, ProcessRow
from acphost.journal.selects import SessionFilter
from acphost.journal.statements import (
    forget_session,
    save_binding,
    save_decision,
    save_process,
    save_prompt,
    save_run,
    save_session,
)
from acphost.journal.writer import SessionLog, Writer
from tests.support.stores import all_events, chunks, events_of, opened, run_row, session_row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_a_page_ends_at_its_bytes_but_is_never_empty(path: Path) -> None:
    async with opened(path) as store:
        store.writer.append(SessionLog(1, "sess_1"), chunks(10, size=100), at=1)
        await store.writer.drain()
        reader = store.reader

        one = await reader.events_after_seq(1, 0, limit=10, max_bytes=1)
        some = await reader.events_after_seq(1, 0, limit=10, max_bytes=350)
        few = await reader.events_after_offset(4, limit=2, max_bytes=10_000)

        assert [row.seq for row in one] == [1]
        assert [row.seq for row in some] == [1, 2, 3]
        assert [row.seq for row in few] == [5, 6]


class Model:
    """A journal in memory, to hold the real one against."""

    def __init__(self) -> None:
        self.logs = [SessionLog(key, f"sess_{key}") for key in (1, 2, 3)]
        self.rows: list[EventRow] = []

    def append(self, writer: Writer, step: tuple[int, int, int]) -> None:
        place, run_key, count = step
        log = self.logs[place] if place < len(self.logs) else None
        run = RunRef(run_key, f"run_{run_key}") if log and run_key else None
        draft = Draft("evidence", b"%d" % len(self.rows), run)
        key, session_id, seq = (log.key, log.session_id, log.seq) if log else (None, None, None)
        for distance in range(1, count + 1):
            self.rows.append(
                EventRow(
                    len(self.rows) + 1, key, None if seq is None else seq + distance,
                    run.key if run else None, draft.kind, "mnote", 0, 0, draft.payload, None,
                    None, 1, session_id, run.id if run else None,
                )
            )  # fmt: skip
        if log is None or count == 2:
            writer.append(log, [draft] * count, at=1)
            return
        if count > MANY:
            writer.append_alike(log, draft.kind, [draft.payload] * count, at=1, run=run)
            return
        for _ in range(count):
            writer.append_event(log, draft.kind, draft.payload, at=1, run=run)


#: More events than that at a time are appended as alike, and stored together.
MANY = 8
steps = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 2), st.integers(1, 4) | st.sampled_from((9, 30, 400))
    ),
    min_size=1,
    max_size=25,
)


@given(
    steps=steps,
    after=st.integers(0, 60) | st.integers(0, 900),
    limit=st.integers(1, 30) | st.just(500),
    size=st.integers(1, 40) | st.just(1 << 30),
    upto=st.integers(0, 60) | st.integers(0, 900),
)
@settings(max_examples=50)
async def test_every_cursor_reads_what_a_model_would(
    steps: list[tuple[int, int, int]], after: int, limit: int, size: int, upto: int
) -> None:
    """By seq or offset, of a run or of some sessions, from and to the midst of what is alike."""

    def page(rows: list[EventRow]) -> list[EventRow]:
        taken, left = list[EventRow](), size
        for row in rows[:limit]:
            left -= len(row.payload)
            if taken and left < 0:
                break
            taken.append(row)
        return taken

    model = Model()
    with TemporaryDirectory() as directory:
        async with opened(Path(directory) / "journal.db") as store:
            store.writer.record(
                [save_session(session_row(key, workspace_id=f"w{key % 2}")) for key in (1, 2, 3)]
            )
            store.writer.record([save_run(run_row(key)) for key in (1, 2)])
            for step in steps:
                model.append(store.writer, step)
            await store.writer.drain()
            rows = model.rows
            after_offset = partial(
                store.reader.events_after_offset, after, limit=limit, max_bytes=size
            )
            after_seq = partial(
                store.reader.events_after_seq, seq=after, limit=limit, max_bytes=size
            )

            assert await after_offset() == page([row for row in rows if row.offset > after])
            between = [row for row in rows if after < row.offset <= upto]
            assert await after_offset(upto_offset=upto) == page(between)
            assert await after_offset(upto_offset=upto, session_keys={1, 3}) == page(
                [row for row in between if row.session_key in {1, 3}]
            )
            assert await after_offset(workspace_id="w1") == page(
                [row for row in rows if row.offset > after and row.session_key in {1, 3}]
            )
            for key in (1, 2, 3):
                own = [row for row in rows if row.session_key == key and (row.seq or 0) > after]
                assert await after_seq(key) == page(own)
                assert await store.reader.head_seq(key) == model.logs[key - 1].seq
                early = [row for row in own if (row.seq or 0) <= upto]
                assert await after_seq(key, upto_seq=upto) == page(early)
                for run_key in (1, 2):
                    assert await after_seq(key, upto_seq=upto, run_key=run_key) == page(
                        [row for row in early if row.run_key == run_key]
                    )
            assert (await store.reader.heads()).offset == len(rows)


async def test_a_payload_in_a_codec_of_the_future_is_an_error_of_the_store(path: Path) -> None:
    async with opened(path) as store:
        store.writer.append(SessionLog(1, "sess_1"), chunks(1), at=1)
        await store.writer.drain()
        await store.writer.settled(store.writer.record([("UPDATE events SET codec = 9", ())]))

        with pytest.raises(StorageError):
            await events_of(store.reader, 1)


async def test_a_cancelled_read_harms_no_later_one(path: Path) -> None:
    async with opened(path) as store:
        for _ in range(5):
            with anyio.move_on_after(0):
                await store.reader.sessions()

        assert await store.reader.sessions() == ([], None)


async def test_sessions_are_listed_active_first_then_the_latest_page_by_page(path: Path) -> None:
    async with opened(path) as store:
        active = {3: "run_3", 5: "run_5"}
        store.writer.record(
            [
                save_session(
                    session_row(key, updated_at=100 - key % 4, active_run_id=active.get(key))
                )
                for key in range(1, 10)
            ]
        )
        await store.writer.drain()

        listed, cursor, pages = list[int](), None, 0
        while pages == 0 or cursor is not None:
            page, cursor = await store.reader.sessions(cursor=cursor, limit=2)
            listed.extend(row.key for row in page)
            pages += 1

        assert (listed, pages) == ([5, 3, 8, 4, 9, 1, 6, 2, 7], 5)
        with pytest.raises(CursorMalformedError):
            await store.reader.sessions(cursor="1.x.3")


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (SessionFilter(), {1, 2, 3, 4}),
        (SessionFilter(workspace_id="local:b"), {2}),
        (SessionFilter(document_id="local-md:a.md"), {3}),
        (SessionFilter(runtime="reasonix", agent_id="reasonix"), {2}),
        (SessionFilter(profile="other"), {3}),
        (SessionFilter(pinned=True), {1}),
        (SessionFilter(pinned=False, profile="default"), {2, 4}),
        (SessionFilter(status="active"), {4}),
        (SessionFilter(status="completed"), {1}),
        (SessionFilter(status="failed"), {2, 3}),
        (SessionFilter(status="cold_resumed"), {3}),
        (SessionFilter(status="held"), {2}),
    ],
)
async def test_sessions_are_filtered(path: Path, wanted: SessionFilter, keys: set[int]) -> None:
    async with opened(path) as store:
        rows = [
            session_row(1, pinned=True, last_run_status="completed"),
            session_row(
                2, workspace_id="local:b", runtime="reasonix", agent_id="reasonix", status="held",
                last_run_status="failed",
            ),
            session_row(
                3, document_id="local-md:a.md", profile="other", mode="cold_resumed",
                last_run_status="interrupted",
            ),
            session_row(4, active_run_id="run_1", last_run_status="completed"),
        ]  # fmt: skip
        store.writer.record([save_session(row) for row in rows])
        await store.writer.drain()

        listed, _ = await store.reader.sessions(wanted)

        assert {row.key for row in listed} == keys


async def test_a_queue_is_read_in_its_order_with_positions(path: Path) -> None:
    async with opened(path) as store:
        store.writer.record(
            [
                save_session(session_row()),
                save_run(run_row(1, status="running")),
                save_run(run_row(2, queue_order=9)),
                save_run(run_row(3, queue_order=4)),
                save_run(run_row(4, status="cancelled")),
                save_run(run_row(5, session_key=2)),
            ]
        )
        await store.writer.drain()
        queued = await store.reader.queued(1)
        session = await store.reader.session("sess_1")
        other = await store.reader.run("run_5")

        assert [(run.key, run.queue_position) for run in queued] == [(3, 1), (2, 2)]
        assert session is not None
        assert session.queued_count == 2
        assert other is not None
        assert other.queue_position == 0


async def test_runs_are_listed_the_latest_first(path: Path) -> None:
    async with opened(path) as store:
        store.writer.record([save_run(run_row(key, 1 + key % 2)) for key in range(1, 8)])
        await store.writer.drain()

        first, cursor = await store.reader.runs(session_key=2, limit=3)
        rest, end = await store.reader.runs(session_key=2, limit=3, cursor=cursor)

        assert [run.key for run in first + rest] == [7, 5, 3, 1]
        assert end is None


async def test_the_last_seq_of_a_run_is_what_the_journal_holds(path: Path) -> None:
    async with opened(path) as store:
        log, run = SessionLog(1, "sess_1"), RunRef(1, "run_1")
        store.writer.append(log, [Draft("run.created", b"{}", run)], [save_run(run_row(1))], at=1)
        store.writer.append(log, [Draft("evidence", b"{}", run), Draft("evidence", b"{}")], at=1)
        await store.writer.drain()

        row = await store.reader.run("run_1")

        assert row is not None
        assert row.last_seq == 2


async def test_a_key_leads_to_its_one_run(path: Path) -> None:
    async with opened(path) as store:
        parent = run_row(1, idempotency_key="k1")
        child = run_row(2, parent_run_id="run_1", resume_request_id="r1")
        store.writer.record([save_run(parent), save_run(child)])
        await store.writer.drain()
        reader = store.reader

        found = [
            await reader.run_by_key("k1"),
            await reader.run_by_key("k2"),
            await reader.run_by_resume("run_1", "r1"),
            await reader.run_by_resume("run_1", "r2"),
        ]
        assert [run and run.key for run in found] == [1, None, 2, None]


async def test_what_an_earlier_daemon_left_open_is_found(path: Path) -> None:
    async with opened(path) as store:
        log, ended = SessionLog(1, "sess_1"), RunRef(3, "run_3")
        store.writer.append(
            log,
            [Draft("run.completed", b"{}", ended), Draft("evidence", b"{}", RunRef(4, "run_4"))],
            [
                save_run(run_row(1, status="running")),
                save_run(run_row(2)),
                save_run(run_row(3, status="completed", terminal_seq=1)),
                save_run(run_row(4, status="failed", terminal_seq=2)),
                save_run(run_row(5, status="interrupted")),
                save_run(run_row(6, status="interrupted", dismissed_at=1)),
                save_run(run_row(7, status="interrupted")),
                save_run(run_row(8, status="cancelled", parent_run_id="run_7",
                                 resume_request_id="r")),
                *(
                    save_decision(DecisionRow(
                        permission_id=f"p{status}", kind="permission", session_key=1,
                        session_id="sess_1", status=status, created_at=1,
                    ))
                    for status in ("pending", "resolved")
                ),
                *(
                    save_binding(BindingRow(
                        binding_id=f"b{status}", session_key=1, mode="m", status=status,
                        created_at=1,
                    ))
                    for status in ("live", "lost")
                ),
                save_process(ProcessRow(launch_id="l1", agent_id="a", started_at=1)),
                save_process(ProcessRow(launch_id="l2", agent_id="a", started_at=1, ended_at=2)),
            ],
            at=1,
        )  # fmt: skip
        await store.writer.drain()

        left = await store.reader.unfinished()
        unresolved = await store.reader.unresolved_runs(1)

        assert [run.key for run in left.runs] == [1, 2]
        assert [run.key for run in left.endless] == [4, 5, 6, 7, 8]
        assert [decision.permission_id for decision in left.decisions] == ["ppending"]
        assert [binding.binding_id for binding in left.bindings] == ["blive"]
        assert [process.launch_id for process in left.processes] == ["l1"]
        assert [run.key for run in unresolved] == [5]
        assert unresolved == await store.reader.unresolved_runs()


async def test_a_forgotten_session_leaves_nothing_and_frees_no_offset(path: Path) -> None:
    async with opened(path) as store:
        store.writer.append(
            SessionLog(1, "sess_1"), chunks(2), [save_session(session_row(1))], at=1
        )
        store.writer.append(
            SessionLog(2, "sess_2"), chunks(3),
            [save_session(session_row(2)), save_run(run_row(1, 2)), save_prompt(1, b"[]")], at=1,
        )  # fmt: skip
        store.writer.record(forget_session(2))
        await store.writer.drain()

        rows = await all_events(store.reader)
        assert [row.offset for row in rows] == [1, 2]
        assert await store.reader.session("sess_2") is None
        assert await store.reader.prompt(1) is None

    async with opened(path) as store:
        assert store.writer.head == 5
