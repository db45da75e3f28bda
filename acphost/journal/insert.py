"""The statements of the hot path: many events into the journal."""

from collections.abc import Iterator, Sequence

from acphost.journal.delta import Repeats
from acphost.journal.event import STORED_FIELDS, Stretch
from acphost.journal.packs import SHORTEST, StoredRow, packed
from acphost.journal.statements import Statement

_COLUMNS = (
    "offset, session_key, seq, run_key, kind, source, codec, flags, payload, host, origin, at,"
    " events"
)
_MARKS = "(" + ", ".join("?" * (STORED_FIELDS + 1)) + ")"
_SIZES = (256, 32, 4, 1)
_INSERT_ROWS = {
    size: f"INSERT INTO events ({_COLUMNS}) VALUES {', '.join([_MARKS] * size)}"  # noqa: S608
    for size in _SIZES
}


def insert_statements(alike: Sequence[Stretch], repeats: Repeats) -> list[Statement]:
    """What inserts events, with as few statements, rows and bound values as may be.

    Each statement gives up the interpreter's lock and must win it back from the busy loop, and each
    value is bound under it; each row has its place in three trees.
    """
    rows: list[StoredRow] = []
    for stretch in alike:
        if stretch.session_key is not None and repeats.may_be_in(stretch.kind, stretch.payloads):
            rows.extend(StoredRow(repeats.packed(row)) for row in stretch.rows())
        elif len(stretch.payloads) < SHORTEST:
            rows.extend(map(StoredRow, stretch.rows()))
        else:
            rows.extend(packed(stretch))
    return list(_insert_rows(rows))


def _insert_rows(rows: Sequence[StoredRow]) -> Iterator[Statement]:
    start = 0
    for size in _SIZES:
        while len(rows) - start >= size:
            values: list[object] = []
            for row, events in rows[start : start + size]:
                values += row[:STORED_FIELDS]
                values.append(events)
            yield _INSERT_ROWS[size], tuple(values)
            start += size
