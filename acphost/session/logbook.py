"""What went wrong lately, gathered from the journal when somebody asks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from acphost.journal.event import SYNTHETIC, EventRow
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow
from acphost.session.queries import Queries
from acphost.wire.base import timestamp
from acphost.wire.event import Kind
from acphost.wire.trouble import LogItem, RuntimeLogs, RuntimeLogsParams, Trouble

#: What is read at a time.
RUNS, EVENTS, BYTES = 50, 500, 4 << 20
#: Events that are looked at in all: trouble of long ago is in the journal.
MAX_LOOKED_AT = 50_000
#: So many events before and behind the beginning of a run are looked at for what its agent lacks.
AROUND = 25

Payload = dict[str, Any]


class Logbook:
    """Reads the latest runs, each from its end."""

    def __init__(self, reader: Reader, queries: Queries) -> None:
        self._reader = reader
        self._queries = queries

    async def latest(self, params: RuntimeLogsParams) -> RuntimeLogs:
        """The newest first. Raises SessionNotFoundError."""
        session_key = None
        if params.session_id is not None:
            session_key = (await self._queries.session_row(params.session_id)).key
        items: list[LogItem] = []
        seen: set[int] = set()
        cursor: str | None = None
        left = MAX_LOOKED_AT
        while True:
            runs, cursor = await self._reader.runs(
                session_key=session_key, cursor=cursor, limit=RUNS
            )
            for run in runs:
                if left <= 0 or len(items) >= params.limit:
                    break
                rows = [row for row in await self._start_of(run) if row.offset not in seen]
                seen.update(row.offset for row in rows)
                told, looked_at = await self._told_in(run, left)
                items += reversed(list(told_by(run, [*rows, *told])))
                left -= looked_at + 2 * AROUND
            if left <= 0 or len(items) >= params.limit or cursor is None:
                break
        items.sort(key=lambda each: each.at, reverse=True)
        incomplete = f"only the latest {MAX_LOOKED_AT} events were looked at" if left <= 0 else None
        return RuntimeLogs(items=items[: params.limit], incomplete=incomplete)

    async def _start_of(self, run: RunRow) -> list[EventRow]:
        """What was told of its session, not of a run, while the agent for it was started."""
        rows = await self._reader.events_after_seq(
            run.session_key,
            max(0, (run.first_seq or 1) - 1 - AROUND),
            limit=2 * AROUND,
            max_bytes=BYTES,
        )
        return [row for row in rows if row.run_key is None]

    async def _told_in(self, run: RunRow, most: int) -> tuple[list[EventRow], int]:
        """What matters of a run, from its end back; and how many events were looked at for it."""
        if run.first_seq is None or run.last_seq is None:
            return [], 0
        found: list[EventRow] = []
        end, first = run.last_seq, run.first_seq
        while end >= first and run.last_seq - end < most:
            begin = max(first, end - EVENTS + 1)
            found[:0] = await self._stretch(run, begin, end)
            end = begin - 1
        return found, run.last_seq - end

    async def _stretch(self, run: RunRow, begin: int, end: int) -> list[EventRow]:
        """What matters from one number to another, long events or short ones."""
        found: list[EventRow] = []
        after = begin - 1
        while after < end:
            rows = await self._reader.events_after_seq(
                run.session_key, after, limit=EVENTS, max_bytes=BYTES, upto_seq=end,
                run_key=run.key,
            )  # fmt: skip
            if not rows:
                break
            found += [row for row in rows if row.kind in _INTERESTING]
            after = rows[-1].seq or end
        return found


def told_by(run: RunRow, rows: list[EventRow]) -> Iterator[LogItem]:
    """The trouble in some events of a run, in order."""
    known = _Known({}, {})
    told: set[tuple[Trouble, str]] = set()
    for row in rows:
        # A call that its agent has left open ended with its turn: that is no failure.
        if row.kind not in _INTERESTING or (row.flags & SYNTHETIC and row.kind == Kind.TOOL_FAILED):
            continue
        payload = _payload(row)
        found = _found(row.kind, payload, known)
        # An agent's last words stand in the end of the run, too.
        if found is not None and (found[0] is not Trouble.STDERR or found not in told):
            told.add(found)
            yield LogItem(
                at=timestamp(row.at),
                kind=found[0],
                session_id=run.session_id,
                host_run_id=row.run_id,
                agent_id=run.agent_id,
                text=found[1],
            )


_INTERESTING = frozenset(
    {
        Kind.AGENT_STDERR,
        Kind.MCP_STATUS,
        Kind.RUN_FAILED,
        Kind.RUN_INTERRUPTED,
        Kind.TOOL_STARTED,
        Kind.TOOL_UPDATED,
        Kind.TOOL_FAILED,
        Kind.PERMISSION_REQUESTED,
        Kind.PERMISSION_RESOLVED,
    }
)


class _Known(NamedTuple):
    """What later events refer to."""

    options: dict[str, list[Payload]]
    titles: dict[str, str]


def _found(kind: str, payload: Payload, known: _Known) -> tuple[Trouble, str] | None:
    match kind:
        case Kind.AGENT_STDERR if payload.get("text"):
            return Trouble.STDERR, str(payload["text"]).strip()
        case Kind.MCP_STATUS if payload.get("error"):
            return Trouble.MCP_FAILED, f"{payload.get('server')}: {payload['error']}"
        case Kind.RUN_FAILED if payload.get("mcp"):
            # It opened no session, and these may be why.
            return Trouble.MCP_FAILED, str(payload.get("error"))
        case Kind.RUN_FAILED | Kind.RUN_INTERRUPTED if payload.get("stderr"):
            return Trouble.STDERR, str(payload["stderr"]).strip()
        case Kind.TOOL_FAILED:
            call = str(payload.get("toolCallId"))
            return Trouble.TOOL_FAILED, str(payload.get("title") or known.titles.get(call, call))
        case Kind.TOOL_STARTED | Kind.TOOL_UPDATED if payload.get("title"):
            known.titles[str(payload.get("toolCallId"))] = str(payload["title"])
        case Kind.PERMISSION_REQUESTED:
            known.options[str(payload.get("permissionId"))] = payload.get("options") or []
        case Kind.PERMISSION_RESOLVED:
            return _denied(payload, known.options.get(str(payload.get("permissionId")), []))
    return None


def _denied(payload: Payload, options: list[Payload]) -> tuple[Trouble, str] | None:
    chosen = payload.get("optionId")
    kinds = [str(each.get("kind")) for each in options if each.get("optionId") == chosen]
    if chosen is not None and not any(kind.startswith("reject") for kind in kinds):
        return None
    by = payload.get("rule") or (payload.get("by") or {}).get("clientName") or "nobody in time"
    return Trouble.DENIED, f"{chosen or payload.get('outcome')} by {by}"


def _payload(row: EventRow) -> Payload:
    try:
        value = msgspec.json.decode(row.payload)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
