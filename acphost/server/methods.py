"""The socket's methods in one table: name, params, who may, and what answers.

Handlers translate and delegate; what they return is committed truth (the session layer awaits it).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
from msgspec import Raw, UnsetType

from acphost.errors import (
    InvalidRequestError,
    NotInitializedError,
    UnsupportedVersionError,
)
from acphost.ids import mint
from acphost.rpc.registry import MethodRegistry
from acphost.server.access import Access, authorise, role_of
from acphost.server.agent_methods import AgentMethods
from acphost.server.connection import ClientConnection, Identity
from acphost.server.host import Host
from acphost.server.runtime_methods import RuntimeMethods
from acphost.server.session_methods import SessionMethods
from acphost.server.subscribing import Subscribing
from acphost.session.jobs import JobBoard
from acphost.session.views import decision_view
from acphost.wire import params as p
from acphost.wire.base import carries, parse_position
from acphost.wire.controls import SessionConfigureParams
from acphost.wire.elicitation import ElicitationRespondParams
from acphost.wire.grants import Grant, GrantAddParams, GrantRemoveParams
from acphost.wire.host import (
    PROTOCOL_VERSION,
    ActiveRun,
    BackupDone,
    Decision,
    Done,
    EventsPage,
    InitializeResult,
    Page,
    Pong,
    ProcessRecord,
    QueuedRun,
    Reloaded,
    RetentionDone,
    Run,
    RuntimeReset,
    RuntimeStatus,
    Session,
)
from acphost.wire.jobs import Job, JobListParams, JobParams, JobsStopped, JobStopAllParams
from acphost.wire.library import (
    SessionAdoptParams,
    SessionDeleteParams,
    SessionDiscoverParams,
    SessionForkParams,
    SessionPinParams,
    SessionRenameParams,
)
from acphost.wire.logins import AgentAuthenticateParams
from acphost.wire.revision import SCHEMA_REVISION
from acphost.wire.runtime import RuntimeStarted
from acphost.wire.trouble import RuntimeLogsParams
from acphost.wire.usage import UsageProjection

P = TypeVar("P", bound=msgspec.Struct)
CAPABILITIES = {
    "subscriptions": True,
    "queue": True,
    "permissions": True,
    "elicitation": True,
    "fs": True,
}


class _Offers(msgspec.Struct):
    """Of a client's capabilities what concerns files."""

    fs: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the table."""

    name: str
    params: type[msgspec.Struct]
    access: Access
    handler: Callable[..., Awaitable[object]]


class Methods:
    """Answers what clients ask."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._house = host.house
        self._commands = host.commands
        self._agents = AgentMethods(host)
        self._runtime = RuntimeMethods(host)
        self._sessions = SessionMethods(host)
        self._subscribing = Subscribing(host)
        self._queries = host.queries
        self._jobs = JobBoard(host.house)
        self._registry: MethodRegistry[ClientConnection] = MethodRegistry()
        self._access: dict[str, Access] = {}
        for method in self.table():
            self._registry.add(method.name, method.params, method.handler)
            self._access[method.name] = method.access

    def table(self) -> tuple[Method, ...]:
        """Every method of the socket."""
        every, admin = Access.ANY, Access.ADMIN
        return (
            Method("initialize", p.InitializeParams, every, self._initialize),
            Method("host/ping", p.NoParams, every, self._ping),
            Method("host/stats", p.NoParams, every, self._stats),
            Method("host/schema", p.NoParams, every, self._schema),
            Method("host/reload", p.NoParams, admin, self._reload),
            Method("host/backup", p.BackupParams, admin, self._backup),
            Method("host/retention", p.RetentionParams, admin, self._retention),
            Method("host/shutdown", p.ShutdownParams, admin, self._shutdown),
            Method("agent/list", p.AgentListParams, every, self._agents.list),
            Method("agent/get", p.AgentParams, every, self._agents.get),
            Method("agent/check", p.AgentParams, every, self._agents.check),
            Method("agent/authenticate", AgentAuthenticateParams, every, self._agents.authenticate),
            Method("agent/logout", p.AgentParams, every, self._agents.logout),
            Method("agent/probe", p.AgentProbeParams, every, self._agents.probe),
            Method("session/create", p.SessionCreateParams, every, self._session_create),
            Method("session/list", p.SessionListParams, every, self._session_list),
            Method("session/get", p.SessionParams, every, self._session_get),
            Method("session/configure", SessionConfigureParams, every, self._configure),
            Method("session/rename", SessionRenameParams, every, self._sessions.rename),
            Method("session/pin", SessionPinParams, every, self._sessions.pin),
            Method("session/delete", SessionDeleteParams, every, self._sessions.delete),
            Method("session/discover", SessionDiscoverParams, every, self._sessions.discover),
            Method("session/adopt", SessionAdoptParams, every, self._sessions.adopt),
            Method("session/fork", SessionForkParams, every, self._sessions.fork),
            Method("session/activeRun", p.ActiveRunParams, every, self._active_run),
            Method("run/create", p.RunCreateParams, every, self._run_create),
            Method("run/get", p.RunGetParams, every, self._run_get),
            Method("run/list", p.RunListParams, every, self._run_list),
            Method("run/events", p.RunEventsParams, every, self._run_events),
            Method("run/wait", p.RunWaitParams, every, self._run_wait),
            Method("run/cancel", p.RunCancelParams, every, self._run_cancel),
            Method("run/resume", p.RunResumeParams, every, self._run_resume),
            Method("run/dismiss", p.RunParams, every, self._run_dismiss),
            Method("queue/list", p.QueueListParams, every, self._queue_list),
            Method("queue/hold", p.QueueHoldParams, every, self._queue_hold),
            Method("queue/release", p.SessionParams, every, self._queue_release),
            Method("events/subscribe", p.SubscribeParams, every, self._subscribing.subscribe),
            Method("events/unsubscribe", p.UnsubscribeParams, every, self._subscribing.unsubscribe),
            Method("permission/list", p.PermissionListParams, every, self._permission_list),
            Method("permission/respond", p.PermissionRespondParams, every, self._respond),
            Method("elicitation/respond", ElicitationRespondParams, every, self._respond_to_form),
            Method("runtime/status", p.RuntimeStatusParams, every, self._runtime_status),
            Method("runtime/start", p.SessionParams, every, self._runtime_start),
            Method("runtime/reset", p.RuntimeResetParams, every, self._runtime_reset),
            Method("runtime/logs", RuntimeLogsParams, every, self._runtime.logs),
            Method("runtime/health", p.NoParams, every, self._runtime.health),
            Method("runtime/processes", p.ProcessesParams, every, self._processes),
            Method("job/list", JobListParams, every, self._job_list),
            Method("job/stop", JobParams, every, self._job_stop),
            Method("job/stopAll", JobStopAllParams, every, self._job_stop_all),
            Method("grant/list", p.NoParams, every, self._grant_list),
            Method("grant/add", GrantAddParams, every, self._grant_add),
            Method("grant/remove", GrantRemoveParams, every, self._grant_remove),
            Method("usage/get", p.UsageGetParams, every, self._usage),
        )

    async def call(self, connection: ClientConnection, method: str, params: Raw) -> object:
        """Dispatch one request: handshake first, then access, then the handler."""
        if method != "initialize":
            if connection.identity is None:
                raise NotInitializedError(f"{method} came before `initialize`")
            self._host.check_ready(method)
            authorise(connection.identity.role, method, self._access.get(method, Access.ANY))
        return await self._registry.call(connection, method, params)

    # -- host -------------------------------------------------------------------------------------

    async def _initialize(
        self, client: ClientConnection, params: p.InitializeParams
    ) -> InitializeResult:
        """Introduces a client: the first request of every connection."""
        if client.identity is not None:
            raise InvalidRequestError("this connection is introduced; `initialize` comes once")
        offered = params.protocol_versions or [params.protocol_version or 0]
        if PROTOCOL_VERSION not in offered:
            raise UnsupportedVersionError(
                f"this daemon speaks protocol version {PROTOCOL_VERSION}",
                supported=[PROTOCOL_VERSION],
            )
        actor_id = params.actor_id or f"uid:{client.peer_uid}"
        identity = Identity(
            client_id=params.client_id or mint("client"),
            actor_id=actor_id,
            client_name=params.client_info.name if params.client_info else "unknown",
            role=role_of(actor_id, self._host.admins),
            answers_permissions=_says_yes(params.capabilities, "permissions"),
            files=_file_offers(params.capabilities),
        )
        client.introduce(identity)
        return InitializeResult(
            protocol_version=PROTOCOL_VERSION,
            schema_revision=SCHEMA_REVISION,
            host_info=self._host.info,
            store_id=self._host.store_id,
            client_id=identity.client_id,
            actor_id=actor_id,
            role=identity.role,
            capabilities=CAPABILITIES,
            limits=self._host.limits,
        )

    async def _ping(self, client: ClientConnection, params: p.NoParams) -> Pong:
        """Whether the daemon is alive, and since when."""
        return self._host.ping()

    async def _stats(
        self, client: ClientConnection, params: p.NoParams
    ) -> Annotated[Raw, carries(dict[str, object])]:
        """Figures of the daemon: its clients, agents, journal and configuration."""
        return await self._host.stats()

    async def _schema(
        self, client: ClientConnection, params: p.NoParams
    ) -> Annotated[Raw, carries(dict[str, object])]:
        """The JSON Schema of all that the socket takes, returns and says."""
        return await self._host.schema()

    async def _reload(self, client: ClientConnection, params: p.NoParams) -> Reloaded:
        """Reads the configuration again."""
        return await self._host.reload()

    async def _backup(self, client: ClientConnection, params: p.BackupParams) -> BackupDone:
        return await self._host.backup(params)

    async def _retention(
        self, client: ClientConnection, params: p.RetentionParams
    ) -> RetentionDone:
        return await self._host.retention(dry_run=params.dry_run)

    async def _shutdown(self, client: ClientConnection, params: p.ShutdownParams) -> Done:
        self._host.stop(force=params.force)
        return Done()

    # -- sessions ---------------------------------------------------------------------------------

    async def _session_create(
        self, client: ClientConnection, params: p.SessionCreateParams
    ) -> Session:
        """Opens a session; it is only recorded, the agent starts at first need or with `start`."""
        session_id = await self._commands.create_session(params, client.origin)
        client.follow(session_id)
        return await self._queries.session(session_id)

    async def _session_list(
        self, client: ClientConnection, params: p.SessionListParams
    ) -> Annotated[Page, carries(Session)]:
        """The sessions; filters are joined by and."""
        return await self._queries.sessions(params)

    async def _session_get(self, client: ClientConnection, params: p.SessionParams) -> Session:
        """One session."""
        return await self._queries.session(params.session_id)

    async def _configure(self, client: ClientConnection, params: SessionConfigureParams) -> Session:
        """Sets the agent's mode, model or options; absent is left as it is, null forgets."""
        await self._commands.configure(params, client.origin)
        return await self._queries.session(params.session_id)

    async def _active_run(self, client: ClientConnection, params: p.ActiveRunParams) -> ActiveRun:
        """What a client that comes back asks first: the run that is not over, and the queue."""
        return await self._queries.active_run(params.session_id)

    # -- runs -------------------------------------------------------------------------------------

    async def _run_create(self, client: ClientConnection, params: p.RunCreateParams) -> Run:
        """Sends a prompt, or queues it while the agent is busy; repeated, it is the same run."""
        run_id = await self._commands.create_run(params, client.origin)
        run = await self._queries.run(run_id)
        client.follow(run.session_id)
        return run

    async def _run_get(self, client: ClientConnection, params: p.RunGetParams) -> Run:
        """One run; `include` adds its envelope."""
        return await self._queries.run(
            params.host_run_id, with_envelope="envelope" in params.include
        )

    async def _run_list(
        self, client: ClientConnection, params: p.RunListParams
    ) -> Annotated[Page, carries(Run)]:
        """The runs, newest first."""
        return await self._queries.runs(params)

    async def _run_events(self, client: ClientConnection, params: p.RunEventsParams) -> EventsPage:
        """A page of a run's events: greater seqs only, oldest first."""
        async with client.large_answers:
            await client.outbox.relief()
            return await self._queries.run_events(params, parse_position(params.after_seq))

    async def _run_wait(self, client: ClientConnection, params: p.RunWaitParams) -> Run:
        await self._commands.wait_run(params.host_run_id, params.timeout_ms)
        return await self._queries.run(params.host_run_id)

    async def _run_cancel(self, client: ClientConnection, params: p.RunCancelParams) -> Run:
        """Stops a run; answers at once, `run/wait` tells the end."""
        await self._commands.cancel_run(
            params.host_run_id, client.origin, hold_queue=params.hold_queue
        )
        return await self._queries.run(params.host_run_id)

    async def _run_resume(self, client: ClientConnection, params: p.RunResumeParams) -> Run:
        run_id = await self._commands.resume_run(params, client.origin)
        return await self._queries.run(run_id)

    async def _run_dismiss(self, client: ClientConnection, params: p.RunParams) -> Run:
        """Says that an interrupted run has been seen and is not to be resumed."""
        await self._commands.dismiss_run(params.host_run_id, client.origin)
        return await self._queries.run(params.host_run_id)

    # -- queue ------------------------------------------------------------------------------------

    async def _queue_list(
        self, client: ClientConnection, params: p.QueueListParams
    ) -> Annotated[Page, carries(QueuedRun)]:
        """The runs of a session that wait, head first."""
        return await self._queries.queue(params.session_id)

    async def _queue_hold(self, client: ClientConnection, params: p.QueueHoldParams) -> Session:
        """Lets nothing more of a session's queue start; the running turn goes on."""
        await self._commands.hold_queue(params.session_id, params.reason, client.origin)
        return await self._queries.session(params.session_id)

    async def _queue_release(self, client: ClientConnection, params: p.SessionParams) -> Session:
        """Lets a held queue go on."""
        await self._commands.release_queue(params.session_id, client.origin)
        return await self._queries.session(params.session_id)

    # -- decisions and status ---------------------------------------------------------------------

    async def _permission_list(
        self, client: ClientConnection, params: p.PermissionListParams
    ) -> Annotated[Page, carries(Decision)]:
        """The decisions; pending ones unless a status is named."""
        return await self._queries.decisions(params)

    async def _respond(
        self, client: ClientConnection, params: p.PermissionRespondParams
    ) -> Decision:
        """Answers an agent's question with one of the offered options; the first answer counts."""
        row = await self._commands.respond(params.permission_id, params.option_id, client.origin)
        return decision_view(row)

    async def _respond_to_form(
        self, client: ClientConnection, params: ElicitationRespondParams
    ) -> Decision:
        """Answers a form or an address of an agent; the first valid answer wins."""
        return decision_view(await self._commands.respond_to_form(params, client.origin))

    async def _runtime_status(
        self, client: ClientConnection, params: p.RuntimeStatusParams
    ) -> RuntimeStatus | Annotated[Page, carries(RuntimeStatus)]:
        """Which agent serves a session, whether it remembers, why it is busy."""
        if params.session_id is not None:
            return await self._host.board.of_session(params.session_id)
        return await self._host.board.of_all(params)

    async def _runtime_start(
        self, client: ClientConnection, params: p.SessionParams
    ) -> RuntimeStarted:
        """Has a session's agent started, and answers when it is there; or why it cannot be had."""
        return await self._commands.start_runtime(params.session_id)

    async def _runtime_reset(
        self, client: ClientConnection, params: p.RuntimeResetParams
    ) -> RuntimeReset:
        """Ends a session's agent; `next` says what the next run begins with."""
        return await self._commands.reset_runtime(params, client.origin)

    async def _usage(self, client: ClientConnection, params: p.UsageGetParams) -> UsageProjection:
        """Context, turn and session kept apart; of a run, or of a session and its last run.

        Raises RunNotFoundError, SessionNotFoundError.
        """
        return await self._queries.usage(params)

    async def _job_list(self, client: ClientConnection, params: JobListParams) -> Page:
        """The commands that agents run through the host now."""
        jobs = self._jobs.every(params.session_id)
        return Page(items=[Raw(msgspec.json.encode(each)) for each in jobs])

    async def _job_stop(self, client: ClientConnection, params: JobParams) -> Job:
        """End a command; its agent goes on, and sees how it ended."""
        return await self._jobs.stop(params.job_id, client.origin)

    async def _job_stop_all(
        self, client: ClientConnection, params: JobStopAllParams
    ) -> JobsStopped:
        """End every command that runs, of one session or of all."""
        return await self._jobs.stop_all(params.session_id, client.origin)

    async def _grant_list(self, client: ClientConnection, params: p.NoParams) -> Page:
        """The folders that the actor lets agents use beside those of their sessions."""
        items = self._house.grants.of(client.known.actor_id)
        return Page(items=[Raw(msgspec.json.encode(each)) for each in items])

    async def _grant_add(self, client: ClientConnection, params: GrantAddParams) -> Grant:
        """Let agents use a folder in all sessions of the actor, to read only or also to write."""
        return await self._house.grants.add(client.known.actor_id, params)

    async def _grant_remove(self, client: ClientConnection, params: GrantRemoveParams) -> Grant:
        """Take a folder back; the answer is what was granted."""
        return await self._house.grants.remove(client.known.actor_id, params.grant_id)

    async def _processes(
        self, client: ClientConnection, params: p.ProcessesParams
    ) -> Annotated[Page, carries(ProcessRecord)]:
        """The agents' processes and what they have started, with memory and age."""
        if params.session_id is not None:
            await self._queries.session_row(params.session_id)
        return await self._host.processes.page(params.session_id)


def _says_yes(capabilities: Raw | UnsetType, name: str) -> bool:
    """Whether a client offers something: `true`, or an object for it."""
    if not isinstance(capabilities, Raw):
        return False
    try:
        value = msgspec.json.decode(capabilities, type=dict[str, object]).get(name)
    except msgspec.DecodeError:
        return False
    return value is not None and value is not False


def _file_offers(capabilities: Raw | UnsetType) -> frozenset[str]:
    """What a client says it can do with files: `fs {readTextFile, writeTextFile}`."""
    if not isinstance(capabilities, Raw):
        return frozenset()
    try:
        offered = msgspec.json.decode(capabilities, type=_Offers).fs
    except msgspec.DecodeError:
        return frozenset()
    return frozenset(name for name, value in offered.items() if value is True)
