"""The event: one journal row, and the words for what it can say (contract section 3)."""

from enum import StrEnum
from typing import Annotated

import msgspec

from acphost.wire.base import HostRecord, carries

EVENT_SCHEMA = "mnote.ai_run_event.v1"


class Kind(StrEnum):
    """What an event says."""

    SESSION_CREATED = "session.created"
    SESSION_INFO_UPDATED = "session.info.updated"
    SESSION_MODE_UPDATED = "session.mode.updated"
    SESSION_CONFIG_UPDATED = "session.config.updated"
    SESSION_COMMANDS_UPDATED = "session.commands.updated"
    SESSION_RENAMED = "session.renamed"
    SESSION_RESET = "session.reset"
    SESSION_DELETED = "session.deleted"
    BINDING_STARTED = "binding.started"
    BINDING_RESUMED = "binding.resumed"
    BINDING_LOADED = "binding.loaded"
    BINDING_LOAD_FAILED = "binding.load_failed"
    BINDING_COLD_RESUMED = "binding.cold_resumed"
    BINDING_LOST = "binding.lost"
    BINDING_CLOSED = "binding.closed"
    RUN_CREATED = "run.created"
    RUN_QUEUED = "run.queued"
    RUN_STARTED = "run.started"
    RUN_CANCEL_REQUESTED = "run.cancel_requested"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_CANCELLED = "run.cancelled"
    RUN_INTERRUPTED = "run.interrupted"
    RUN_DISMISSED = "run.dismissed"
    QUEUE_CHANGED = "queue.changed"
    QUEUE_HELD = "queue.held"
    QUEUE_RELEASED = "queue.released"
    MESSAGE_USER = "message.user"
    MESSAGE_DELTA = "message.delta"
    THOUGHT_DELTA = "thought.delta"
    PLAN_UPDATED = "plan.updated"
    USAGE_UPDATED = "usage.updated"
    TOOL_STARTED = "tool.started"
    TOOL_UPDATED = "tool.updated"
    TOOL_COMPLETED = "tool.completed"
    TOOL_FAILED = "tool.failed"
    PERMISSION_REQUESTED = "permission.requested"
    PERMISSION_RESOLVED = "permission.resolved"
    PERMISSION_EXPIRED = "permission.expired"
    ELICITATION_REQUESTED = "elicitation.requested"
    ELICITATION_RESOLVED = "elicitation.resolved"
    ELICITATION_EXPIRED = "elicitation.expired"
    NOTICE = "notice"
    COMPACTION_UPDATED = "compaction.updated"
    CHANGED_FILES = "changed_files"
    DOCUMENT_CHANGED = "document.changed"
    JOB_STARTED = "job.started"
    JOB_UPDATED = "job.updated"
    JOB_ENDED = "job.ended"
    MCP_STATUS = "mcp.status"
    AGENT_STDERR = "agent.stderr"
    ERROR = "error"
    EVIDENCE = "evidence"
    HOST_STARTED = "host.started"
    HOST_STOPPING = "host.stopping"
    CONFIG_RELOADED = "config.reloaded"
    CONFIG_REJECTED = "config.rejected"
    STORAGE_DEGRADED = "storage.degraded"
    STORAGE_WARNING = "storage.warning"
    STORAGE_RECOVERED = "storage.recovered"
    AGENT_STATE = "agent.state"


#: The kinds that end a run; a run has exactly one of them.
TERMINAL_KINDS = frozenset(
    {Kind.RUN_COMPLETED, Kind.RUN_FAILED, Kind.RUN_CANCELLED, Kind.RUN_INTERRUPTED}
)

#: Who says what an event tells: the host, a tool, or an agent by the word that its traits have.
Source = str

#: Events the host itself says.
HOST: Source = "mnote"


class Origin(HostRecord, frozen=True):
    """Who caused an event."""

    client_id: str
    actor_id: str
    client_name: str


class Event(HostRecord, frozen=True, omit_defaults=True):
    """One journal row as clients read it; a provider's `payload` is its own JSON, verbatim."""

    schema: str
    offset: str
    session_id: str | None
    seq: str | None
    host_run_id: str | None
    kind: Annotated[str, carries(Kind)]
    #: "mnote": the host itself; "tool"; else the kind of agent: "hermes", "reasonix", "acp",
    #: "chat_only", "api_chat", or a word of the user's own runtimes.
    source: str
    created_at: str
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    origin: Annotated[msgspec.Raw, carries(Origin)] | msgspec.UnsetType = msgspec.UNSET
    host: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    synthetic: bool = False
    payload_base64: str | None = None
