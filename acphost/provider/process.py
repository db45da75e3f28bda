"""One agent process: started, greeted, asked for sessions, and ended without a trace."""

import signal
from collections.abc import Awaitable, Callable, Mapping

import anyio
import msgspec
from anyio.abc import TaskStatus

from acphost.errors import AcpHostError, AgentUnavailableError, AuthRequiredError, RemoteError
from acphost.ids import AcpSessionId, Clock, ticks_ms
from acphost.provider.connection import AgentConnection, AgentGoneError
from acphost.provider.launch import LaunchPlan, ProcessWatcher
from acphost.provider.offers import CLIENT_CAPABILITIES
from acphost.provider.secrets import Secrets, of_environment, of_servers
from acphost.provider.switchboard import SessionIdTakenError, Sink, Switchboard
from acphost.provider.traits import AUTH_REQUIRED
from acphost.rpc.codec import verbatim_member
from acphost.transport.child import Child, ChildSpec, Exit, look_up, spawn
from acphost.wire.acp import PROTOCOL_VERSION, InitializeResult, SessionOpened, lenient

#: Of an agent's session id. It stands in every line about that session.
MAX_SESSION_ID = 4096
#: How long what an agent has started may keep its pipes open after its end. With the wait for its
#: last words that makes less than the second in which an exit is to be told (guide A18).
DRAIN_GRACE = 0.6


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
        #: By `ticks_ms`.
        self.started_at = ticks_ms()
        self.greeting = InitializeResult()
        #: As the agent told them, future and private ones among them (A17).
        self.capabilities: bytes | None = None
        self._switchboard = Switchboard()
        self.pid = 0
        self._watcher = watcher
        self._now = now
        self._room = room
        self._stop = anyio.Event()
        self.was_asked_to_stop = False
        #: It has answered a prompt: its end is an accident, not a failed start.
        self.has_served = False
        self.is_retired = False
        #: Its end is in the account of how often its agent failed.
        self.is_counted = False
        self.ended = anyio.Event()
        self._connection: AgentConnection | None = None
        self._child: Child | None = None

    @property
    def connection(self) -> AgentConnection:
        """The protocol side; there is one as soon as the process was spawned."""
        assert self._connection is not None, "asked before the process was spawned"
        return self._connection

    @property
    def exit(self) -> Exit | None:
        """How it ended; None while it lives."""
        return None if self._child is None else self._child.exit

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The conversations in it, by the agent's own session id."""
        return self._switchboard.sinks

    @property
    def is_greeted(self) -> bool:
        """Whether it has answered `initialize`."""
        return bool(self.greeting.protocol_version)

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
            argv=plan.agent.command,
            cwd=plan.cwd,
            env=plan.env,
            launch_id=plan.launch_id,
            cgroup=plan.cgroup,
            drain_grace=DRAIN_GRACE,
        )
        await look_up(spec)
        child = spawn(spec)
        self._child = child
        self.pid = child.pid
        self._connection = AgentConnection(
            child, self._switchboard, max_line=plan.max_line, now=self._now, room=self._room,
            secrets=Secrets(of_environment(plan.env)),
        )  # fmt: skip
        self._switchboard.connection = self._connection
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
        for sink in self._switchboard.hang_up():
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
            "clientCapabilities": CLIENT_CAPABILITIES,
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
        self.capabilities = verbatim_member(bytes(raw), "agentCapabilities")
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
        return self._unavailable(f"{self._way_it_went()} before it answered `initialize`")

    def _way_it_went(self) -> str:
        gone = self.connection.gone
        return str(gone).removeprefix("the agent ") if gone else "went away"

    def obituary(self) -> str:
        """How it went, and its last words."""
        return str(self._unavailable(self._way_it_went()))

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
        result = await self._call_setup("session/new", params, sink)
        try:
            session_id = lenient(SessionOpened, result).session_id
        except msgspec.DecodeError:
            session_id = ""
        problem = _problem_of(session_id)
        if problem is not None:
            raise self._unavailable(f"answered `session/new` {problem}")
        self._attach("session/new", session_id, sink)
        return AcpSessionId(session_id), result

    def _attach(self, method: str, session_id: str, sink: Sink) -> None:
        try:
            self._switchboard.attach(session_id, sink)
        except SessionIdTakenError as exc:
            raise self._unavailable(
                f'cannot serve `{method}`: {exc}; `process = "per_session"` gives each its own'
            ) from exc

    async def reopen(
        self, method: str, session_id: AcpSessionId, sink: Sink, params: dict[str, object]
    ) -> msgspec.Raw:
        """session/load or session/resume; the sink hears the replay as it comes."""
        self._attach(method, session_id, sink)
        try:
            return await self._call_setup(method, {"sessionId": session_id, **params}, sink)
        except BaseException:
            self.detach(session_id)
            raise

    async def _call_setup(self, method: str, params: dict[str, object], sink: Sink) -> msgspec.Raw:
        """A request without a total limit: only silence ends the wait (a replay may be long)."""
        servers = params.get("mcpServers")
        if isinstance(servers, list):
            self.connection.secrets.learn(of_servers(servers))
        with self.connection.asking(method, params) as asked:
            if asked.id is not None:
                self._switchboard.callers[asked.id] = sink
            try:
                await self._answered(method, asked.answered, sink)
            finally:
                self._switchboard.callers.pop(asked.id, None)
        answer = asked.answer
        if isinstance(answer, RemoteError) and answer.remote_code == AUTH_REQUIRED:
            methods = [
                {"id": m.id, "name": m.name, "type": m.type} for m in self.greeting.auth_methods
            ]
            raise AuthRequiredError(f"agent {self.plan.agent_id!r}: {answer}", methods=methods)
        if isinstance(answer, AcpHostError):
            raise answer
        return answer

    async def _answered(self, method: str, answered: anyio.Event, sink: Sink) -> None:
        """Wait as long as the agent shows that it lives."""
        patience = self.plan.agent.load_timeout
        # Not by the time of day: a clock that is set would end the wait, or keep it from ending.
        asked = ticks_ms()
        while not answered.is_set():
            if sink.awaits_people:
                asked = ticks_ms()
            quiet = (ticks_ms() - max(asked, self.connection.last_activity)) / 1000
            if quiet >= patience:
                raise self._unavailable(f"was silent for {patience:g} s on `{method}`")
            with anyio.move_on_after(max(0.01, patience - quiet)):
                await answered.wait()

    async def ask(
        self,
        method: str,
        params: dict[str, object],
        *,
        patience: float | None = None,
        sink: Sink | None = None,
    ) -> msgspec.Raw:
        """A request outside of a turn, answered within the time of a load if no other is given.

        `sink`: who is asked where the agent has a question about it.
        Raises RemoteError, AgentGoneError, AgentUnavailableError.
        """
        patience = self.plan.agent.load_timeout if patience is None else patience
        callers = self._switchboard.callers
        with self.connection.asking(method, params) as asked:
            if sink is not None and asked.id is not None:
                callers[asked.id] = sink
            try:
                with anyio.fail_after(patience):
                    return await asked.result()
            except TimeoutError:
                raise self._unavailable(
                    f"did not answer `{method}` within {patience:g} s"
                ) from None
            finally:
                if asked.id is not None:
                    callers.pop(asked.id, None)

    def close_session(self, session_id: str) -> None:
        """Let the agent free a session, where it offers that; one that is unknown is as good."""
        if self.is_live and self.greeting.agent_capabilities.offers("close"):
            self.connection.request("session/close", {"sessionId": session_id}, lambda _: None)

    def detach(self, session_id: str) -> None:
        """Nobody listens to that session any more; a retired process ends with its last one."""
        self._switchboard.sinks.pop(session_id, None)
        if self.is_retired:
            self.stop_unless_shared()


def _problem_of(session_id: str) -> str | None:
    """Why an agent's session id cannot be used: it has to go back to the agent as it came."""
    if not session_id:
        return "without a session id"
    if len(session_id.encode()) > MAX_SESSION_ID:
        return f"with a session id of more than {MAX_SESSION_ID} bytes"
    if "\ufffd" in session_id:
        return "with a session id that is not valid Unicode"
    return None
