"""What an earlier daemon left open in the store."""

import sqlite3
from typing import NamedTuple, TypeVar

from acphost.journal.rows import BindingRow, DecisionRow, ProcessRow, RunRow
from acphost.journal.selects import BINDINGS, DECISIONS, PROCESSES, RUNS, Table

T = TypeVar("T")


class Heads(NamedTuple):
    """The greatest numbers in the store."""

    offset: int = 0
    session_key: int = 0
    run_key: int = 0


class Unfinished(NamedTuple):
    """All that is not closed, as one moment of the store."""

    #: Pending and running, by session and place in the queue.
    runs: list[RunRow]
    #: Ended by status, but without their terminal event.
    endless: list[RunRow]
    decisions: list[DecisionRow]
    bindings: list[BindingRow]
    processes: list[ProcessRow]


_HEADS = (
    "SELECT max(coalesce((SELECT max(offset) FROM events), 0),"
    " coalesce((SELECT max(last_offset) FROM segments), 0),"
    " coalesce((SELECT value FROM meta WHERE name = 'lastOffset'), 0)),"
    " coalesce((SELECT max(key) FROM sessions), 0), coalesce((SELECT max(key) FROM runs), 0)"
)
_LIVE_RUNS = "WHERE t.status IN ('pending', 'running') ORDER BY t.session_key, t.queue_order, t.key"
_ENDLESS = (
    "WHERE t.status IN ('completed', 'failed', 'cancelled', 'interrupted') AND NOT EXISTS"
    " (SELECT 1 FROM events e WHERE e.session_key = t.session_key AND e.seq = t.terminal_seq"
    " AND e.run_key = t.key"
    " AND e.kind IN ('run.completed', 'run.failed', 'run.cancelled', 'run.interrupted'))"
    " AND NOT EXISTS (SELECT 1 FROM sealed_runs u WHERE u.run_key = t.key"
    " AND u.terminal_seq = t.terminal_seq)"
    " ORDER BY t.key"
)
_PENDING = "WHERE t.status = 'pending' ORDER BY t.created_at, t.permission_id"
_LIVE_BINDINGS = "WHERE t.status = 'live' ORDER BY t.created_at, t.rowid"
_UNENDED = "WHERE t.ended_at IS NULL ORDER BY t.started_at, t.rowid"


def read_heads(connection: sqlite3.Connection) -> Heads:
    """The greatest offset and keys, also of what has been deleted."""
    return Heads(*connection.execute(_HEADS).fetchone())


def read_unfinished(connection: sqlite3.Connection) -> Unfinished:
    """What is not closed."""

    def all_of(table: Table[T], where: str) -> list[T]:
        return [table.make(row) for row in connection.execute(table.select + where).fetchall()]

    connection.execute("BEGIN")
    try:
        return Unfinished(
            all_of(RUNS, _LIVE_RUNS),
            all_of(RUNS, _ENDLESS),
            all_of(DECISIONS, _PENDING),
            all_of(BINDINGS, _LIVE_BINDINGS),
            all_of(PROCESSES, _UNENDED),
        )
    finally:
        connection.execute("COMMIT")
