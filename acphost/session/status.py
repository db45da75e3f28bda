"""The runtime status of a session in one snapshot (contract section 5)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
import msgspec
from msgspec import Raw

from acphost.errors import AgentNotFoundError
from acphost.journal.rows import SessionRow
from acphost.journal.writer import Writer
from acphost.provider.check import NOT_INSTALLED, check_agent
from acphost.provider.pool import AgentPool
from acphost.session.conversation import Conversation
from acphost.session.house import House
from acphost.session.queries import Queries
from acphost.session.usage import UsageLedger
from acphost.session.views import quiet_or
from acphost.settings.environment import child_environment
from acphost.settings.model import Settings
from acphost.wire.agents import AgentDescriptor, AgentHealth, Finding, Severity
from acphost.wire.base import optional_timestamp
from acphost.wire.host import Page, RunStatus, SessionStatus
from acphost.wire.params import RuntimeStatusParams, SessionListParams
from acphost.wire.status import (
    AcpStatus,
    ActiveRunStatus,
    ChatStatus,
    ColdResume,
    ContextUsage,
    Continuity,
    Counts,
    Jobs,
    LiveBinding,
    McpStatus,
    ModelStatus,
    QueueStatus,
    RuntimeStatus,
    ToolCounts,
    UsageStatus,
)


class StatusBoard:
    """Tells what every session and agent is doing, from the store and the live bindings."""

    def __init__(
        self,
        house: House,
        queries: Queries,
        pool: AgentPool,
        settings: Callable[[], Settings],
        writer: Writer,
    ) -> None:
        self._house = house
        self._queries = queries
        self._pool = pool
        self._settings = settings
        self._writer = writer

    async def of_session(self, session_id: str) -> RuntimeStatus:
        """One session's status. Raises SessionNotFoundError."""
        return self.of_row(await self._queries.session_row(session_id))

    async def of_all(self, params: RuntimeStatusParams) -> Page:
        """Every session's status, active ones first."""
        wanted = SessionListParams(
            workspace_id=params.workspace_id, document_id=params.document_id, limit=200
        )
        rows = await self._queries.session_rows(wanted)
        return Page(items=[Raw(msgspec.json.encode(self.of_row(row))) for row in rows])

    def of_row(self, row: SessionRow) -> RuntimeStatus:
        """The status of a session that was just read."""
        live = self._house.live(row.session_id)
        is_quiet = live is not None and live.is_quiet()
        is_chat = self._pool.traits(row.agent_id, row.runtime).is_stateless
        extra = msgspec.json.decode(row.additional_directories, type=list[str])
        granted = self._house.grants.folders(row.actor_id)
        return RuntimeStatus(
            mnote_session_id=row.session_id,
            runtime=row.runtime,
            profile=row.profile,
            mode=row.mode,
            status=quiet_or(row.status, is_quiet=is_quiet),
            status_reason=self._reason(row, live, is_quiet=is_quiet),
            continuity=Continuity(
                mode=row.mode, code=row.continuity_code, reason=row.continuity_reason
            ),
            active_run=_active(row),
            acp=None if is_chat else _acp(row, live),
            chat=ChatStatus() if is_chat else None,
            model=self._model(row),
            roots=Counts(write=1 + len(extra) + len(granted.write), read_only=len(granted.read)),
            mcp=_mcp(row, live),
            tools=ToolCounts(enabled=0, disabled=0),
            queue=QueueStatus(queued=row.queued_count, held=row.held_reason),
            jobs=_jobs(live),
            last_sign_of_life_at=optional_timestamp(live.state.last_sign if live else None),
            usage=_usage(row, live),
            cold_resume=ColdResume(
                packet_bytes=row.cold_packet_bytes, truncated_reason=row.cold_truncated_reason
            ),
            logs=[],
        )

    def _reason(self, row: SessionRow, live: Conversation | None, *, is_quiet: bool) -> str | None:
        turn = live.state.turn if live else None
        if live is None or turn is None:
            return row.status_reason
        if not self._writer.has_room:
            return self._writer.health.reason_to_wait
        if not is_quiet:
            return row.status_reason
        silence = f"no sign of life for {(live.state.ticks() - turn.heard) // 1000} s"
        binding = live.binder.binding
        unread = 0 if binding is None else binding.process.connection.unread_bytes
        if unread:
            return f"{silence}; the agent has not read {unread} bytes that wait for it"
        return f"{silence}; the agent may be retrying in silence"

    def _model(self, row: SessionRow) -> ModelStatus:
        try:
            traits = self._pool.traits(row.agent_id)
            command = self._pool.agent(row.agent_id).command
        except AgentNotFoundError:
            return ModelStatus(
                profile_id=row.profile,
                resolved_model=row.resolved_model,
                provider_kind="acp",
                credential_status="unknown",
                config_source="env",
                runtime_binary=None,
            )
        return ModelStatus(
            profile_id=row.profile,
            resolved_model=row.resolved_model,
            provider_kind=traits.provider_kind,
            credential_status="unknown",
            config_source="profile file",
            runtime_binary=Path(command[0]).name,
        )

    # -- agents -----------------------------------------------------------------------------------

    async def agents(self, environ: Mapping[str, str]) -> list[AgentDescriptor]:
        """All configured agents, and whether each could be started; starts none."""
        described = []
        for agent_id, agent in sorted(self._settings().agents.items()):
            traits = self._pool.traits_of(agent.runtime)
            env = traits.environment(child_environment(agent, environ))
            checks = await anyio.to_thread.run_sync(check_agent, agent, traits, env, environ)
            findings = [each for each in checks if each.severity is not Severity.OK]
            problems = [each.message for each in findings]
            if self._pool.is_resting(agent_id):
                problems.append("failed too often and rests; see the last error of its sessions")
            probe = self._pool.probes.get(agent_id)
            described.append(
                AgentDescriptor(
                    agent_id=agent_id,
                    display_name=agent.display_name or agent_id,
                    provider=traits.provider,
                    runtime=agent.runtime,
                    acp_runtime=not traits.is_stateless,
                    health=AgentHealth(
                        installed=all(each.code != NOT_INSTALLED for each in findings),
                        version=self._pool.version(agent_id) or (probe.version if probe else None),
                        launch=list(agent.command),
                        problems=problems,
                        state=self._readiness(agent_id, findings),
                    ),
                    probe=probe,
                )
            )
        return described

    def _readiness(self, agent_id: str, findings: Sequence[Finding]) -> str:
        """Whether runs can go to an agent: a warning is no reason against it."""
        if self._pool.is_resting(agent_id):
            return "failed"
        is_broken = any(each.severity is Severity.PROBLEM for each in findings)
        return "not_ready" if is_broken else "ready"


