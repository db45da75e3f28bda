"""What the socket returns: sessions, runs, queue items, decisions, status (contract 1 to 8)."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from acphost.wire.acp import PermissionOption
from acphost.wire.base import NULL, HostRecord, carries
from acphost.wire.controls import Control
from acphost.wire.event import Event, Origin
from acphost.wire.logins import Login
from acphost.wire.policy import PolicyRule
from acphost.wire.receipt import Receipt

SESSION_SCHEMA = "mnote.ai_session.v1"
RUN_SCHEMA = "mnote.ai_run.v1"
QUEUED_RUN_SCHEMA = "mnote.page_ai_queued_run.v1"
ACTIVE_RUN_SCHEMA = "mnote.ai_active_run.v1"
DECISION_SCHEMA = "mnote.ai_decision.v1"
ENVELOPE_SCHEMA = "mnote.agent_run_envelope.v1"
PROTOCOL_VERSION = 1

Raw = msgspec.Raw


class SessionStatus(StrEnum):
    """What a session is doing, strongest word first where several are true."""

    FAILED = "failed"
    AUTH_REQUIRED = "auth_required"
    WAITING = "waiting"
    QUIET = "quiet"
    STOPPING = "stopping"
    RUNNING = "running"
    STARTING = "starting"
    HELD = "held"
    IDLE = "idle"


class RunStatus(StrEnum):
    """The life of a run; the last four are final."""

    PENDING = "pending"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL_STATUSES = frozenset(
    {RunStatus.INTERRUPTED, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
)


class Mode(StrEnum):
    """How a session's context reached the agent that serves it now."""

    NATIVE_LIVE = "native_live"
    RESUMED = "resumed"
    LOADED = "loaded"
    REPLAY_SEEN = "replay_seen"
    LOAD_FAILED_NEW = "load_failed_new"
    COLD_RESUMED = "cold_resumed"
    NEW_SESSION = "new_session"
    #: A chat: every prompt comes with what was said before, from the journal.
    SERVER_TRANSCRIPT = "server_transcript"


class ContinuityCode(StrEnum):
    """Whether the agent remembers."""

    CONTINUOUS = "continuous"
    HISTORY_FALLBACK = "history_fallback"
    NO_CONTEXT = "no_context"
    LOAD_FAILED_NEW = "load_failed_new"


class ErrorWord(StrEnum):
    """`errorCode` of a run that did not end by the agent's own answer."""

    AGENT_EXITED = "agent_exited"
    AGENT_ERROR = "agent_error"
    PERMISSION_DENIED = "permission_denied"
    AGENT_CANCELLED = "agent_cancelled"
    AGENT_UNAVAILABLE = "agent_unavailable"
    AUTH_REQUIRED = "auth_required"
    UNSUPPORTED_CONTENT = "unsupported_content"
    HOST_RESTARTED = "host_restarted"
    HOST_SHUTDOWN = "host_shutdown"
    CANCEL_UNCONFIRMED = "cancel_unconfirmed"
    RUNTIME_RESET = "runtime_reset"


class Recovery(HostRecord, frozen=True):
    """What a person needs to decide about a run whose outcome is unknown."""

    was_running: bool
    last_seq: str
    files_touched: list[str]
    can_resume: bool
    can_load: bool
    actions: list[str]


class Session(HostRecord, frozen=True):
    """A conversation of the host."""

    session_id: str
    title: str | None
    agent_id: str
    runtime: str
    profile: str
    resolved_model: str | None
    workspace_id: str
    cwd: str
    document_id: str | None
    actor_id: str
    pinned: bool
    status: Annotated[str, carries(SessionStatus)]
    status_reason: str | None
    mode: Annotated[str, carries(Mode)]
    acp_session_id: str | None
    active_run_id: str | None
    queued_count: int
    last_run_status: Annotated[str, carries(RunStatus)] | None
    last_seq: str
    created_at: str
    updated_at: str
    schema: str = SESSION_SCHEMA
    runtime_group: str | None = None
    active_pinned: bool = False
    recovery: Recovery | None = None
    #: The agent's own mode; `mode` tells how its context came about.
    agent_mode: str | None = None
    #: What can be set by `session/configure`; only where one session is asked for.
    settable: list[Control] | msgspec.UnsetType = msgspec.UNSET
    #: While the status is `auth_required`: which logins the agent offers.
    login: Login | None = None
    #: The rules that answer for a person in this session, before those of the configuration.
    policy: list[PolicyRule] = []


