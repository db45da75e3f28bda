"""The agents' processes as clients see them: the ledger, with what the system knows beside it."""

import anyio.to_thread
import msgspec
from msgspec import Raw

from acphost.ids import Clock
from acphost.journal.reader import Reader
from acphost.journal.rows import ProcessRow
from acphost.provider.pool import AgentPool
from acphost.provider.process import AgentProcess
from acphost.session.house import House
from acphost.session.ledger import launch_of
from acphost.transport.process_figures import Family, Figures, families
from acphost.transport.processes import Launch
from acphost.wire.daemon import Descendant, ProcessRecord
from acphost.wire.host import Page


class ProcessBoard:
    """Tells which processes there are of ours, what they take, and since when."""

    def __init__(self, reader: Reader, pool: AgentPool, house: House, now: Clock) -> None:
        self._reader = reader
        self._pool = pool
        self._house = house
        self._now = now

    async def page(self, session_id: str | None = None) -> Page:
        """Every launch of which something lives, the oldest first; or those of one session."""
        rows = await self._reader.processes(unended_only=True)
        live = {str(process.plan.launch_id): process for process in self._pool.processes}
        served = self._house.served()
        commands = self._house.commands()
        if session_id is not None:
            rows = [
                row
                for row in rows
                if session_id == row.session_id or session_id in served.get(row.launch_id, ())
            ]
        launches = [_launch(row, live.get(row.launch_id)) for row in rows]
        found = await anyio.to_thread.run_sync(families, launches)
        now = self._now()
        records = []
        for row in rows:
            family, process = found[row.launch_id], live.get(row.launch_id)
            if process is not None or family.leader is not None or family.descendants:
                sessions = served.get(row.launch_id, [])
                state = "live" if row.launch_id in commands else _state(process)
                records.append(_record(row, state, family, sessions, now))
        return Page(items=[Raw(msgspec.json.encode(record)) for record in records])


def _launch(row: ProcessRow, process: AgentProcess | None) -> Launch:
    launch = launch_of(row)
    if row.pid is None and process is not None:
        return launch._replace(pid=process.pid)
    return launch


def _record(
    row: ProcessRow, state: str, family: Family, sessions: list[str], now: int
) -> ProcessRecord:
    leader = family.leader
    return ProcessRecord(
        launch_id=row.launch_id,
        agent_id=row.agent_id,
        session_id=row.session_id,
        session_ids=sessions,
        pid=row.pid,
        state=state,
        command=leader.command if leader is not None else "",
        memory_bytes=None if leader is None else leader.memory_bytes,
        age_ms=max(0, now - row.started_at),
        descendants=[_descendant(each) for each in family.descendants],
        left_group=[
            each.process.pid for each in family.descendants if row.pgid and each.group != row.pgid
        ],
    )


def _state(process: AgentProcess | None) -> str:
    """`left` is what outlived its end: a process of an earlier daemon, or one that cannot die."""
    if process is None:
        return "left"
    # Retired it still serves those who are in it, and ends with the last of them.
    if process.was_asked_to_stop or (process.is_retired and not process.sinks):
        return "stopping"
    if not process.greeting.protocol_version:
        return "starting"
    return "live" if process.is_live else "stopping"


def _descendant(figures: Figures) -> Descendant:
    return Descendant(
        pid=figures.process.pid,
        command=figures.command,
        memory_bytes=figures.memory_bytes,
        age_ms=figures.age_ms,
    )
