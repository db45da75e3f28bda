"""What the socket takes: params by method; a field not declared here is refused with its path."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from acphost.wire.base import AcpStruct, HostParams, Position, carries
from acphost.wire.host import RunStatus
from acphost.wire.policy import PolicyRule

#: What a client makes up to name something: it is stored, and stands in lists.
Name = Annotated[str, Meta(max_length=1024)]
#: Items of one page; fewer come where so many would be too much at a time.
Limit = Annotated[int, Meta(ge=1, le=10_000)]
#: At most some weeks.
Milliseconds = Annotated[int, Meta(ge=0, le=2**31 - 1)]
#: By what its runs came to, by how its context reached the agent, or a session's own word.
SessionFilterStatus = Literal[
    "active", "completed", "failed",
    "native_live", "resumed", "loaded", "replay_seen", "load_failed_new", "cold_resumed",
    "new_session",
    "auth_required", "waiting", "quiet", "stopping", "running", "starting", "held", "idle",
]  # fmt: skip


class NoParams(HostParams, frozen=True):
    """For methods that take none."""


class ClientInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who connects; shown to other clients as the origin of what it did."""

    name: Name
    version: Name | None = None
    title: Name | None = None


class FileOffers(AcpStruct, frozen=True):
    """What a client does with files for agents, asked by the requests of that name."""

    #: It knows of text that is not saved yet.
    read_text_file: bool = False
    #: It takes text into its buffer and saves it.
    write_text_file: bool = False


class ClientCapabilities(AcpStruct, frozen=True):
    """What a client can do; members that are not known here are ignored."""

    fs: FileOffers = FileOffers()
    #: It will put agents' questions to a person.
    permissions: bool = False
    #: It will show agents' forms to a person.
    elicitation: bool = False


class InitializeParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """First request of a connection. Unknown keys are ignored here, and only here."""

    protocol_version: int | None = None
    protocol_versions: list[int] | None = None
    client_info: ClientInfo | None = None
    client_id: Name | None = None
    actor_id: Name | None = None
    capabilities: Annotated[Raw, carries(ClientCapabilities)] | UnsetType = UNSET


class SessionCreateParams(HostParams, frozen=True):
    """`session/create`: records only, unless `start`."""

    agent_id: str
    cwd: str
    profile: Name | None = None
    workspace_id: Name | None = None
    title: Name | None = None
    document_id: Name | None = None
    additional_directories: list[str] = []
    mcp_servers: list[Raw] = []
    #: Rules of this session alone; looked at before those of the configuration.
    policy: list[PolicyRule] = []
    start: bool = False


class SessionParams(HostParams, frozen=True):
    """Methods about one session."""

    session_id: str


class ActiveRunParams(HostParams, frozen=True):
    """`session/activeRun`."""

    session_id: str
    workspace_id: str | None = None
    document_id: str | None = None


class SessionListParams(HostParams, frozen=True):
    """`session/list`: filters are joined by and."""

    workspace_id: str | None = None
    document_id: str | None = None
    runtime: str | None = None
    agent_id: str | None = None
    profile: str | None = None
    model: str | None = None
    status: SessionFilterStatus | None = None
    pinned: bool | None = None
    cursor: str | None = None
    limit: Limit = 50


class RunCreateParams(HostParams, frozen=True):
    """`run/create`: `sessionId`, or `agentId` and `cwd` for a new session; `prompt` or `text`."""

    request_id: Name
    session_id: str | None = None
    agent_id: str | None = None
    cwd: str | None = None
    prompt: list[Raw] | None = None
    text: str | None = None
    context_refs: list[Annotated[str, Meta(max_length=4096)]] = []
    profile: Name | None = None
    editor_target: Raw | UnsetType = UNSET
    run_target_snapshot: Raw | UnsetType = UNSET
    document_id: Name | None = None
    workspace_id: Name | None = None
    allowed_roots: Raw | UnsetType = UNSET
    hold_after: bool = False


class RunGetParams(HostParams, frozen=True):
    """`run/get`."""

    host_run_id: str
    include: list[Literal["envelope"]] = []


