"""Reads as SQL, and how their rows become ours."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, get_type_hints

from acphost.errors import CursorMalformedError
from acphost.journal.packs import MOST_EVENTS
from acphost.journal.rows import BindingRow, DecisionRow, ProcessRow, RunRow, SessionRow
from acphost.journal.statements import stored_columns

T = TypeVar("T")

# -- events ---------------------------------------------------------------------------------------

_COLUMNS = (
    "SELECT e.offset, e.session_key, e.seq, e.run_key, e.kind, e.source, e.codec, e.flags,"
    " e.payload, e.host, e.origin, e.at, s.session_id, r.run_id, e.events"
    " FROM events e LEFT JOIN sessions s ON s.key = e.session_key"
    " LEFT JOIN runs r ON r.key = e.run_key "
)
# A row has events between two positions if its last is behind the one (that is its name), and its
# first not behind the other. Only a pack can have some of them beyond it, and no pack is longer
# than MOST_EVENTS: the first half of `_UPTO` is what an index can tell.
_UPTO = f"e.{{0}} < ?{{1}} + {MOST_EVENTS} AND +e.{{0}} - e.events < ?{{1}}"
EVENTS_BY_SEQ = f"""{_COLUMNS}
    WHERE e.session_key = ?1 AND e.seq > ?2 AND {_UPTO.format("seq", 3)} ORDER BY e.seq LIMIT ?4
"""
# By run the index of runs is walked, so that the later runs of a session cost nothing; it is in
# order of offsets, so the last seq that is known is looked up: that of an event in its row.
EVENTS_BY_RUN = f"""{_COLUMNS}
    WHERE +e.session_key = ?1 AND +e.seq > ?2 AND +e.seq - e.events < ?3 AND e.run_key = ?4
    AND e.offset > coalesce(
        (SELECT p.offset - p.seq + ?2 FROM events p WHERE p.session_key = ?1 AND p.seq >= ?2
        ORDER BY p.seq LIMIT 1), 0
    )
    ORDER BY e.offset LIMIT ?5
"""  # noqa: S608 (the columns are ours)
_BETWEEN = f"e.offset > ?1 AND {_UPTO.format('offset', 2)}"
EVENTS_BY_OFFSET = f"""{_COLUMNS}
    WHERE {_BETWEEN} ORDER BY e.offset LIMIT ?3
"""
EVENTS_OF_SESSIONS = f"""{_COLUMNS}
    WHERE {_BETWEEN} AND +e.session_key IN (SELECT value FROM json_each(?3))
    ORDER BY e.offset LIMIT ?4
"""  # noqa: S608 (as above)
EVENTS_OF_WORKSPACE = f"""{_COLUMNS}
    WHERE {_BETWEEN} AND s.workspace_id = ?3 ORDER BY e.offset LIMIT ?4
"""


_HEADS = (
    "SELECT g.first_offset, g.last_offset, g.session_key, g.first_seq, g.last_seq, g.codec"
    " FROM segments g WHERE "
)
SEGMENTS_BY_SEQ = f"""{_HEADS}
    g.session_key = ? AND g.last_seq > ? AND g.first_seq <= ? ORDER BY g.last_seq
"""
SEGMENTS_BY_RUN = f"""{_HEADS}
    g.session_key = ? AND g.last_seq > ? AND g.first_seq <= ? AND EXISTS (
        SELECT 1 FROM sealed_runs u WHERE u.run_key = ? AND u.first_offset = g.first_offset
    )
    ORDER BY g.last_seq
"""  # noqa: S608 (as above)
SEGMENTS_AROUND = f"{_HEADS} g.last_offset > ?1 AND g.first_offset <= ?1"
SEGMENTS_BEHIND = f"{_HEADS} g.first_offset > ?1 AND g.first_offset <= ?2"
#: To be added to one of the last two.
SEGMENTS_OF_SESSIONS = " AND g.session_key IN (SELECT value FROM json_each(?))"
SEGMENTS_OF_WORKSPACE = (
    " AND g.session_key IN (SELECT s.key FROM sessions s WHERE s.workspace_id = ?)"
)
SEGMENT_AT = f"""{_HEADS}
    g.session_key = ?1 AND g.first_offset <= ?2 AND g.last_offset >= ?2
