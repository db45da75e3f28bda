"""Reading events, sealed or not, in one snapshot: who asks cannot tell them apart."""

import sqlite3
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import msgspec

from acphost.errors import StorageError
from acphost.journal.delta import DIFFERENCE, unpack
from acphost.journal.event import EventRow
from acphost.journal.packs import PACK, StoredRow, unpacked
from acphost.journal.segment_cache import SegmentCache
from acphost.journal.segments import Segment, SegmentHead
from acphost.journal.selects import (
    EVENTS_BY_OFFSET,
    EVENTS_BY_RUN,
    EVENTS_BY_SEQ,
    EVENTS_OF_SESSIONS,
    EVENTS_OF_WORKSPACE,
    SEGMENT_AT,
    SEGMENTS_AROUND,
    SEGMENTS_BEHIND,
    SEGMENTS_BY_RUN,
    SEGMENTS_BY_SEQ,
    SEGMENTS_OF_SESSIONS,
    SEGMENTS_OF_WORKSPACE,
)

#: Past every number the store can hold.
NO_END = 2**63 - 1
#: Bytes of payloads that one read keeps, because the next difference may refer to them.
_MEMORY_BYTES = 4 * 1024 * 1024


class Bounds(NamedTuple):
    """What one read may bring: events up to a position, so many, and bytes of their blobs."""

    limit: int
    max_bytes: int
    upto: int = NO_END


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """All reads inside see the same moment: nothing is sealed, or deleted, between two of them."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


class _Page:
    """Rows until one bound is met, but at least one if there is any."""

    def __init__(self, bounds: Bounds) -> None:
        self.rows: list[EventRow] = []
        self._limit = bounds.limit
        self._left = bounds.max_bytes

    def take(self, row: EventRow) -> bool:
        """Whether the row still had a place."""
        if len(self.rows) >= self._limit:
            return False
        self._left -= len(row.payload) + len(row.host or b"") + len(row.origin or b"")
        if self._left < 0 and self.rows:
            return False
        self.rows.append(row)
        return True

    @property
    def room(self) -> int:
        """How many rows it may still take."""
        return self._limit - len(self.rows)


class History:
    """The events of a store at one moment; to be used within `snapshot`."""

    def __init__(self, connection: sqlite3.Connection, cache: SegmentCache) -> None:
        self._connection = connection
        self._cache = cache
        self._sessions: dict[int, str | None] = {}
        self._runs: dict[int, str | None] = {}
        #: Payloads that differences refer to, or may.
        self._payloads: dict[int, bytes] = {}
        self._remembered = 0

    # -- by seq -----------------------------------------------------------------------------------

    def after_seq(
        self, session_key: int, seq: int, bounds: Bounds, run_key: int | None = None
    ) -> list[EventRow]:
        """Events of a session (or of one run of it) with a greater seq, in order."""
        page = _Page(bounds)
        if self._take_sealed(page, session_key, seq, bounds.upto, run_key):
            span = (session_key, seq, bounds.upto)
            if run_key is None:
                plain = self._plain(EVENTS_BY_SEQ, (*span, page.room))
            else:
                plain = self._plain(EVENTS_BY_RUN, (*span, run_key, page.room))
            with closing(plain):
                for stored in plain:
                    last = stored.row.seq or 0
                    if not all(map(page.take, self._events(stored, last, seq, bounds.upto))):
                        break
        return page.rows

    def stored_after(self, session_key: int, seq: int, upto: int) -> Generator[Sequence[EventRow]]:
        """Plain events with a greater seq, those of a row together; rows that end by `upto`."""
        with closing(self._plain(EVENTS_BY_SEQ, (session_key, seq, upto, NO_END))) as plain:
            for stored in plain:
                last = stored.row.seq or 0
                if last > upto:
                    return
                yield self._events(stored, last, seq, upto)

    def _take_sealed(
        self, page: _Page, session_key: int, seq: int, upto: int, run_key: int | None
    ) -> bool:
        """Take what is sealed; whether there is room for what follows."""
        span = (session_key, seq, upto)
        if run_key is None:
            cursor = self._connection.execute(SEGMENTS_BY_SEQ, span)
        else:
            cursor = self._connection.execute(SEGMENTS_BY_RUN, (*span, run_key))
        with closing(cursor):
            for head in map(SegmentHead._make, cursor):
                segment = self._cache.get(self._connection, head)
                start, stop = segment.after_seq(seq), segment.after_seq(upto)
                places: Iterator[int] = iter(range(start, stop))
                if run_key is not None:
                    places = segment.places_of_run(run_key, start, stop)
                session_id = self._session_id(session_key)
                for place in places:
                    if not page.take(segment.row(place, session_id, self._run_id)):
                        return False
        return page.room > 0

    # -- by offset --------------------------------------------------------------------------------

    def after_offset(
        self,
        offset: int,
        bounds: Bounds,
        *,
        session_keys: Collection[int] | None = None,
        workspace_id: str | None = None,
    ) -> list[EventRow]:
        """Events with a greater offset, in order: all, of some sessions, or of a workspace."""
        sql, wanted, condition = EVENTS_BY_OFFSET, list[object](), ""
        if session_keys is not None:
            keys = msgspec.json.encode(sorted(session_keys)).decode()
            sql, wanted, condition = EVENTS_OF_SESSIONS, [keys], SEGMENTS_OF_SESSIONS
        elif workspace_id is not None:
            sql, wanted, condition = EVENTS_OF_WORKSPACE, [workspace_id], SEGMENTS_OF_WORKSPACE
        page = _Page(bounds)
        stored = self._plain(sql, (offset, bounds.upto, *wanted, bounds.limit))
        plain = self._between(stored, offset, bounds.upto)
        sealed = self._heads(offset, bounds.upto, condition, wanted)
        with closing(plain), closing(sealed):
            for row in self._in_order(offset, bounds.upto, plain, sealed):
                if not page.take(row):
                    break
        return page.rows

    def _heads(
        self, offset: int, upto: int, condition: str, wanted: Sequence[object]
    ) -> Generator[SegmentHead]:
        """Segments with events after an offset, in the order of their first ones."""
        # Those that begin before it are few at any place, and come in no order.
        around = self._connection.execute(SEGMENTS_AROUND + condition, (offset, *wanted)).fetchall()
        yield from map(SegmentHead._make, sorted(around))
        sql = f"{SEGMENTS_BEHIND}{condition} ORDER BY first_offset"
        with closing(self._connection.execute(sql, (offset, upto, *wanted))) as behind:
            yield from map(SegmentHead._make, behind)

    def _in_order(
        self, offset: int, upto: int, plain: Iterator[EventRow], sealed: Iterator[SegmentHead]
    ) -> Iterator[EventRow]:
        """Plain and sealed events by offset; a segment is read when its first event is near."""
        sources: list[_Source] = []
        first = next(plain, None)
        if first is not None:
            sources.append(_Source(first.offset, None, 0, first))
        waiting = next(sealed, None)
        while True:
            while waiting is not None and (
                not sources or waiting.first_offset <= max(sources[0].offset, offset)
            ):
                segment = self._cache.get(self._connection, waiting)
                place = segment.after_offset(offset)
                sources.append(_Source(segment.offset(place), segment, place, None))
                heapify(sources)
                waiting = next(sealed, None)
            if not sources or sources[0].offset > upto:
                return
            source = sources[0]
            yield self._row_of(source)
            following = self._after(source, plain)
            if following is None:
                heappop(sources)
            else:
                heapreplace(sources, following)

    def _row_of(self, source: "_Source") -> EventRow:
        if source.segment is None:
            assert source.row is not None, "a plain source has its row"
            return source.row
        session_id = self._session_id(source.segment.head.session_key)
        return source.segment.row(source.place, session_id, self._run_id)

    @staticmethod
    def _after(source: "_Source", plain: Iterator[EventRow]) -> "_Source | None":
        segment, place = source.segment, source.place + 1
        if segment is not None:
            if place == len(segment):
                return None
            return _Source(segment.offset(place), segment, place, None)
        row = next(plain, None)
        return None if row is None else _Source(row.offset, None, 0, row)

    # -- plain rows -------------------------------------------------------------------------------

    def _plain(self, sql: str, parameters: Sequence[object]) -> Generator[StoredRow]:
        # A statement left half read would hold its snapshot, and the WAL could not shrink.
        with closing(self._connection.execute(sql, parameters)) as cursor:
            for *values, events in cursor:
                yield StoredRow(EventRow._make(values), events)

    def _between(self, plain: Generator[StoredRow], offset: int, upto: int) -> Generator[EventRow]:
        """The events of those rows that are behind one offset, and not behind the other."""
        with closing(plain):
            for stored in plain:
                yield from self._events(stored, stored.row.offset, offset, upto)

    def _events(self, stored: StoredRow, last: int, after: int, upto: int) -> Sequence[EventRow]:
        """The events of a row whose last has that position: behind one, and not behind another."""
        row, events = stored
        if row.codec == 0:
            return (row,)
        if row.codec == PACK:
            first = last - events + 1
            try:
                return unpacked(stored, max(0, after + 1 - first), min(events, upto + 1 - first))
            except ValueError as exc:
                raise StorageError(f"event {row.offset} is damaged: {exc}") from exc
        payload = self._exact(row.offset, row.session_key, row.codec, row.payload)
        return (row._replace(codec=0, payload=payload),)

    def _exact(self, offset: int, session_key: int | None, codec: int, stored: bytes) -> bytes:
        """The payload of a plain row as it was appended. Raises StorageError."""
        steps = []
        while codec != 0:
            if codec != DIFFERENCE:
                raise StorageError(
                    f"event {offset} is packed with codec {codec}, which this version cannot read"
                )
            try:
                difference = unpack(stored)
            except ValueError as exc:
                raise StorageError(f"event {offset} is damaged: {exc}") from exc
            if difference.base >= offset:
                raise StorageError(f"event {offset} refers to a later one, {difference.base}")
            steps.append((offset, difference))
            offset = difference.base
            codec, stored = self._stored(offset, session_key)
        payload = stored
        self._remember(offset, payload)
        for number, difference in reversed(steps):
            payload = difference.applied(payload)
            self._remember(number, payload)
        return payload

    def _remember(self, offset: int, payload: bytes) -> None:
        self._remembered += len(payload)
        if self._remembered > _MEMORY_BYTES:
            self._payloads.clear()
            self._remembered = len(payload)
        self._payloads[offset] = payload

    def _stored(self, offset: int, session_key: int | None) -> tuple[int, bytes]:
        """An event's codec and payload; of a sealed one, the payload as it was appended."""
        known = self._payloads.get(offset)
        if known is not None:
            return 0, known
        sql = "SELECT codec, payload FROM events WHERE offset = ? AND session_key = ?"
        row = self._connection.execute(sql, (offset, session_key)).fetchone()
        if row is not None:
            return row[0], row[1]
        head = self._connection.execute(SEGMENT_AT, (session_key, offset)).fetchone()
        if head is not None:
            segment = self._cache.get(self._connection, SegmentHead._make(head))
            place = segment.after_offset(offset) - 1
            if place >= 0 and segment.offset(place) == offset:
                return 0, segment.payload(place)
        raise StorageError(f"event {offset} is missing, and others refer to it")

    # -- names ------------------------------------------------------------------------------------

    def _session_id(self, key: int) -> str | None:
        if key not in self._sessions:
            sql = "SELECT session_id FROM sessions WHERE key = ?"
            row = self._connection.execute(sql, (key,)).fetchone()
            self._sessions[key] = None if row is None else row[0]
        return self._sessions[key]

    def _run_id(self, key: int) -> str | None:
        if key not in self._runs:
            row = self._connection.execute(
                "SELECT run_id FROM runs WHERE key = ?", (key,)
            ).fetchone()
            self._runs[key] = None if row is None else row[0]
        return self._runs[key]


class _Source(NamedTuple):
    """Where the next event of a merge comes from; offsets differ, so nothing else is compared."""

    offset: int
    segment: Segment | None
    place: int
    row: EventRow | None
