"""One agent process: started, greeted, asked for sessions, and ended without a trace."""

import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskStatus

from acphost.errors import (
    AcpHostError,
    AgentUnavailableError,
    AuthRequiredError,
    RemoteError,
)
from acphost.ids import AcpSessionId, Clock, LaunchId
from acphost.provider.connection import AgentConnection, AgentGoneError, method_not_found
from acphost.provider.traits import AUTH_REQUIRED, Traits
from acphost.rpc.codec import verbatim_member
from acphost.rpc.pending import Answer
from acphost.settings.model import AgentSettings
from acphost.transport.child import Child, ChildSpec, spawn
from acphost.transport.processes import Process
from acphost.wire.acp import (
    PROTOCOL_VERSION,
    InitializeResult,
    SessionOpened,
    SessionScoped,
    SessionUpdate,
    lenient,
)
from acphost.wire.jsonrpc import RequestId

_UPDATE = msgspec.json.Decoder(SessionUpdate)
_SCOPED = msgspec.json.Decoder(SessionScoped)
_SESSION_ID = attrgetter("session_id")

#: Updates kept for a session whose id we have not been told yet (guide rule 10).
MAX_EARLY = 1000
EMPTY = msgspec.Raw(b"{}")

#: Updates that came in a row, when that was, and their exact bytes where they were mended.
_Early = tuple[list[msgspec.Raw], int, list[bytes] | None]


