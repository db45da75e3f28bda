"""Sealed events are read as if they were not: a journal and its unsealed twin, side by side."""

import random
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acphost.archive.seal import give_back
from acphost.errors import StorageError
from acphost.journal.event import Draft, EventRow, RunRef
from acphost.journal.pool import read_pool
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow
from acphost.journal.seal import Sealed, read_sealable, read_unsealed
from acphost.journal.segment_cache import SegmentCache
from acphost.journal.statements import forget_session, save_run, save_session
from acphost.journal.store import Store
from acphost.journal.writer import SessionLog
from tests.support.stores import Listener, all_events, events_of, opened, run_row, session_row

SESSIONS = (1, 2, 3)
KINDS = ("message.delta", "tool.updated", "evidence", "run.completed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def next_sealed(store: Store, session_key: int, upto: int) -> Sealed | None:
    async with read_pool(store.path, busy_timeout=1, size=1) as pool:
        return await pool.call(
            partial(read_sealable, cache=SegmentCache(), session_key=session_key, upto_seq=upto)
        )


async def file_size(path: Path) -> int:
    """Of the store once its WAL is written back."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    return (await anyio.Path(path).stat()).st_size


async def seal(store: Store, session_key: int, upto: int = 1 << 40) -> int:
    """Seal all there is of a session up to a seq; returns how many segments were written."""
    written = 0
    await store.writer.drain()
    async with read_pool(store.path, busy_timeout=1, size=1) as pool:
        read = partial(read_sealable, cache=SegmentCache(), session_key=session_key, upto_seq=upto)
        while (sealed := await pool.call(read)) is not None:
            await store.writer.settled(store.writer.record(sealed.statements()))
            written += 1
    return written


def plain_events(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM events").fetchone()[0]
        return count


def output(lines: int, call: str = "c1") -> bytes:
    """A tool update that repeats all it has printed."""
    text = "\\n".join(f"{place:049d}" for place in range(lines))
    return (
        f'{{"sessionUpdate":"tool_call_update","toolCallId":"{call}","content":[{{"type":'
        f'"content","content":{{"type":"text","text":"{text}"}}}}]}}'
    ).encode()


# -- the twin -------------------------------------------------------------------------------------

appended = st.tuples(
    st.just("append"), st.integers(0, 3), st.sampled_from([None, 0, 1]), st.sampled_from(KINDS),
    st.integers(1, 12), st.integers(0, 30),
)  # fmt: skip
sealing = st.tuples(
    st.just("seal"), st.sampled_from(SESSIONS), st.integers(0, 60) | st.integers(0, 3000)
)
#: So many alike at a time that they are stored together, by the hundred.
flooded = st.tuples(
    st.just("flood"), st.integers(0, 2), st.sampled_from([None, 0, 1]),
    st.sampled_from([8, 60, 1500]), st.sampled_from([0, 40, 900]),
)  # fmt: skip
steps = st.lists(appended | flooded | sealing, min_size=1, max_size=25)
Step = (
    tuple[str, int, int]
    | tuple[str, int, int | None, str, int, int]
    | tuple[str, int, int | None, int, int]
)


def runs_of(session_key: int) -> tuple[int, int]:
    """Each session has two runs, whose events may come in any order."""
    return 2 * session_key - 1, 2 * session_key


class Twins:
    """One history in two stores, one of which is sealed now and then."""

    def __init__(self, plain: Store, sealed: Store) -> None:
        self.plain, self.sealed = plain, sealed
        self._logs = {store: [SessionLog(key, f"sess_{key}") for key in SESSIONS]
                      for store in (plain, sealed)}  # fmt: skip
        for store in (plain, sealed):
            rows = [save_session(session_row(key, workspace_id=f"w{key % 2}")) for key in SESSIONS]
            runs = [save_run(run_row(run, key)) for key in SESSIONS for run in runs_of(key)]
            store.writer.record([*rows, *runs])

    def flood(self, place: int, which: int | None, count: int, size: int) -> None:
        for store in (self.plain, self.sealed):
            payloads = [b"%d" % number * size for number in range(count)]
            store.writer.append_alike(
                self._logs[store][place], "message.delta", payloads, at=1000 + size,
                run=self._run(place, which),
            )  # fmt: skip

    @staticmethod
    def _run(place: int, which: int | None) -> RunRef | None:
        if which is None or place >= len(SESSIONS):
            return None
        key = runs_of(SESSIONS[place])[which]
        return RunRef(key, f"run_{key}")

    def append(self, place: int, which: int | None, kind: str, count: int, size: int) -> None:
        run = self._run(place, which)
        for store in (self.plain, self.sealed):
            log = self._logs[store][place] if place < len(SESSIONS) else None
            drafts = [
                Draft(
                    kind, output(size + number) if kind == "tool.updated" else b"%d" % number,
                    run, host=b'{"n":%d}' % number if number % 3 == 0 else None,
                    origin=b"{}" if number % 4 == 0 else None, flags=number % 3,
                )
                for number in range(count)
            ]  # fmt: skip
            store.writer.append(log, drafts, at=1000 + size)

    async def same(self, ask: Callable[[Reader], Awaitable[object]]) -> None:
        assert await ask(self.sealed.reader) == await ask(self.plain.reader)


cursors = st.tuples(
    st.integers(0, 90) | st.integers(0, 4000),
    st.integers(1, 40) | st.just(3000),
    st.sampled_from([1, 300, 3000, 1 << 30]),
)


@given(
    steps=steps,
    cursors=st.lists(cursors, min_size=1, max_size=5),
    upto=st.integers(0, 120) | st.integers(0, 4000),
)
@settings(max_examples=25)
async def test_no_reader_can_tell_that_events_are_sealed(
    steps: list[Step],
    cursors: list[tuple[int, int, int]],
    upto: int,
) -> None:
    """Whatever was written, whenever it was sealed: every cursor and filter reads the same."""
    with TemporaryDirectory() as folder:
        async with (
            opened(Path(folder) / "plain.db") as plain,
            opened(Path(folder) / "sealed.db") as sealed,
        ):
            twins = Twins(plain, sealed)
            for step in steps:
                match step:
                    case ("append", *what):
                        twins.append(*what)
                    case ("flood", *what):
                        twins.flood(*what)
                    case ("seal", *what):
                        await seal(sealed, *what)
            await plain.writer.drain()
            await sealed.writer.drain()
            for after, limit, size in cursors:
                page: dict[str, Any] = {"limit": limit, "max_bytes": size}
                for ask in (
                    partial(Reader.events_after_offset, offset=after, **page),
                    partial(Reader.events_after_offset, offset=after, upto_offset=upto, **page),
                    partial(Reader.events_after_offset, offset=after, session_keys={1, 3}, **page),
                    partial(Reader.events_after_offset, offset=after, workspace_id="w1", **page),
                    *(partial(Reader.events_after_seq, session_key=key, seq=after, **page)
                      for key in SESSIONS),
                    *(partial(Reader.events_after_seq, session_key=key, seq=after, upto_seq=upto,
                              run_key=run_key, **page)
                      for key in SESSIONS for run_key in runs_of(key)),
                ):  # fmt: skip
                    await twins.same(ask)
            for question in (
                Reader.session_heads, Reader.heads, Reader.unfinished,
                partial(Reader.head_seq, session_key=1), partial(Reader.run, run_id="run_1"),
                partial(Reader.sessions), partial(Reader.runs),
            ):  # fmt: skip
                await twins.same(question)


# -- what sealing does ----------------------------------------------------------------------------


async def test_sealed_events_take_a_fraction_and_the_file_shrinks(path: Path) -> None:
    """20,000 token deltas take at most 15 % of their raw bytes, measured on the file."""
    source = random.Random(3)
    words = [source.randbytes(source.randint(1, 5)).hex().encode() for _ in range(3000)]
    async with opened(path) as store:
        log, raw, empty = SessionLog(1, "sess_1"), 0, (await store.reader.space()).used_bytes
        for number in range(20_000):
            payload = (
                b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":" %b"}}'
                % source.choice(words)
            )
            raw += len(payload)
            store.writer.append_event(log, "message.delta", payload, at=number // 40)
        await store.writer.drain()
        before = await events_of(store.reader, 1)
        unsealed = (await store.reader.space()).bytes

        assert await seal(store, 1) == 10
        await give_back(store)

        space = await store.reader.space()
        assert space.sealed_events == 20_000
        assert space.sealed_raw_bytes == raw
        assert space.sealed_bytes < 0.15 * raw
        assert space.used_bytes - empty < 0.15 * raw
        assert space.bytes < unsealed / 5
        assert await events_of(store.reader, 1) == before
    assert await file_size(path) == space.bytes


async def test_output_told_again_with_every_update_stays_small(path: Path) -> None:
    """2,000 updates, each with all lines so far: 100 MB told, under 2 MB kept, every byte of it."""
    live = Listener()
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        store.feed.attach(live, 1)
        for lines in range(1, 2001):
            store.writer.append_event(log, "tool.updated", output(lines), at=lines)
            await store.writer.room()
        await store.writer.drain()

        assert [len(row.payload) for row in live.rows[-3:]] == [
            len(output(n)) for n in range(1998, 2001)
        ]
        assert (await store.reader.space()).bytes < 2_000_000
        for after in (0, 1, 1023, 1900):
            for row in await store.reader.events_after_seq(1, after, limit=20, max_bytes=1 << 30):
                assert row.payload == output(row.seq or 0)
                assert row.codec == 0

        assert await seal(store, 1) == 1
        await give_back(store)

        for after in (0, 777, 1995):
            for row in await store.reader.events_after_seq(1, after, limit=20, max_bytes=1 << 30):
                assert row.payload == output(row.seq or 0)
    assert await file_size(path) < 500_000


async def test_a_late_update_may_repeat_what_is_sealed(path: Path) -> None:
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        store.writer.append(log, [Draft("tool.updated", output(40 + n)) for n in range(5)], at=1)
        await seal(store, 1, 3)
        store.writer.append(log, [Draft("tool.completed", output(46))], at=1)
        await store.writer.drain()
        assert [row.payload for row in await all_events(store.reader)] == [
            *(output(40 + n) for n in range(5)), output(46)
        ]  # fmt: skip

        await seal(store, 1)
        assert plain_events(path) == 0
        assert (await events_of(store.reader, 1))[-1].payload == output(46)


async def test_a_difference_whose_base_is_gone_is_an_error_of_the_store(path: Path) -> None:
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        store.writer.append(log, [Draft("tool.updated", output(40 + n)) for n in range(2)], at=1)
        store.writer.record([("DELETE FROM events WHERE seq = 1", ())])
        await store.writer.drain()

        with pytest.raises(StorageError, match="missing"):
            await events_of(store.reader, 1)


async def test_short_runs_of_a_session_share_a_segment(path: Path) -> None:
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        for _ in range(30):
            store.writer.append(log, [Draft("evidence", b"{}")] * 10, at=1)
            await seal(store, 1)

        space = await store.reader.space()
        assert (space.segments, space.sealed_events) == (1, 300)
        assert [row.seq for row in await events_of(store.reader, 1)] == list(range(1, 301))


async def test_one_event_of_many_megabytes_is_a_segment_of_its_own(path: Path) -> None:
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        payloads = [b"{}", b'"%b"' % random.randbytes(3_000_000).hex().encode(), b"[]"]
        for payload in payloads:
            store.writer.append(log, [Draft("evidence", payload)], at=1)
            await seal(store, 1)

        assert [row.payload for row in await events_of(store.reader, 1)] == payloads
        assert (await store.reader.space()).sealed_events == 3


async def test_sealing_twice_or_after_the_session_was_deleted_changes_nothing(path: Path) -> None:
    """The unit looks again: kill -9 and repetition cannot lose or bring back anything."""
    async with opened(path) as store:
        log = SessionLog(1, "sess_1")
        store.writer.append(
            log, [Draft("evidence", b"{}")] * 5, [save_session(session_row())], at=1
        )
        await store.writer.drain()
        first = await next_sealed(store, 1, 3)
        assert first is not None
        for _ in range(2):
            await store.writer.settled(store.writer.record(first.statements()))
            assert [row.seq for row in await events_of(store.reader, 1)] == [1, 2, 3, 4, 5]

        second = await next_sealed(store, 1, 5)
        assert second is not None
        await store.writer.settled(store.writer.record([*forget_session(1), *second.statements()]))

        assert await all_events(store.reader) == []
        assert (await store.reader.space()).segments == 0
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute(
                "SELECT (SELECT count(*) FROM segment_contents), (SELECT count(*) FROM sealed_runs)"
            ).fetchone() == (0, 0)
    async with opened(path) as store:
        assert store.writer.head == 5


async def test_a_gap_is_left_as_it_is(path: Path) -> None:
    async with opened(path) as store:
        store.writer.append(SessionLog(1, "sess_1"), [Draft("evidence", b"{}")] * 6, at=1)
        store.writer.record([("DELETE FROM events WHERE seq = 4", ())])

        await seal(store, 1)

        assert [row.seq for row in await events_of(store.reader, 1)] == [1, 2, 3, 5, 6]
        assert plain_events(path) == 2


async def test_a_run_whose_end_is_sealed_is_not_taken_for_an_endless_one(path: Path) -> None:
    async with opened(path) as store:
        log, ref = SessionLog(1, "sess_1"), RunRef(1, "run_1")
        run = run_row(1, status="completed", terminal_seq=2, ended_at=5)
        store.writer.append(
            log,
            [Draft("run.created", b"{}", ref), Draft("run.completed", b"{}", ref),
             Draft("evidence", b"{}", ref, host=b'{"late":true}')],
            [save_session(session_row()), save_run(run)], at=1,
        )  # fmt: skip
        await store.writer.drain()
        async with read_pool(path, busy_timeout=1, size=1) as pool:
            assert await pool.call(read_unsealed) == [(1, 2, 5)]
            await seal(store, 1)
            assert await pool.call(read_unsealed) == []

        assert (await store.reader.unfinished()).endless == []
        found = await store.reader.run("run_1")
        assert isinstance(found, RunRow)
        assert found.last_seq == 3


async def test_pages_through_many_segments_read_each_once(path: Path) -> None:
    async with opened(path) as store:
        logs = [SessionLog(key, f"sess_{key}") for key in SESSIONS]
        for number in range(6000):
            store.writer.append_event(logs[number % 3], "evidence", b"%d" % number, at=1)
        for key in SESSIONS:
            await seal(store, key)

        rows: list[EventRow] = []
        while page := await store.reader.events_after_offset(
            rows[-1].offset if rows else 0, limit=70, max_bytes=1 << 20
        ):
            rows += page

        assert [row.payload for row in rows] == [b"%d" % number for number in range(6000)]
