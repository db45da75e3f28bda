"""Numbers are given at append, before anything is written."""

import sqlite3
from pathlib import Path

import anyio
import pytest

from acphost.journal.connection import WritingConnection
from acphost.journal.event import Draft, RunRef
from acphost.journal.feed import Feed
from acphost.journal.recovery import Heads
from acphost.journal.writer import SessionLog, Writer, WriterOptions
from acphost.wire.event import Kind

EMPTY = Heads()


def new_writer(heads: Heads = EMPTY, **options: int) -> Writer:
    """A writer whose connection is never opened."""
    connection = WritingConnection(lambda: sqlite3.connect(":memory:"), Path("unused"))
    return Writer(
        connection, Feed(), heads, now=lambda: 0, options=WriterOptions(**options)  # type: ignore[arg-type]
    )  # fmt: skip


async def test_each_session_counts_for_itself() -> None:
    writer, first, second = new_writer(), SessionLog(1, "a"), SessionLog(2, "b", seq=10)

    seqs = [
        writer.append_event(first, "evidence", b"{}", at=1),
        writer.append_event(second, "evidence", b"{}", at=1),
        writer.append_event(first, Kind.EVIDENCE, b"{}", at=1, run=RunRef(1, "r")),
    ]
    writer.append(first, [Draft("error", b"{}"), Draft("error", b"{}")], at=2)

    assert seqs == [1, 11, 2]
    assert (first.seq, second.seq) == (4, 11)


async def test_host_events_take_no_seq() -> None:
    writer, log = new_writer(), SessionLog(1, "a")

    writer.append(None, [Draft(Kind.HOST_STARTED, b"{}")], at=1)

    assert writer.append_event(log, "evidence", b"{}", at=1) == 1


async def test_a_later_unit_never_has_a_smaller_ticket() -> None:
    writer, log = new_writer(batch_bytes=500), SessionLog(1, "a")

    tickets = [writer.append(log, [Draft("evidence", b"{}")], at=1) for _ in range(20)]

    assert tickets == sorted(tickets)
    assert len(set(tickets)) > 1


async def test_a_unit_larger_than_a_batch_is_one_batch() -> None:
    writer, log = new_writer(batch_bytes=500), SessionLog(1, "a")

    before = writer.append(log, [Draft("evidence", b"{}")], at=1)
    unit = writer.append(log, [Draft("evidence", b"x" * 400)] * 10, at=1)
    after = writer.append(log, [Draft("evidence", b"{}")], at=1)

    assert (unit, after) == (before, before + 1)


async def test_keys_go_on_after_those_in_the_store() -> None:
    writer = new_writer(Heads(5, 7, 9))

    assert writer.head == 5
    assert (writer.next_session_key(), writer.next_session_key()) == (8, 9)
    assert writer.next_run_key() == 10


async def test_there_is_room_until_the_budget_is_spent() -> None:
    writer, log = new_writer(budget_bytes=1_000), SessionLog(1, "a")
    assert writer.has_room
    await writer.room()

    writer.append_event(log, "evidence", b"x" * 1_000, at=1)

    assert not writer.has_room
    with pytest.raises(TimeoutError), anyio.fail_after(0):
        await writer.room()


async def test_nothing_to_write_is_durable_at_once() -> None:
    writer = new_writer()

    await writer.durable(writer.record(()))
    await writer.drain()