def _active(row: SessionRow) -> ActiveRunStatus | None:
    if row.active_run_id is None:
        return None
    return ActiveRunStatus(run_id=row.active_run_id, status=RunStatus.RUNNING)


def _acp(row: SessionRow, live: Conversation | None) -> AcpStatus:
    return AcpStatus(
        acp_session_id=row.acp_session_id,
        supports_session_load=row.supports_load,
        supports_resume=row.supports_resume,
        load_attempted=row.load_attempted,
        load_status=row.load_status,
        replay_seen=row.replay_seen,
        replay_seq=None if row.replay_seq is None else f"{row.replay_seq:018d}",
        replay_message_count=row.replay_count,
        live_binding=_binding(row, live),
    )


def _usage(row: SessionRow, live: Conversation | None) -> UsageStatus:
    usage = live.state.usage if live is not None else UsageLedger(row.usage)
    session = usage.session
    return UsageStatus(
        session_tokens=session.tokens,
        last_run_tokens=usage.last_run.total,
        context=ContextUsage(used=usage.context.used, size=usage.context.size),
        cost=session.cost,
    )


def _binding(row: SessionRow, live: Conversation | None) -> LiveBinding | None:
    binding = live.binder.binding if live else None
    if binding is None or not binding.process.is_live:
        return None
    busy = row.status not in (SessionStatus.IDLE, SessionStatus.HELD)
    return LiveBinding(
        status="busy" if busy else "idle",
        workspace_key=Path(row.cwd).as_uri(),
        pid=binding.process.pid,
    )


def _jobs(live: Conversation | None) -> Jobs:
    """The commands that run for the session's agent now."""
    running = [] if live is None else live.services.terminals.running
    items = [{"jobId": job_id, "title": title, "status": "running"} for job_id, title in running]
    return Jobs(running=len(items), items=[Raw(msgspec.json.encode(item)) for item in items])


def _mcp(row: SessionRow, live: Conversation | None) -> McpStatus:
    """What the agent was given last; before that what the session asks for."""
    skipped = [] if live is None else live.mcp.skipped
    is_any = row.mcp_servers != b"[]" if live is None or not live.mcp.offers else live.mcp.names
    return McpStatus(status="configured" if is_any else "none", tool_count=None, failed=skipped)