class RunParams(HostParams, frozen=True):
    """Methods about one run."""

    host_run_id: str


class RunResumeParams(HostParams, frozen=True):
    """`run/resume`: a second try of an interrupted run, made once for each `resumeRequestId`."""

    host_run_id: str
    resume_request_id: Name
    #: Begin with the host's history instead of what the agent remembers.
    with_history: bool = False


class RunListParams(HostParams, frozen=True):
    """`run/list`, newest first."""

    session_id: str | None = None
    status: RunStatus | None = None
    cursor: str | None = None
    limit: Limit = 50


class RunEventsParams(HostParams, frozen=True):
    """`run/events`: greater seqs only, oldest first."""

    host_run_id: str
    after_seq: Position = 0
    limit: Limit = 500
    store_id: str | None = None
    raw: bool = False


class RunWaitParams(HostParams, frozen=True):
    """`run/wait`: answers when the run is over, or with the run as it is after `timeoutMs`."""

    host_run_id: str
    timeout_ms: Milliseconds | None = None


class RunCancelParams(HostParams, frozen=True):
    """`run/cancel`: answers at once; `run/wait` tells the end."""

    host_run_id: str
    hold_queue: bool = False


class Scope(HostParams, frozen=True):
    """Which events a subscription sees: exactly one member is given."""

    session_id: str | None = None
    host_run_id: str | None = None
    workspace_id: str | None = None
    all: Literal[True] | None = None


class SubscribeParams(HostParams, frozen=True):
    """`events/subscribe`: neither `after…` means from the start."""

    scope: Scope
    after_seq: Position | UnsetType = UNSET
    after_offset: Position | UnsetType = UNSET
    after: Literal["now"] | UnsetType = UNSET
    store_id: str | None = None
    kinds: list[str] | None = None
    max_latency_ms: Milliseconds | None = None
    view: Literal["events"] = "events"


class UnsubscribeParams(HostParams, frozen=True):
    """`events/unsubscribe`."""

    subscription_id: str


class PermissionListParams(HostParams, frozen=True):
    """`permission/list`: pending ones unless a status is named."""

    session_id: str | None = None
    status: Literal["pending", "resolved", "expired", "all"] = "pending"
    cursor: str | None = None
    limit: Limit = 100


class PermissionRespondParams(HostParams, frozen=True):
    """`permission/respond`: one of the offered options."""

    permission_id: str
    option_id: str


class RuntimeStatusParams(HostParams, frozen=True):
    """`runtime/status`: one session's, or all."""

    session_id: str | None = None
    workspace_id: str | None = None
    document_id: str | None = None


class UsageGetParams(HostParams, frozen=True):
    """`usage/get`: of a run, or of a session and its last run."""

    session_id: str | None = None
    host_run_id: str | None = None


class RuntimeResetParams(HostParams, frozen=True):
    """`runtime/reset`: what the next run begins with: the history, or the agent's own memory."""

    session_id: str
    next: Literal["cold", "continue"] = "cold"


class ProcessesParams(HostParams, frozen=True):
    """`runtime/processes`: of one session, or all."""

    session_id: str | None = None


class BackupParams(HostParams, frozen=True):
    """`host/backup`: `path` is absolute; what is there stays unless `force`."""

    path: str
    force: bool = False
    with_secrets: bool = False


class AgentListParams(HostParams, frozen=True):
    """`agent/list`."""

    profile: str | None = None


class AgentParams(HostParams, frozen=True):
    """`agent/get` and `agent/check`."""

    agent_id: str


class AgentProbeParams(HostParams, frozen=True):
    """`agent/probe`: runs the agent in a scratch folder."""

    agent_id: str
    #: Two short prompts to its model; without them half of the promises cannot be tried.
    prompts: bool = True


class RetentionParams(HostParams, frozen=True):
    """`host/retention`: deletes by the configured rules; a dry run only tells."""

    dry_run: bool = False


class ShutdownParams(HostParams, frozen=True):
    """`host/shutdown`: drains like a SIGTERM; `force` cancels like the second one."""

    force: bool = False
