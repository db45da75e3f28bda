"""Sealing: plain events of one session become a segment, or lengthen its last one.

The reading half takes its time on a connection of its own; the writing half is one unit of the
writer. Its statements look again whether all is as it was read: carried out twice, or after the
session was deleted, they change nothing.
"""

import sqlite3
from contextlib import closing
from typing import NamedTuple

import msgspec

from acphost.journal.history import Bounds, History, snapshot
from acphost.journal.segment_cache import SegmentCache
from acphost.journal.segment_writer import MOST_EVENTS, SegmentWriter
from acphost.journal.segments import SealedEvents, SegmentHead
from acphost.journal.selects import LAST_SEGMENT
from acphost.journal.statements import Statement

#: A last segment with fewer events and bytes is lengthened, rather than followed by another.
_SHORT_EVENTS = 500
_SHORT_BYTES = 64 * 1024


class Sealed(NamedTuple):
    """A segment that is ready to take the place of plain events."""

    content: SealedEvents
    #: The first of the plain events, and how many they are.
    first_seq: int
    events: int
    #: The last offset of the segment that it lengthens; None if it is a new one.
    lengthened: int | None

    def statements(self) -> tuple[Statement, ...]:
        """What puts it there, to be one unit."""
        head, content = self.content.head, self.content
        plain = (head.session_key, self.first_seq, head.last_seq)
        name = (head.first_offset, head.last_offset)
        row = (*head, content.events, len(content.facts) + len(content.payloads), content.raw_bytes)
        runs = msgspec.json.encode(content.runs).decode()
        return (
            (_INSERT, (*row, *plain, self.events, self.lengthened)),
            (_INSERT_CONTENT, (*name, content.facts, content.payloads)),
            (_INSERT_RUNS, (*name, runs)),
            (_DELETE_PLAIN, (*name, *plain)),
        )


_INSERT = """
    INSERT INTO segments
        (first_offset, last_offset, session_key, first_seq, last_seq, codec, events, bytes,
         raw_bytes)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
    WHERE ?13 =
        (SELECT sum(events) FROM events WHERE session_key = ?10 AND seq BETWEEN ?11 AND ?12)
    AND ?14 IS (SELECT last_offset FROM segments WHERE first_offset = ?1)
    ON CONFLICT (first_offset) DO UPDATE SET last_offset = excluded.last_offset,
        last_seq = excluded.last_seq, codec = excluded.codec, events = excluded.events,
        bytes = excluded.bytes, raw_bytes = excluded.raw_bytes
"""
_IS_THERE = "EXISTS (SELECT 1 FROM segments WHERE first_offset = ?1 AND last_offset = ?2)"
_INSERT_CONTENT = f"""
    INSERT OR REPLACE INTO segment_contents (first_offset, facts, payloads)
    SELECT ?1, ?3, ?4 WHERE {_IS_THERE}
"""
_INSERT_RUNS = f"""
    INSERT OR REPLACE INTO sealed_runs (run_key, first_offset, last_seq, terminal_seq)
    SELECT json_extract(value, '$[0]'), ?1, json_extract(value, '$[1]'),
        json_extract(value, '$[2]')
    FROM json_each(?3) WHERE {_IS_THERE}
"""  # noqa: S608 (our own words)
_DELETE_PLAIN = f"""
    DELETE FROM events WHERE session_key = ?3 AND seq BETWEEN ?4 AND ?5 AND {_IS_THERE}
"""  # noqa: S608 (our own words)


def read_sealable(
    connection: sqlite3.Connection, cache: SegmentCache, session_key: int, upto_seq: int
) -> Sealed | None:
    """The next events of a session that are to be sealed, up to a seq; None if there are none."""
    with snapshot(connection):
        history = History(connection, cache)
        found = connection.execute(LAST_SEGMENT, (session_key,)).fetchone()
        last = None if found is None else SegmentHead._make(found)
        writer = SegmentWriter()
        if last is not None and _is_short(connection, last):
            whole = Bounds(MOST_EVENTS, 1 << 62, last.last_seq)
            for row in history.after_seq(session_key, last.first_seq - 1, whole):
                writer.add(row)
        lengthened = last if len(writer) else None
        sealed_seq = 0 if last is None else last.last_seq
        before = len(writer)
        _gather(history, writer, session_key, sealed_seq, upto_seq)
    events = len(writer) - before
    if not events:
        # An event so big that it needs a segment of its own, where a short one is.
        return _alone(connection, cache, session_key, sealed_seq, upto_seq) if before else None
    return Sealed(
        writer.finish(), sealed_seq + 1, events, lengthened.last_offset if lengthened else None
    )


def _alone(
    connection: sqlite3.Connection,
    cache: SegmentCache,
    session_key: int,
    sealed_seq: int,
    upto_seq: int,
) -> Sealed | None:
    writer = SegmentWriter()
    with snapshot(connection):
        _gather(History(connection, cache), writer, session_key, sealed_seq, upto_seq)
    return Sealed(writer.finish(), sealed_seq + 1, len(writer), None) if len(writer) else None


def _gather(
    history: History, writer: SegmentWriter, session_key: int, sealed_seq: int, upto_seq: int
) -> None:
    """Fill the segment with what follows a seq, without a gap, and with whole rows only."""
    seq = sealed_seq
    with closing(history.stored_after(session_key, sealed_seq, upto_seq)) as stored:
        for rows in stored:
            # A gap is for `fsck` to tell; what comes after it stays as it is.
            if rows[0].seq != seq + 1 or not writer.add_all(rows):
                return
            seq += len(rows)


def _is_short(connection: sqlite3.Connection, head: SegmentHead) -> bool:
    sql = "SELECT events < ? AND bytes < ? FROM segments WHERE first_offset = ?"
    asked = (_SHORT_EVENTS, _SHORT_BYTES, head.first_offset)
    return bool(connection.execute(sql, asked).fetchone()[0])


class Ended(NamedTuple):
    """A session that has plain events of ended runs: up to which seq, and since when."""

    session_key: int
    upto_seq: int
    ended_at: int


_UNSEALED = """
    SELECT r.session_key, max(r.terminal_seq), max(r.ended_at) FROM runs r
    WHERE r.terminal_seq IS NOT NULL AND r.ended_at IS NOT NULL AND EXISTS
        (SELECT 1 FROM events e WHERE e.session_key = r.session_key AND e.seq <= r.terminal_seq)
    GROUP BY r.session_key
"""


def read_unsealed(connection: sqlite3.Connection) -> list[Ended]:
    """Every session that could be sealed further; looks at all runs."""
    with closing(connection.execute(_UNSEALED)) as cursor:
        return [Ended._make(row) for row in cursor]
