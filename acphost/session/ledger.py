"""The ledger of agent processes: written before a launch, so that no crash leaves one behind."""

import os

import msgspec

from acphost.ids import Clock
from acphost.journal.rows import ProcessRow
from acphost.journal.statements import save_process
from acphost.journal.writer import Writer
from acphost.provider.launch import LaunchPlan
from acphost.provider.pool import Ledger
from acphost.transport.child import Child
from acphost.transport.processes import Process, boot_id


class ProcessLedger(Ledger):
    """Keeps a `ProcessRow` for each launch until nothing of it is left."""

    def __init__(self, writer: Writer, now: Clock) -> None:
        self._writer = writer
        self._now = now
        self._rows: dict[str, ProcessRow] = {}

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
        self._writer.record([save_process(row)])

    def on_ended(self, plan: LaunchPlan, child: Child, survivors: list[Process]) -> None:
        """Close the entry; one with survivors stays open for the sweep of the next start."""
        row = self._rows.pop(plan.launch_id)
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
