"""An agent for the head of the queue that takes its prompt, or the reason why there is none."""

import anyio

from acphost.errors import (
    AcpHostError,
    AuthRequiredError,
    ShuttingDownError,
    UnsupportedContentError,
)
from acphost.ids import Clock
from acphost.journal.rows import RunRow
from acphost.provider.pool import AgentPool
from acphost.session import closing
from acphost.session.binding import Binding
from acphost.session.content import Fitted, fit
from acphost.session.continuity import Binder
from acphost.session.hazards import Hazards
from acphost.session.queue import Waiting
from acphost.session.resume import wants_history
from acphost.session.scribe import Scribe, note
from acphost.session.state import SessionState
from acphost.session.turns import Turns
from acphost.wire.event import Kind
from acphost.wire.host import ErrorWord, SessionStatus
from acphost.wire.logins import Login, choices


class _Attempt:
    """One try to get the agent: over once it is there, or could not be had."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.error: AcpHostError | None = None


class Readiness:
    """Starts the agent of one session when it is needed, or wanted."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        binder: Binder,
        turns: Turns,
        pool: AgentPool,
        hazards: Hazards,
        *,
        now: Clock,
    ) -> None:
        self._state = state
        self._row = state.row
        self._scribe = scribe
        self._binder = binder
        self._turns = turns
        self._pool = pool
        self._hazards = hazards
        self._now = now
        #: The agent is to be started though nothing waits for it.
        self.is_wanted = False
        self._attempt = _Attempt()
        self._starting = anyio.CancelScope()

    # -- wanted -----------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Have the agent started before there is anything to say to it."""
        self.is_wanted = True
        self._state.wake()

    async def started(self) -> Binding:
        """The agent, started if need be, with or without anything to say to it.

        Raises why it cannot be had: AgentUnavailableError, AuthRequiredError, RemoteError.
        """
        while not (self._binder.is_live and self._binder.binding is not None):
            if self._state.closing:
                raise ShuttingDownError("the daemon is stopping and starts no agent")
            attempt = self._attempt
            if not self._state.starting:
                self.warm_up()
            await attempt.over.wait()
            if attempt.error is not None:
                raise attempt.error
        return self._binder.binding

    def try_again(self) -> None:
        """Somebody has logged in, or says so: what waits is tried once more."""
        self._state.login = None
        self.is_wanted |= not self._state.queue
        self._state.wake()

    def give_up(self) -> None:
        """End a start that is under way; whoever asked for it decides what comes next."""
        self._starting.cancel()

    # -- content ----------------------------------------------------------------------------------

    def check_content(self, content: bytes) -> None:
        """Raises UnsupportedContentError for what the agent at hand is known not to take."""
        binding = self._binder.binding
        if binding is not None and self._binder.is_live:
            fit(content, binding.process.greeting.agent_capabilities.prompt_capabilities)

    def fit(self, head: Waiting, binding: Binding) -> Fitted | None:
        """The prompt as this agent takes it; the run fails, unsent, where it does not."""
        takes = binding.process.greeting.agent_capabilities.prompt_capabilities
        try:
            return fit(head.content, takes)
        except UnsupportedContentError as exc:
            self._fail_unsent(head.run, exc)
            return None

    # -- the start --------------------------------------------------------------------------------

    async def make_ready(self, head: Waiting | None) -> Binding | None:
        """An agent for the head of the queue; the run fails if there is none to be had."""
        state, run = self._state, head.run if head else None
        self.is_wanted = False
        state.trouble = None
        if run is not None and wants_history(run) and not self._binder.is_made_for(run):
            await self._turns.drop_binding("resumed with history")
            self._binder.forget()
        if self._binder.is_outdated:
            await self._turns.drop_binding("other MCP servers")
        if self._binder.is_live:
            return await self._binder.ensure(run)
        state.starting = True
        self._scribe.write([])
        try:
            with anyio.CancelScope() as self._starting:
                if not await self._hazards.pass_(run):
                    return None
                binding = await self._binder.ensure(run)
                state.login = None
                return binding
        except AuthRequiredError as exc:
            state.starting = False
            self._attempt.error = exc
            if not state.closing:
                self._await_login(run, exc)
        except AcpHostError as exc:
            state.starting = False
            self._attempt.error = exc
            # A daemon that stops keeps what waits; it does not fail it.
            if not state.closing:
                self._fail_to_start(run, exc)
        finally:
            state.starting = False
            self._scribe.write([])
            self._attempt.over.set()
            self._attempt = _Attempt()
        return None

    def _await_login(self, run: RunRow | None, error: AuthRequiredError) -> None:
        """Nothing fails: what waits goes on waiting, until somebody logs in or sends again."""
        parked = self._binder.parked
        offered = parked.greeting.auth_methods if parked is not None else []
        self._state.login = login = Login(
            agent_id=self._row.agent_id, message=str(error), methods=choices(offered)
        )
        self._state.trouble = (SessionStatus.AUTH_REQUIRED, str(error))
        told = {"code": AuthRequiredError.word, "message": str(error), "agentId": login.agent_id,
                "methods": login.methods}  # fmt: skip
        self._scribe.write([note(Kind.ERROR, told, run=run)])
        self._pool.tell(
            {
                "agentId": self._row.agent_id,
                "state": "auth_required",
                "sessionId": self._row.session_id,
                "reason": str(error),
                "methods": login.methods,
                "cure": f"acphost agents login {self._row.agent_id}",
            }
        )

    def _fail_to_start(self, run: RunRow | None, error: AcpHostError) -> None:
        self._state.trouble = _trouble(error)
        if run is not None:
            self._fail_unsent(run, error)

    def _fail_unsent(self, run: RunRow, error: AcpHostError) -> None:
        ending = closing.of_failed_start(error)
        if self._state.queue.leave(run.run_id) is None:
            return
        drafts = closing.conclude(run, ending, [], next_seq=self._scribe.next_seq, now=self._now())
        self._row.last_run_status = run.status
        self._row.queue_rev += 1
        is_about_agent = not isinstance(error, UnsupportedContentError)
        if is_about_agent and self._state.queue and self._state.hold(ErrorWord.AGENT_UNAVAILABLE):
            # The others would fail one after the other: keep them until somebody has looked.
            drafts.append(note(Kind.QUEUE_HELD, {"reason": self._row.held_reason}))
        self._scribe.write(drafts, runs=[run])
        self._state.announce_end(run)


def _trouble(error: AcpHostError) -> tuple[SessionStatus, str]:
    """The session's status while its agent cannot be had."""
    is_login = isinstance(error, AuthRequiredError)
    return SessionStatus.AUTH_REQUIRED if is_login else SessionStatus.FAILED, str(error)