"""
LAST_SEGMENT = f"{_HEADS} g.session_key = ? ORDER BY g.last_seq DESC LIMIT 1"
SEGMENT_CONTENT = "SELECT facts, payloads FROM segment_contents WHERE first_offset = ?"


def last_seq_of(session_key: str) -> str:
    """SQL for the last seq of a session; its plain events come after its sealed ones."""
    return (
        f"coalesce((SELECT max(e.seq) FROM events e WHERE e.session_key = {session_key}),"  # noqa: S608
        f" (SELECT max(g.last_seq) FROM segments g WHERE g.session_key = {session_key}), 0)"
    )


# -- rows -----------------------------------------------------------------------------------------


class Table(Generic[T]):
    """How the rows of one class are selected, and made of what comes back."""

    def __init__(self, row: type[T], name: str, **expressions: str) -> None:
        self._row = row
        columns: dict[str, str] = {column: f"t.{column}" for column in stored_columns(row)}
        columns.update(expressions)
        self._columns = tuple(columns)
        self._flags = tuple(flag for flag, kind in get_type_hints(row).items() if kind is bool)
        self.select = f"SELECT {', '.join(columns.values())} FROM {name} t "  # noqa: S608

    def make(self, values: Sequence[object]) -> T:
        """The row of one result."""
        members = dict(zip(self._columns, values, strict=True))
        for flag in self._flags:
            members[flag] = bool(members[flag])
        return self._row(**members)


SESSIONS = Table(
    SessionRow,
    "sessions",
    last_seq=last_seq_of("t.key"),
    queued_count=(
        "(SELECT count(*) FROM runs q WHERE q.session_key = t.key AND q.status = 'pending'"
        " AND q.status IN ('pending', 'running'))"
    ),
)
RUNS = Table(
    RunRow,
    "runs",
    last_seq=(
        "nullif(max(coalesce(t.last_seq, 0), coalesce((SELECT e.seq FROM events e"
        " WHERE e.run_key = t.key ORDER BY e.offset DESC LIMIT 1), (SELECT max(u.last_seq)"
        " FROM sealed_runs u WHERE u.run_key = t.key), 0)), 0)"
    ),
    queue_position=(
        "CASE WHEN t.status = 'pending' THEN (SELECT count(*) FROM runs q"
        " WHERE q.session_key = t.session_key AND q.status IN ('pending', 'running')"
        " AND (q.status = 'running' OR q.queue_order < t.queue_order)) END"
    ),
)
DECISIONS = Table(DecisionRow, "decisions")
BINDINGS = Table(BindingRow, "bindings")
PROCESSES = Table(ProcessRow, "processes")

# -- listings -------------------------------------------------------------------------------------

_LISTED = "(t.active_run_id IS NULL), (-t.updated_at), (-t.key)"
_STATUS = {
    "active": "t.active_run_id IS NOT NULL",
    "completed": "t.active_run_id IS NULL AND t.last_run_status = 'completed'",
    "failed": "t.active_run_id IS NULL AND t.last_run_status IN ('failed', 'interrupted')",
}
_MODES = frozenset(
    {"native_live", "resumed", "loaded", "replay_seen", "load_failed_new", "cold_resumed",
     "new_session"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """What a listed session must be; None is anything.

    `status` is `active`, `completed` or `failed` by its runs, a mode, or a session's own status.
    """

    workspace_id: str | None = None
    document_id: str | None = None
    runtime: str | None = None
    agent_id: str | None = None
    profile: str | None = None
    model: str | None = None
    actor_id: str | None = None
    status: str | None = None
    pinned: bool | None = None

    def conditions(self) -> tuple[list[str], list[object]]:
        """The filter as SQL conditions and their parameters."""
        equal: dict[str, object] = {
            "t.workspace_id": self.workspace_id,
            "t.document_id": self.document_id,
            "t.runtime": self.runtime,
            "t.agent_id": self.agent_id,
            "t.profile": self.profile,
            "t.resolved_model": self.model,
            "t.actor_id": self.actor_id,
            "t.pinned": self.pinned,
        }
        conditions = []
        if self.status in _STATUS:
            conditions.append(_STATUS[self.status])
        elif self.status is not None:
            equal["t.mode" if self.status in _MODES else "t.status"] = self.status
        given = {column: value for column, value in equal.items() if value is not None}
        conditions.extend(f"{column} = ?" for column in given)
        return conditions, list(given.values())


TURNS_IN = (
    "SELECT count(*) FROM runs WHERE session_key = ? AND acp_session_id = ? "
    "AND status = 'completed'"
)
SESSIONS_BY_ACP = (
    "SELECT acp_session_id, session_id FROM sessions "
    "WHERE agent_id = ? AND acp_session_id IS NOT NULL"
)


def list_sessions(
    wanted: SessionFilter, cursor: str | None, limit: int
) -> tuple[str, tuple[object, ...]]:
    """SQL for one page of sessions, active ones first, then the latest."""
    conditions, parameters = wanted.conditions()
    if cursor is not None:
        conditions.append(f"({_LISTED}) > (?, ?, ?)")
        parameters.extend(read_cursor(cursor, 3))
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return f"{SESSIONS.select}{where}ORDER BY {_LISTED} LIMIT ?", (*parameters, limit)


def session_cursor(row: SessionRow) -> str:
    """Where a listing goes on after this row."""
    return f"{int(row.active_run_id is None)}.{-row.updated_at}.{-row.key}"


def list_runs(
    session_key: int | None, status: str | None, cursor: str | None, limit: int
) -> tuple[str, tuple[object, ...]]:
    """SQL for one page of runs, the latest first."""
    equal = {"t.session_key": session_key, "t.status": status}
    conditions = [f"{column} = ?" for column, value in equal.items() if value is not None]
    parameters: list[object] = [value for value in equal.values() if value is not None]
    if cursor is not None:
        conditions.append("t.key < ?")
        parameters.extend(read_cursor(cursor, 1))
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return f"{RUNS.select}{where}ORDER BY t.key DESC LIMIT ?", (*parameters, limit)


def decision_cursor(row: DecisionRow) -> str:
    """Where a listing of decisions goes on after this one."""
    return f"{row.created_at}.{row.permission_id}"


def decision_place(cursor: str | None) -> tuple[int, str]:
    """The time and id behind which a listing of decisions goes on.

    Raises CursorMalformedError.
    """
    at, dot, permission_id = (cursor or "0.").partition(".")
    if not dot or not _NUMBER(at):
        raise CursorMalformedError(f"{cursor!r} is not a cursor of this listing")
    return int(at), permission_id


def read_cursor(text: str, size: int) -> list[int]:
    """The numbers of a listing's cursor.

    Raises CursorMalformedError for what no listing has given out.
    """
    numbers = text.split(".")
    if len(numbers) != size or not all(_NUMBER(number) for number in numbers):
        raise CursorMalformedError(f"{text!r} is not a cursor of this listing")
    return [int(number) for number in numbers]


_NUMBER = re.compile(r"-?[0-9]{1,18}").fullmatch
