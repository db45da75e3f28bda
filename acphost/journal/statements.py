"""Writes of single rows as values: SQL and its parameters, to be part of a unit of the writer."""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import TypeVar

from acphost.journal.rows import BindingRow, DecisionRow, ProcessRow, RunRow, SessionRow

#: SQL and its parameters.
Statement = tuple[str, tuple[object, ...]]
Row = TypeVar("Row")


def stored_columns(row: type) -> tuple[str, ...]:
    """The columns a row class is kept in: its fields but the derived ones."""
    return tuple(column.name for column in fields(row) if not column.metadata.get("derived"))


def _upsert(table: str, row: type[Row]) -> Callable[[Row], Statement]:
    """How to write a row, new or known: its first column is the primary key."""
    columns = stored_columns(row)
    assigned = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    marks = ", ".join("?" * len(columns))
    sql = (  # names of our own fields, nothing from outside
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {assigned}"
    )
    values = attrgetter(*columns)
    return lambda value: (sql, values(value))


#: Insert or replace the row of that key.
save_session = _upsert("sessions", SessionRow)
save_run = _upsert("runs", RunRow)
save_decision = _upsert("decisions", DecisionRow)
save_binding = _upsert("bindings", BindingRow)
save_process = _upsert("processes", ProcessRow)

_SAVE_PROMPT = (
    "INSERT INTO prompts (run_key, content) VALUES (?, ?) "
    "ON CONFLICT (run_key) DO UPDATE SET content = excluded.content"
)


def save_prompt(run_key: int, content: bytes) -> Statement:
    """Keep or replace the prompt of a run, as JSON."""
    return _SAVE_PROMPT, (run_key, content)


_SAVE_PROBE = (
    "INSERT INTO meta (name, value) VALUES ('probe:' || ?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def save_probe(agent_id: str, found: bytes) -> Statement:
    """Keep what a probe of an agent found, as JSON; it replaces what the last one did."""
    return _SAVE_PROBE, (agent_id, found)


_SAVE_GRANTS = (
    "INSERT INTO meta (name, value) VALUES ('grants:' || ?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def save_grants(actor_id: str, grants: bytes) -> Statement:
    """Keep the folders that an actor has granted, as JSON; they replace those of before."""
    return _SAVE_GRANTS, (actor_id, grants)


# Offsets are never given twice: remember how far they went before the rows that prove it go.
_MARK_OFFSET = (
    "INSERT INTO meta (name, value) SELECT 'lastOffset', max("
    "coalesce((SELECT max(offset) FROM events), 0), "
    "coalesce((SELECT max(last_offset) FROM segments), 0)) "
    "WHERE true ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
)
_ITS_SEGMENTS = "(SELECT first_offset FROM segments WHERE session_key = ?1)"
_ITS_ID = "(SELECT session_id FROM sessions WHERE key = ?1)"
_FORGET_SESSION = (
    "DELETE FROM prompts WHERE run_key IN (SELECT key FROM runs WHERE session_key = ?1)",
    "DELETE FROM decisions WHERE session_key = ?1",
    "DELETE FROM bindings WHERE session_key = ?1",
    "DELETE FROM runs WHERE session_key = ?1",
    "DELETE FROM events WHERE session_key = ?1",
    f"DELETE FROM sealed_runs WHERE first_offset IN {_ITS_SEGMENTS}",  # noqa: S608 (our words)
    f"DELETE FROM segment_contents WHERE first_offset IN {_ITS_SEGMENTS}",  # noqa: S608
    "DELETE FROM segments WHERE session_key = ?1",
    f"DELETE FROM processes WHERE ended_at IS NOT NULL AND session_id = {_ITS_ID}",  # noqa: S608
    "DELETE FROM sessions WHERE key = ?1",
)


def forget_session(session_key: int) -> tuple[Statement, ...]:
    """Delete all that is kept of a session; to be one unit."""
    return (_MARK_OFFSET, ()), *((sql, (session_key,)) for sql in _FORGET_SESSION)