class Sink(Protocol):
    """A conversation, as the process that serves it sees it. Nothing here may block."""

    def on_updates(
        self, updates: Sequence[msgspec.Raw], at: int, exact: list[bytes] | None = None
    ) -> None:
        """The `update`s of this session that came in a row, in wire order.

        `exact`: the agent's own bytes, where what is in `updates` had to be mended to be read.
        """

    def on_extension(self, method: str, params: msgspec.Raw, at: int) -> None:
        """Another notification that names the session."""

    def on_request(self, asked: "AgentRequest", at: int) -> None:
        """A request that names the session; the sink answers or refuses it."""

    def on_gone(self, gone: AgentGoneError) -> None:
        """The process ended. Open requests were failed before."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request of the agent, answered exactly once."""

    id: RequestId
    method: str
    params: msgspec.Raw
    connection: AgentConnection

    def answer(self, result: object) -> None:
        """Send the result."""
        self.connection.answer(self.id, result)

    def refuse(self, error: Exception) -> None:
        """Send an error."""
        self.connection.refuse(self.id, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything needed to start one process of an agent."""

    launch_id: LaunchId
    agent_id: str
    agent: AgentSettings
    traits: Traits
    cwd: str
    env: dict[str, str]
    max_line: int
    client_version: str


class ProcessWatcher(Protocol):
    """Who keeps the ledger of processes."""

    def on_spawned(self, plan: LaunchPlan, child: Child) -> None:
        """The process exists."""

    def on_ended(self, plan: LaunchPlan, child: Child, survivors: list[Process]) -> None:
        """The process and what it started are gone, but for `survivors`."""


class AgentProcess:
    """A live agent. `run` is its whole life; the sessions in it end with it."""

    def __init__(
        self,
        plan: LaunchPlan,
        *,
        watcher: ProcessWatcher,
        now: Clock,
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self.plan = plan
        self.traits = plan.traits
        self.started_at = now()
        self.greeting = InitializeResult()
        self.sinks: dict[str, Sink] = {}
        self.pid = 0
        self._watcher = watcher
        self._now = now
        self._room = room
        self._stop = anyio.Event()
        self.was_asked_to_stop = False
        #: It has answered a prompt: its end is an accident, not a failed start.
        self.has_served = False
        self.is_retired = False
        self.ended = anyio.Event()
        self._early: dict[str, list[_Early]] = {}
        self._early_count = 0
        self._connection: AgentConnection | None = None
        self._child: Child | None = None

    @property
    def connection(self) -> AgentConnection:
        """The protocol side; there is one as soon as the process was spawned."""
        assert self._connection is not None, "asked before the process was spawned"
        return self._connection

    @property
    def is_live(self) -> bool:
        """Whether requests can still reach the agent."""
        return (
            self._connection is not None
            and self._connection.gone is None
            and not self._stop.is_set()
        )

    def stop(self) -> None:
        """Ask `run` to end the process; `ended` tells when it is gone."""
        self.was_asked_to_stop = True
        self._stop.set()

    def kill(self) -> None:
        """End the process group now, in the middle of whatever `run` grants it."""
        self.stop()
        if self._child is not None and self._child.exit is None:
            self._child.signal_group(signal.SIGKILL)

    def stop_unless_shared(self) -> None:
        """End a process that no other session uses."""
        if not self.sinks:
            self.stop()

    # -- life -------------------------------------------------------------------------------------

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """From spawn to the last reaped descendant.

        Raises AgentUnavailableError if the agent could not be started or does not speak ACP.
        """
        plan = self.plan
        spec = ChildSpec(
            argv=plan.agent.command, cwd=plan.cwd, env=plan.env, launch_id=plan.launch_id
        )
        child = spawn(spec)
        self._child = child
        self.pid = child.pid
        self._connection = AgentConnection(
            child, self, max_line=plan.max_line, now=self._now, room=self._room
        )
        self._watcher.on_spawned(plan, child)
        failure: AcpHostError | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._carry, tasks.cancel_scope)
                tasks.start_soon(self._heed_stop, tasks.cancel_scope)
                failure = await self._greet()
                if failure is None:
                    task_status.started()
                    await anyio.sleep_forever()
                tasks.cancel_scope.cancel()
        finally:
            self._stop.set()
            try:
                with anyio.CancelScope(shield=True):
                    survivors = await child.stop(
                        eof_grace=plan.agent.eof_grace, term_grace=plan.agent.term_grace
                    )
                self._watcher.on_ended(plan, child, survivors)
            finally:
                self._end(child)
        if failure is None and not self.greeting.protocol_version:
            failure = self._gone_early()
        if failure is not None:
            raise failure

    async def _carry(self, scope: anyio.CancelScope) -> None:
        """Move messages until the agent goes; then nobody needs to wait any longer."""
        self._tell_sinks(await self.connection.run())
        scope.cancel()

    async def _heed_stop(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        scope.cancel()

    def _tell_sinks(self, gone: AgentGoneError) -> None:
        sinks, self.sinks = self.sinks, {}
        for sink in sinks.values():
            sink.on_gone(gone)

    def _end(self, child: Child) -> None:
        connection = self.connection
        if connection.gone is None:
            gone = AgentGoneError("the agent was ended by the host", exit_=child.exit, stderr="")
            connection.lose(gone)
            self._tell_sinks(gone)
        self.ended.set()

    async def _greet(self) -> AcpHostError | None:
        """Initialize; None if all is well."""
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {},
            "clientInfo": {
                "name": "acphost",
                "title": "acphost",
                "version": self.plan.client_version,
            },
        }
        try:
            with anyio.fail_after(self.plan.agent.init_timeout):
                raw = await self.connection.call("initialize", params)
        except TimeoutError:
            return self._unavailable(
                f"did not answer `initialize` within {self.plan.agent.init_timeout:g} s"
            )
        except AgentGoneError:
            return self._gone_early()
        except RemoteError as exc:
            return self._unavailable(f"refused `initialize`: {exc}")
        try:
            self.greeting = lenient(InitializeResult, raw)
        except msgspec.DecodeError as exc:
            return self._unavailable(f"answered `initialize` with something else: {exc}")
        if self.greeting.protocol_version != PROTOCOL_VERSION:
            version = self.greeting.protocol_version
            self.greeting = InitializeResult()
            return self._unavailable(
                f"speaks ACP version {version}; this host speaks version {PROTOCOL_VERSION}"
            )
        return None

    def _gone_early(self) -> AgentUnavailableError:
        gone = self.connection.gone
        how = str(gone).removeprefix("the agent ") if gone else "went away"
        return self._unavailable(f"{how} before it answered `initialize`")

    def _unavailable(self, what: str) -> AgentUnavailableError:
        """The error a person can act on: what happened, the command, its last words."""
        connection = self.connection
        exit_ = connection.gone.exit if connection.gone else None
        stderr = connection.stderr.text()
        noise = connection.noise.text()
        said = stderr or noise
        last = f"; it said last: {said.splitlines()[-1][:300]}" if said else ""
        return AgentUnavailableError(
            f"agent {self.plan.agent_id!r} {what}{last}",
            agentId=self.plan.agent_id,
            command=list(self.plan.agent.command),
            exitCode=exit_.code if exit_ else None,
            signal=exit_.signal if exit_ else None,
            stderr=stderr,
            stdoutNoise=noise,
        )

    # -- sessions ---------------------------------------------------------------------------------

    async def new_session(
        self, sink: Sink, params: dict[str, object]
    ) -> tuple[AcpSessionId, msgspec.Raw]:
        """session/new. Updates that came before its answer reach the sink first of all.

        Raises RemoteError, AgentGoneError, AuthRequiredError, AgentUnavailableError.
        """
        result = await self._call_setup("session/new", params)
        try:
            session_id = lenient(SessionOpened, result).session_id
        except msgspec.DecodeError:
            session_id = ""
        if not session_id:
            raise AgentUnavailableError(
                f"agent {self.plan.agent_id!r} answered `session/new` without a session id"
            )
        self._attach(session_id, sink)
        return AcpSessionId(session_id), result

    async def reopen(
        self, method: str, session_id: AcpSessionId, sink: Sink, params: dict[str, object]
    ) -> msgspec.Raw:
        """session/load or session/resume; the sink hears the replay as it comes."""
        self._attach(session_id, sink)
        try:
            return await self._call_setup(method, {"sessionId": session_id, **params})
        except BaseException:
            self.detach(session_id)
            raise

    async def _call_setup(self, method: str, params: dict[str, object]) -> msgspec.Raw:
        """A request without a total limit: only silence ends the wait (a replay may be long)."""
        box: list[Answer] = []
        answered = anyio.Event()

        def on_answer(answer: Answer) -> None:
            box.append(answer)
            answered.set()

        self.connection.request(method, params, on_answer)
        patience = self.plan.agent.load_timeout
        asked = self._now()
        while not answered.is_set():
            quiet = (self._now() - max(asked, self.connection.last_activity)) / 1000
            if quiet >= patience:
                raise self._unavailable(f"was silent for {patience:g} s on `{method}`")
            with anyio.move_on_after(max(0.01, patience - quiet)):
                await answered.wait()
        answer = box[0]
        if isinstance(answer, RemoteError) and answer.remote_code == AUTH_REQUIRED:
            methods = [
                {"id": m.id, "name": m.name, "type": m.type} for m in self.greeting.auth_methods
            ]
            raise AuthRequiredError(f"agent {self.plan.agent_id!r}: {answer}", methods=methods)
        if isinstance(answer, AcpHostError):
            raise answer
        return answer

    def _attach(self, session_id: str, sink: Sink) -> None:
        self.sinks[session_id] = sink
        for updates, at, exact in self._early.pop(session_id, ()):
            self._early_count -= len(updates)
            sink.on_updates(updates, at, exact)

    def detach(self, session_id: str) -> None:
        """Nobody listens to that session any more; a retired process ends with its last one."""
        self.sinks.pop(session_id, None)
        if self.is_retired:
            self.stop_unless_shared()

    # -- inbox ------------------------------------------------------------------------------------

    def on_updates(self, updates: Sequence[SessionUpdate], at: int) -> None:
        """Route updates to the conversations they belong to."""
        for session_id, some in groupby(updates, _SESSION_ID):
            self._deliver(session_id, [scoped.update for scoped in some], at)

    def _deliver(
        self, session_id: str, updates: list[msgspec.Raw], at: int, exact: list[bytes] | None = None
    ) -> None:
        sink = self.sinks.get(session_id)
        if sink is not None:
            sink.on_updates(updates, at, exact)
            return
        # A copy: what was read together lies in one buffer, which would be kept whole.
        kept = [update.copy() for update in updates[: MAX_EARLY - self._early_count]]
        if kept:
            self._early_count += len(kept)
            self._early.setdefault(session_id, []).append((kept, at, exact))
        self.connection.anomalies += len(updates) - len(kept)

    def on_notification(
        self, method: str, params: msgspec.Raw, at: int, exact: bytes | None = None
    ) -> None:
        """Route what else the agent says."""
        own = params if exact is None else msgspec.Raw(exact)
        if method != "session/update":
            self._on_extension(method, params, own, at)
            return
        try:
            scoped = _UPDATE.decode(params)
        except msgspec.DecodeError:
            self.connection.anomalies += 1
            sink = self._only_sink()
            if sink is not None:
                sink.on_extension(method, own, at)
            return
        update = None if exact is None else verbatim_member(exact, "update")
        self._deliver(scoped.session_id, [scoped.update], at, None if update is None else [update])

    def _on_extension(self, method: str, params: msgspec.Raw, own: msgspec.Raw, at: int) -> None:
        sink = self._sink_of(params) or self._only_sink()
        if sink is not None and not method.startswith("$/"):
            sink.on_extension(method, own, at)

    def on_request(self, request_id: RequestId, method: str, params: msgspec.Raw, at: int) -> None:
        """Hand a request to its conversation, or answer that nobody is there."""
        asked = AgentRequest(request_id, method, params, self.connection)
        sink = self._sink_of(params)
        if sink is None:
            asked.refuse(method_not_found(method))
            self.connection.anomalies += 1
            return
        sink.on_request(asked, at)

    def _sink_of(self, params: msgspec.Raw) -> Sink | None:
        try:
            return self.sinks.get(_SCOPED.decode(params).session_id)
        except msgspec.DecodeError:
            return None

    def _only_sink(self) -> Sink | None:
        """With one session in the process there is no doubt whom a stray word concerns."""
        return next(iter(self.sinks.values())) if len(self.sinks) == 1 else None


__all__ = ["EMPTY", "AgentProcess", "AgentRequest", "LaunchPlan", "ProcessWatcher", "Sink"]