class Run(HostRecord, frozen=True):
    """One prompt and all that came of it."""

    host_run_id: str
    request_id: str
    agent_id: str
    provider: str
    profile: str
    provider_run_id: str | None
    session_id: str
    actor_id: str
    workspace_id: str
    document_id: str | None
    parent_run_id: str | None
    status: Annotated[str, carries(RunStatus)]
    queue_position: int | None
    stop_reason: str | None
    error_code: str | None
    error: str | None
    empty: bool
    continuity: Annotated[str, carries(Mode)] | None
    acp_session_id: str | None
    context_refs: list[str]
    target_snapshot_hash: str | None
    capability_snapshot_hash: str | None
    cancel_requested_at: str | None
    first_seq: str | None
    last_seq: str | None
    terminal_seq: str | None
    dismissed_at: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    updated_at: str
    schema: str = RUN_SCHEMA
    recovery: Recovery | None = None
    envelope: Raw | msgspec.UnsetType = msgspec.UNSET
    #: What it has changed; null in lists, and where nothing was seen to change.
    receipt: Receipt | None = None


class QueuedRun(HostRecord, frozen=True):
    """A run that waits, as the queue shows it."""

    id: str
    user_id: str
    workspace_id: str
    document_id: str | None
    session_id: str
    run_id: str
    runtime: str
    profile: str
    acp_session_id: str | None
    payload: Raw
    preview: str
    position: int
    rev: int
    status: Annotated[str, carries(Literal["queued", "started", "cancelled", "failed"])]
    held_reason: str | None
    created_at: str
    updated_at: str
    schema: str = QUEUED_RUN_SCHEMA


class ActiveRun(HostRecord, frozen=True):
    """What a client that comes back asks first."""

    run: Run | None
    queued: list[QueuedRun]
    last_seq: str
    schema: str = ACTIVE_RUN_SCHEMA


class Decision(HostRecord, frozen=True):
    """A question an agent put to people."""

    permission_id: str
    kind: str
    session_id: str
    host_run_id: str | None
    tool_call_key: str | None
    options: Annotated[Raw, carries(list[PermissionOption])]
    status: Annotated[str, carries(Literal["pending", "resolved", "expired"])]
    outcome: str | None
    option_id: str | None
    by: Annotated[Raw, carries(Origin | None)]
    rule: str | None
    created_at: str
    resolved_at: str | None
    expires_at: str | None
    schema: str = DECISION_SCHEMA
    request: Raw = NULL


class Page(HostRecord, frozen=True):
    """A list answer; items are the area's own records."""

    items: list[Raw]
    next_cursor: str | None = None


class EventsPage(HostRecord, frozen=True):
    """The answer to `run/events`; events are as on the wire."""

    events: list[Annotated[Raw, carries(Event)]]
    head_seq: str
    has_more: bool


class Subscribed(HostRecord, frozen=True):
    """The answer to `events/subscribe`; the events follow as notifications."""

    subscription_id: str
    head_seq: str | None
    head_offset: str


class Cursor(HostRecord, frozen=True, omit_defaults=True):
    """The last row a subscription has scanned."""

    offset: str
    seq: str | None = None


class EventsNotification(HostRecord, frozen=True, omit_defaults=True):
    """A batch for one subscription."""

    subscription_id: str
    events: list[Annotated[Raw, carries(Event)]]
    cursor: Cursor
    caught_up: bool = False


class Done(HostRecord, frozen=True):
    """The answer of methods that have nothing to return."""

    ok: bool = True
