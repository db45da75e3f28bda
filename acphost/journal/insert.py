"""The one statement of the hot path: many events into the journal."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import msgspec

from acphost.journal.delta import Repeats
from acphost.journal.event import STORED_FIELDS, EventRow, Stretch
from acphost.journal.statements import Statement

_COLUMNS = (
    "offset, session_key, seq, run_key, kind, source, codec, flags, payload, host, origin, at"
)
_MARKS = "(" + ", ".join("?" * STORED_FIELDS) + ")"
_SIZES = (256, 32, 4, 1)
_INSERT_ROWS = {
    size: f"INSERT INTO events ({_COLUMNS}) VALUES {', '.join([_MARKS] * size)}"  # noqa: S608
    for size in _SIZES
}
# ?11 holds all payloads end to end, ?12 where each is: position and length in one number. Of an
# empty blob substr makes NULL.
_INSERT_STRETCH = (
    f"INSERT INTO events ({_COLUMNS}) SELECT ?1 + key, ?2, ?3 + key, ?4, ?5, ?6, 0, ?7,"  # noqa: S608
    " coalesce(substr(?11, value >> 32, value & 0xffffffff), x''), ?8, ?9, ?10"
    " FROM json_each(?12)"
)
#: Shorter stretches are inserted row by row.
_LONG = 8


def insert_statements(alike: Sequence[Stretch], repeats: Repeats) -> list[Statement]:
    """What inserts events, with as few statements and as few bound values as may be.

    Each statement gives up the interpreter's lock and must win it back from the busy loop, and each
    value is bound under it.
    """
    # Measured on two cores that had other work: 200 000 events of 90 bytes in one flood, the loop
    # decoding them and encoding for one subscriber, switch interval 0.5 ms. Events a second, and
    # processor time of an event in both threads: multi-row VALUES 68 000, 14 us; a common table of
    # one payload a row 98 000, 10 us; this 174 000, 7.5 us. The loop's part of it is 4.4 us, of
    # which 2.2 are the decoding. One thread that did nothing else (executemany) made 60 000.
    statements: list[Statement] = []
    rows: list[EventRow] = []
    for stretch in alike:
        if stretch.session_key is not None and repeats.may_be_in(stretch.kind, stretch.payloads):
            rows.extend(map(repeats.packed, stretch.rows()))
        elif len(stretch.payloads) < _LONG:
            rows.extend(stretch.rows())
        else:
            statements.append(_insert_stretch(stretch))
    statements.extend(_insert_rows(rows))
    return statements


def _insert_stretch(stretch: Stretch) -> Statement:
    payloads = stretch.payloads
    lengths = list(map(len, payloads))
    # SQLite counts from 1.
    starts = accumulate(lengths, initial=1)
    places = [start << 32 | length for start, length in zip(starts, lengths, strict=False)]
    return _INSERT_STRETCH, (
        stretch.first_offset, stretch.session_key, stretch.first_seq,
        stretch.run.key if stretch.run else None, str(stretch.kind), stretch.source,
        stretch.flags, stretch.host, stretch.origin, stretch.at,
        b"".join(payloads), msgspec.json.encode(places).decode(),
    )  # fmt: skip


def _insert_rows(rows: Sequence[EventRow]) -> Iterator[Statement]:
    start = 0
    for size in _SIZES:
        while len(rows) - start >= size:
            some = rows[start : start + size]
            values = tuple(chain.from_iterable([row[:STORED_FIELDS] for row in some]))
            yield _INSERT_ROWS[size], values
            start += size
