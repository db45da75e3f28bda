"""The ledger of agent processes: written before a launch, so that no crash leaves one behind."""

import os

import anyio.to_thread
import msgspec

from acphost.ids import Clock
from acphost.journal.rows import ProcessRow
from acphost.journal.statements import save_process
from acphost.journal.writer import Writer
from acphost.provider.launch import LaunchPlan
from acphost.provider.pool import Ledger
from acphost.transport.child import Child
from acphost.transport.lineage import relatives, remembered
from acphost.transport.processes import Launch, Process, boot_id


class ProcessLedger(Ledger):
    """Keeps a `ProcessRow` for each launch until nothing of it is left."""

    def __init__(self, writer: Writer, now: Clock) -> None:
        self._writer = writer
        self._now = now
        self._rows: dict[str, ProcessRow] = {}
        self._children: dict[str, Child] = {}

    async def on_launching(self, plan: LaunchPlan, session_id: str | None) -> None:
        """Record the mark that the process and all it starts will carry."""
        row = ProcessRow(
            launch_id=plan.launch_id,
            agent_id=plan.agent_id,
            session_id=session_id,
            boot_id=boot_id(),
            host_pid=os.getpid(),
            command=msgspec.json.encode(plan.agent.command),
            started_at=self._now(),
            cgroup=plan.cgroup,
        )
        self._rows[plan.launch_id] = row
        await self._writer.durable(self._writer.record([save_process(row)]))

    def on_spawned(self, plan: LaunchPlan, child: Child) -> None:
        """Record which process it became."""
        row = self._rows[plan.launch_id]
        row.pid, row.birth, row.pgid = child.pid, child.birth, child.pgid
        self._children[plan.launch_id] = child
        self._writer.record([save_process(row)])

    async def note_descendants(self) -> None:
        """Record what the processes have started: who sheds its mark is known by this alone."""
        known = {
            launch_id: [Process(child.pid, child.birth), *child.relatives]
            for launch_id, child in self._children.items()
        }
        found = await anyio.to_thread.run_sync(relatives, known)
        for launch_id, seen in found.items():
            child, row = self._children.get(launch_id), self._rows.get(launch_id)
            if child is None or row is None:
                continue  # it ended meanwhile
            child.relatives = [each.process for each in seen]
            told = msgspec.json.encode(seen).decode() if seen else None
            if told != row.descendants:
                row.descendants = told
                self._writer.record([save_process(row)])

    def on_ended(self, plan: LaunchPlan, child: Child, survivors: list[Process]) -> None:
        """Close the entry; one with survivors stays open for the sweep of the next start."""
        row = self._rows.pop(plan.launch_id)
        self._children.pop(plan.launch_id, None)
        if child.exit is not None:
            row.exit_code, row.exit_signal = child.exit
        if not survivors:
            row.ended_at = self._now()
        self._writer.record([save_process(row)])

    def on_failed(self, plan: LaunchPlan) -> None:
        """Nothing was started after all."""
        row = self._rows.pop(plan.launch_id, None)
        if row is not None:
            row.ended_at = self._now()
            self._writer.record([save_process(row)])


def launch_of(row: ProcessRow) -> Launch:
    """What the ledger remembers of a launch."""
    try:
        seen = remembered(row.descendants)
    except msgspec.DecodeError:
        seen = []  # `fsck` tells of it; the other means are still there
    return Launch(
        launch_id=row.launch_id,
        pid=row.pid or 0,
        birth=row.birth or "",
        pgid=row.pgid or 0,
        boot_id=row.boot_id or "",
        cgroup=row.cgroup or "",
        descendants=tuple(each.process for each in seen),
    )
