"""Reading the store: each call one short transaction, so only what is committed is ever seen."""

import sqlite3
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from acphost.journal.event import EventRow
from acphost.journal.history import NO_END, Bounds, History, snapshot
from acphost.journal.pool import ReadPool
from acphost.journal.recovery import Heads, Unfinished, read_heads, read_unfinished
from acphost.journal.rows import BindingRow, DecisionRow, ProcessRow, RunRow, SessionRow
from acphost.journal.segment_cache import SegmentCache
from acphost.journal.selects import (
    BINDINGS,
    DECISIONS,
    PROCESSES,
    RUNS,
    SESSIONS,
    SESSIONS_BY_ACP,
    TURNS_IN,
    SessionFilter,
    Table,
    decision_cursor,
    decision_place,
    last_seq_of,
    list_runs,
    list_sessions,
    session_cursor,
)
from acphost.journal.space import Holding, Space, read_holdings, read_space

T = TypeVar("T")

_ANY_SESSION = SessionFilter()


class Reader:
    """Questions to the store."""

    def __init__(self, pool: ReadPool) -> None:
        self._pool = pool
        self._segments = SegmentCache()

    # -- events -----------------------------------------------------------------------------------

    async def events_after_seq(
        self,
        session_key: int,
        seq: int,
        *,
        limit: int,
        max_bytes: int,
        upto_seq: int | None = None,
        run_key: int | None = None,
    ) -> list[EventRow]:
        """Events of a session (or of one run of it) with a greater seq, in order.

        At least one if there is any; then as many as `limit` and `max_bytes` of payload allow.
        """
        bounds = Bounds(limit, max_bytes, NO_END if upto_seq is None else upto_seq)
        return await self._read(lambda past: past.after_seq(session_key, seq, bounds, run_key))

    async def events_after_offset(
        self,
        offset: int,
        *,
        limit: int,
        max_bytes: int,
        upto_offset: int | None = None,
        session_keys: Collection[int] | None = None,
        workspace_id: str | None = None,
    ) -> list[EventRow]:
        """Events with a greater offset, in order: all, of some sessions, or of a workspace.

        A filter that matches little reads much: bound it by `upto_offset` and go on from there.
        """
        bounds = Bounds(limit, max_bytes, NO_END if upto_offset is None else upto_offset)
        return await self._read(
            lambda past: past.after_offset(
                offset, bounds, session_keys=session_keys, workspace_id=workspace_id
            )
        )

    async def _read(self, ask: Callable[[History], list[EventRow]]) -> list[EventRow]:
        def work(connection: sqlite3.Connection) -> list[EventRow]:
            with snapshot(connection):
                return ask(History(connection, self._segments))

        return await self._pool.call(work)

    async def head_seq(self, session_key: int) -> int:
        """The last committed seq of a session; 0 if it has none."""
        return (await self.session_heads([session_key])).get(session_key, 0)

    async def session_heads(self, session_keys: Collection[int] | None = None) -> dict[int, int]:
        """The last committed seq of each session, or of some."""
        if session_keys is None:
            rows = await self._pool.all(_SESSION_HEADS)
        else:
            rows = await self._pool.all(_SOME_SESSION_HEADS, (_as_json(session_keys),))
        return {int(str(key)): int(str(seq)) for key, seq in rows}

    async def heads(self) -> Heads:
        """The greatest offset and keys in the store."""
        return await self._pool.call(read_heads)

    # -- sessions ---------------------------------------------------------------------------------

    async def session(self, session_id: str) -> SessionRow | None:
        """The session of that id."""
        return await self._one(SESSIONS, "WHERE t.session_id = ?", session_id)

    async def session_by_key(self, key: int) -> SessionRow | None:
        """The session of that key."""
        return await self._one(SESSIONS, "WHERE t.key = ?", key)

    async def sessions(
        self, wanted: SessionFilter = _ANY_SESSION, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[SessionRow], str | None]:
        """A page of sessions, active ones first, then the latest; and where the next page begins.

        Raises CursorMalformedError.
        """
        rows = await self._pool.all(*list_sessions(wanted, cursor, limit + 1))
        page = [SESSIONS.make(row) for row in rows[:limit]]
        return page, session_cursor(page[-1]) if len(rows) > limit else None

    async def turns_in(self, session_key: int, acp_session_id: str) -> int:
        """How many turns of a session were completed in that session of the agent's."""
        ((count,),) = await self._pool.all(TURNS_IN, (session_key, acp_session_id))
        return int(count)  # type: ignore[call-overload,no-any-return]  # it counts

    async def sessions_by_acp(self, agent_id: str) -> dict[str, str]:
        """Which session of ours is tied to which of the agent's own."""
        rows = await self._pool.all(SESSIONS_BY_ACP, (agent_id,))
        return {str(acp_session_id): str(session_id) for acp_session_id, session_id in rows}

    # -- runs -------------------------------------------------------------------------------------

    async def run(self, run_id: str) -> RunRow | None:
        """The run of that id."""
        return await self._one(RUNS, "WHERE t.run_id = ?", run_id)

    async def run_by_key(self, idempotency_key: str) -> RunRow | None:
        """The run that was made under that idempotency key."""
        return await self._one(RUNS, "WHERE t.idempotency_key = ?", idempotency_key)

    async def run_by_resume(self, parent_run_id: str, resume_request_id: str) -> RunRow | None:
        """The child that was made by that request to resume."""
        where = "WHERE t.parent_run_id = ? AND t.resume_request_id = ?"
        return await self._one(RUNS, where, parent_run_id, resume_request_id)

    async def runs(
        self,
        *,
        session_key: int | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> tuple[list[RunRow], str | None]:
        """A page of runs, the latest first; and where the next page begins.

        Raises CursorMalformedError.
        """
        rows = await self._pool.all(*list_runs(session_key, status, cursor, limit + 1))
        page = [RUNS.make(row) for row in rows[:limit]]
        return page, str(page[-1].key) if len(rows) > limit else None

    async def queued(self, session_key: int) -> list[RunRow]:
        """The runs that wait, in the order of the queue."""
        # The second condition is that of the index of live runs.
        where = (
            "WHERE t.session_key = ? AND t.status = 'pending'"
            " AND t.status IN ('pending', 'running') ORDER BY t.queue_order, t.key"
        )
        return await self._all(RUNS, where, session_key)

    async def unresolved_runs(self, session_key: int | None = None) -> list[RunRow]:
        """Interrupted runs that nobody has resumed or dismissed, the oldest first."""
        where = (
            "WHERE t.status = 'interrupted' AND t.dismissed_at IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM runs c WHERE c.parent_run_id = t.run_id)"
        )
        if session_key is None:
            return await self._all(RUNS, f"{where} ORDER BY t.key")
        return await self._all(RUNS, f"{where} AND t.session_key = ? ORDER BY t.key", session_key)

    async def prompt(self, run_key: int) -> bytes | None:
        """The prompt of a run, as JSON."""
        rows = await self._pool.all("SELECT content FROM prompts WHERE run_key = ?", (run_key,))
        return bytes(rows[0][0]) if rows else None  # type: ignore[call-overload]

    # -- decisions, bindings, processes -----------------------------------------------------------

    async def decision(self, permission_id: str) -> DecisionRow | None:
        """The decision of that id."""
        return await self._one(DECISIONS, "WHERE t.permission_id = ?", permission_id)

    async def decisions(
        self,
        *,
        session_key: int | None = None,
        run_key: int | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 1000,
    ) -> tuple[list[DecisionRow], str | None]:
        """A page of decisions of a session, a run, or all, the oldest first; where the next begins.

        Raises CursorMalformedError.
        """
        equal = {"t.session_key": session_key, "t.run_key": run_key, "t.status": status}
        given = {column: value for column, value in equal.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in given) or "true"
        where = f"WHERE {where} AND (t.created_at, t.permission_id) > (?, ?)"
        where += " ORDER BY t.created_at, t.permission_id LIMIT ?"
        at, after = decision_place(cursor)
        rows = await self._all(DECISIONS, where, *given.values(), at, after, limit + 1)
        return rows[:limit], decision_cursor(rows[limit - 1]) if len(rows) > limit else None

    async def binding(self, session_key: int) -> BindingRow | None:
        """The live binding of a session, else its latest."""
        where = (
            "WHERE t.session_key = ? ORDER BY t.status = 'live' DESC, t.created_at DESC,"
            " t.rowid DESC LIMIT 1"
        )
        return await self._one(BINDINGS, where, session_key)

    async def bindings(self, session_key: int) -> list[BindingRow]:
        """All bindings a session has had, the oldest first."""
        where = "WHERE t.session_key = ? ORDER BY t.created_at, t.rowid"
        return await self._all(BINDINGS, where, session_key)

    async def processes(self, *, unended_only: bool = False) -> list[ProcessRow]:
        """The ledger of processes, the oldest first."""
        where = "WHERE t.ended_at IS NULL " if unended_only else ""
        return await self._all(PROCESSES, where + "ORDER BY t.started_at, t.rowid")

    # -- recovery ---------------------------------------------------------------------------------

    async def grants(self) -> dict[str, bytes]:
        """The folders that each actor has granted, as JSON, by actor id."""
        rows = await self._pool.all(
            "SELECT substr(name, 8), value FROM meta WHERE name LIKE 'grants:%'"
        )
        return {str(actor_id): bytes(kept) for actor_id, kept in rows}  # type: ignore[call-overload]

    async def probes(self) -> dict[str, bytes]:
        """What the last probe of each agent found, by agent id."""
        rows = await self._pool.all(
            "SELECT substr(name, 7), value FROM meta WHERE name LIKE 'probe:%'"
        )
        return {str(agent_id): bytes(found) for agent_id, found in rows}  # type: ignore[call-overload]

    async def unfinished(self) -> Unfinished:
        """What recovery has to look at."""
        return await self._pool.call(read_unfinished)

    # -- room -------------------------------------------------------------------------------------

    async def space(self) -> Space:
        """How much room the store takes."""
        return await self._pool.call(read_space)

    async def holdings(self) -> list[Holding]:
        """Sessions that could be deleted: neither pinned, nor active, nor with a queue.

        The longest unused first.
        """
        return await self._pool.call(read_holdings)

    # -- how --------------------------------------------------------------------------------------

    async def _one(self, table: Table[T], where: str, *parameters: object) -> T | None:
        rows = await self._pool.all(table.select + where, parameters)
        return table.make(rows[0]) if rows else None

    async def _all(self, table: Table[T], where: str, *parameters: object) -> list[T]:
        rows = await self._pool.all(table.select + where, parameters)
        return [table.make(row) for row in rows]


_SESSION_HEADS = f"SELECT t.key, {last_seq_of('t.key')} FROM sessions t"  # noqa: S608
_SOME_SESSION_HEADS = f"{_SESSION_HEADS} WHERE t.key IN (SELECT value FROM json_each(?))"  # noqa: S608


def _as_json(keys: Collection[int]) -> str:
    return msgspec.json.encode(sorted(keys)).decode()
