"""The runtime status of a session: one snapshot, part by part (contract section 5)."""

from typing import Annotated

from msgspec import Raw

from acphost.wire.base import HostRecord, carries
from acphost.wire.host import ContinuityCode, Mode, RunStatus, SessionStatus

RUNTIME_STATUS_SCHEMA = "mnote.page_ai_runtime_status.v1"


class Continuity(HostRecord, frozen=True):
    """Part of the runtime status: does the agent remember, and why not."""

    mode: Annotated[str, carries(Mode)]
    code: Annotated[str, carries(ContinuityCode)]
    reason: str | None


class LiveBinding(HostRecord, frozen=True):
    """The agent process that serves a session now."""

    status: str
    workspace_key: str
    pid: int | None


class AcpStatus(HostRecord, frozen=True):
    """Part of the runtime status: the agent's side of the conversation."""

    acp_session_id: str | None
    supports_session_load: bool | None
    supports_resume: bool | None
    load_attempted: bool
    load_status: str | None
    replay_seen: bool
    replay_seq: str | None
    replay_message_count: int
    live_binding: LiveBinding | None


class ModelStatus(HostRecord, frozen=True):
    """Part of the runtime status: which model, from where."""

    profile_id: str
    resolved_model: str | None
    provider_kind: str
    credential_status: str
    config_source: str
    runtime_binary: str | None


class ActiveRunStatus(HostRecord, frozen=True):
    """Part of the runtime status."""

    run_id: str
    status: Annotated[str, carries(RunStatus)]


class QueueStatus(HostRecord, frozen=True):
    """Part of the runtime status."""

    queued: int
    held: str | None


class ContextUsage(HostRecord, frozen=True):
    """Tokens in the agent's context, as it said last."""

    used: int | None = None
    size: int | None = None


class UsageStatus(HostRecord, frozen=True):
    """Part of the runtime status; unknown is null, never 0."""

    session_tokens: int | None = None
    last_run_tokens: int | None = None
    context: ContextUsage = ContextUsage()
    cost: str | None = None


class ColdResume(HostRecord, frozen=True):
    """Part of the runtime status: the history packet of the last cold resume."""

    packet_bytes: int | None = None
    truncated_reason: str | None = None


class Counts(HostRecord, frozen=True):
    """Roots opened to the agent."""

    write: int
    read_only: int


class McpStatus(HostRecord, frozen=True):
    """MCP servers passed to the agent."""

    status: str
    tool_count: int | None
    failed: list[str]


class ToolCounts(HostRecord, frozen=True):
    """Host tools offered to the agent."""

    enabled: int
    disabled: int


class Jobs(HostRecord, frozen=True):
    """Background jobs of a session."""

    running: int
    items: list[Raw]


class ChatStatus(HostRecord, frozen=True):
    """Part of the runtime status: what a chat endpoint keeps of the conversation itself."""

    provider_conversation_id: str | None = None
    remote_delete_status: str = "unsupported"


class RuntimeStatus(HostRecord, frozen=True):
    """Which agent, is the context continuous, why is it still busy: one snapshot."""

    mnote_session_id: str
    runtime: str
    profile: str
    mode: Annotated[str, carries(Mode)]
    status: Annotated[str, carries(SessionStatus)]
    status_reason: str | None
    continuity: Continuity
    active_run: ActiveRunStatus | None
    acp: AcpStatus | None
    model: ModelStatus
    roots: Counts
    mcp: McpStatus
    tools: ToolCounts
    queue: QueueStatus
    jobs: Jobs
    last_sign_of_life_at: str | None
    usage: UsageStatus
    cold_resume: ColdResume
    logs: list[str]
    chat: ChatStatus | None = None
    schema: str = RUNTIME_STATUS_SCHEMA


class ClosedBinding(HostRecord, frozen=True):
    """Which binding a reset ended, and in which process; null where there was none."""

    binding: str | None
    pid: int | None


class RuntimeReset(HostRecord, frozen=True):
    """The answer to `runtime/reset`."""

    session_id: str
    mode: str
    next: str
    closed: ClosedBinding
    queued: int
