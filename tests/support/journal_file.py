"""The journal as a file: every event in it, held against the invariants."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from acphost.journal.history import Bounds, History, snapshot
from acphost.journal.segment_cache import SegmentCache

TERMINAL = {"run.completed", "run.failed", "run.cancelled", "run.interrupted"}
ENDED = {"completed", "failed", "cancelled", "interrupted"}


class Row(NamedTuple):
    """An event as it is on disk."""

    offset: int
    session_id: str | None
    seq: int | None
    run_id: str | None
    kind: str
    payload: bytes
    host: dict[str, Any]

    @property
    def told(self) -> tuple[int, str | None, int | None, str | None, str]:
        """What a client must have been told of it."""
        return self.offset, self.session_id, self.seq, self.run_id, self.kind

    @property
    def body(self) -> Any:  # noqa: ANN401  it is JSON
        """The payload, read."""
        return json.loads(self.payload.decode("utf-8", "replace"))


class JournalFile:
    """What is on disk, for a test to look at."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def query(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """Rows of any table."""
        connection = sqlite3.connect(self.path)
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(sql, parameters)]
        finally:
            connection.close()

    def rows(self, after: int = 0) -> list[Row]:
        """Every event behind an offset, in the order of the journal."""
        whole = Bounds(limit=1 << 40, max_bytes=1 << 60)
        connection = sqlite3.connect(self.path, isolation_level=None)
        with closing(connection), snapshot(connection):
            rows = History(connection, SegmentCache()).after_offset(after, whole)
        return [
            Row(
                row.offset, row.session_id, row.seq, row.run_id, row.kind, row.payload,
                json.loads(row.host or b"{}"),
            )
            for row in rows
        ]  # fmt: skip

    def problems(self, rows: list[Row] | None = None) -> list[str]:
        """Every broken invariant, in a sentence; to be asked when no daemon runs.

        `rows`: all of them, if they have been read.
        """
        rows = self.rows() if rows is None else rows
        return [*_numbering(rows), *self._runs(rows), *self.left_open()]

    def _runs(self, rows: list[Row]) -> Iterator[str]:
        by_run: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row.run_id is not None:
                by_run[row.run_id].append(row)
        for run in self.query("SELECT run_id, status, terminal_seq FROM runs"):
            events = by_run[run["run_id"]]
            ends = [row.seq for row in events if row.kind in TERMINAL]
            created = sum(row.kind == "run.created" for row in events)
            name = f"run {run['run_id']} ({run['status']})"
            if created != 1:
                yield f"{name} has {created} run.created"
            if run["status"] not in ENDED:
                if ends:
                    yield f"{name} is open, yet has terminal events at {ends}"
            elif ends != [run["terminal_seq"]]:
                yield f"{name} ends at {run['terminal_seq']}, its terminal events are at {ends}"
            else:
                yield from _after_the_end(name, events)

    def left_open(self) -> Iterator[str]:
        """What only a running daemon may have open."""
        for decision in self.query("SELECT * FROM decisions WHERE status = 'pending'"):
            yield f"decision {decision['permission_id']} is pending and nobody waits for it"
        for binding in self.query("SELECT * FROM bindings WHERE status = 'live'"):
            yield f"binding {binding['binding_id']} is live without a daemon"
        for process in self.query("SELECT * FROM processes WHERE ended_at IS NULL"):
            yield f"process {process['pid']} of {process['agent_id']} was not seen to end"
        for session in self.query("SELECT * FROM sessions"):
            if session["active_run_id"] or session["status"] not in ("idle", "held", "failed",
                                                                     "auth_required"):  # fmt: skip
                yield f"session {session['session_id']} is still {session['status']}"


def _numbering(rows: list[Row]) -> Iterator[str]:
    last: dict[str | None, int] = {}
    for row in rows:
        if row.session_id is not None:
            expected = last.get(row.session_id, 0) + 1
            if row.seq != expected:
                yield f"{row.session_id}: seq {row.seq} where {expected} was due"
            last[row.session_id] = row.seq or 0
        elif row.seq is not None:
            yield f"event {row.offset} has a seq and no session"


def _after_the_end(name: str, events: list[Row]) -> Iterator[str]:
    still_open: set[str] = set()
    over = False
    for row in events:
        if over and not row.host.get("late"):
            yield f"{name} receives {row.kind} after its end, not marked late"
        elif row.kind.startswith("tool.") and not over:
            call = row.body["toolCallId"]
            if row.kind in ("tool.completed", "tool.failed"):
                still_open.discard(call)
            elif row.kind == "tool.started" or not _was_closed(events, row, call):
                still_open.add(call)
        if row.kind in TERMINAL:
            over = True
    for call in sorted(still_open):
        yield f"{name} is over and its tool call {call} is open"


def _was_closed(events: list[Row], until: Row, call: str) -> bool:
    """Whether a call had ended before: a later update does not open it again."""
    return any(
        row.kind in ("tool.completed", "tool.failed") and row.body["toolCallId"] == call
        for row in events[: events.index(until)]
    )
