"""One session at work: its queue, its turn, its agent; commands go in, history comes out.

State is changed and written down in one step without awaiting anything, so memory and journal
cannot tell different stories. One task, `run`, takes the head of the queue, finds it an agent, and
sees it through.
"""

import anyio
import msgspec

from acphost.errors import AcpHostError
from acphost.journal.rows import RunRow, SessionRow
from acphost.journal.writer import SessionLog, Ticket
from acphost.provider.process import AgentProcess
from acphost.session import closing
from acphost.session.asking import Asking
from acphost.session.configure import Configurator
from acphost.session.continuity import Binder
from acphost.session.decisions import DecisionDesk
from acphost.session.elicitations import ElicitationDesk
from acphost.session.ending import Ending
from acphost.session.hazards import Hazards
from acphost.session.heritage import count_earlier
from acphost.session.keepsakes import TITLED, keep, kept
from acphost.session.listener import Listener
from acphost.session.mcp import McpDesk
from acphost.session.packet import Packet, build_packet
from acphost.session.questions import Questions
from acphost.session.queue import RunQueue
from acphost.session.queue_desk import QueueDesk
from acphost.session.readiness import Readiness
from acphost.session.scribe import Scribe, note
from acphost.session.services import Services
from acphost.session.silence import Watchman
from acphost.session.state import SessionState
from acphost.session.surroundings import Surroundings
from acphost.session.transcript import transcript
from acphost.session.turns import Turns
from acphost.session.usage import UsageLedger
from acphost.wire.acp import lenient
from acphost.wire.acp_sessions import Forked
from acphost.wire.controls import SessionConfigureParams
from acphost.wire.event import Kind, Origin
from acphost.wire.host import ErrorWord, RunStatus
from acphost.wire.policy import PolicyRule
from acphost.wire.status import ClosedBinding


class Conversation:
    """A session with its agent. Its public methods are the commands of the socket."""

    def __init__(self, row: SessionRow, *, log: SessionLog, around: Surroundings) -> None:
        self._around = around
        self._traits = around.pool.traits(row.agent_id, row.runtime)
        self.scribe = Scribe(around.writer, log, row, around.now)
        self.state = state = self._restored(row)
        self.scribe.refresh = state.refresh
        self._configurator = Configurator(state, self.scribe)
        self.questions = Questions(
            state, self.scribe, around, patience=self._traits.question_patience
        )
        self._listener = listener = Listener(
            state, self.scribe, around.writer, self._traits,
            deadline=self.questions.deadline,
            configurator=self._configurator,
            on_question=self.questions.watch,
            on_decided=self.questions.pass_on,
            on_dismissed=self.questions.dismiss,
        )  # fmt: skip
        self.mcp = McpDesk(
            row, self.scribe, around.vault,
            configured=lambda: around.settings().mcp,
            environment=lambda: around.pool.environment(row.agent_id),
            takes_any=not self._traits.is_stateless,
        )  # fmt: skip
        self.binder = listener.binder = Binder(
            self.scribe, around.pool, listener,
            now=around.now,
            history=self._history,
            mcp=self.mcp,
            turns_in=self._turns_in,
            history_told=lambda: count_earlier(around.reader, row),
            configurator=self._configurator,
            remarks=state.remarks,
        )  # fmt: skip
        self.asking = Asking(state, self.scribe, self.questions, around)
        self.services = Services(state, self.scribe, listener, around)
        self._serve_agent()
        self.queue = QueueDesk(
            state, self.scribe,
            settings=lambda: around.settings().queue,
            now=around.now,
            on_retry=self.binder.leave_parked,
        )  # fmt: skip
        self._watchman = Watchman(state, self.scribe, self._traits, around.pool.tell)
        self.turns = Turns(
            state, self.scribe, self.binder, self.questions, around.pool, self._traits,
            self._watchman, self.services.receipts,
            transcript=lambda run: transcript(around.reader, row, before=run),
            queue_settings=lambda: around.settings().queue,
            now=around.now,
        )  # fmt: skip
        ask, withdraw = listener.open_question, listener.withdraw_question
        self.readiness = Readiness(
            state, self.scribe, self.binder, self.turns, around.pool,
            Hazards(state, self.scribe, self._traits, ask, withdraw),
            now=around.now,
        )  # fmt: skip

    def _restored(self, row: SessionRow) -> SessionState:
        """The session as the store has it: nothing runs, nobody is asked."""
        settings, now = self._around.settings, self._around.now
        own = msgspec.json.decode(row.policy, type=list[PolicyRule])
        # Its own rules first: they are the more particular ones.
        desk = DecisionDesk(row, self._traits, now, lambda: [*own, *settings().policy.rules])
        forms = ElicitationDesk(row, self._traits.source, now)
        state = SessionState(row, RunQueue(settings().queue.limit), desk, forms)
        state.usage = UsageLedger(row.usage)
        state.is_titled = bool(kept(row.settings, TITLED, bool))
        return state

    def _serve_agent(self) -> None:
        """Give each request of the agent its handler; what it has open ends with the binding."""
        listener = self._listener
        listener.handlers["elicitation/create"] = self.asking.take
        listener.handlers |= self.services.handlers
        listener.on_complete = self.asking.take_complete
        # A file or terminal first: a question about it ends with it.
        listener.withdrawals += [self.services.errands.cancel, self.asking.take_withdrawal]
        self.binder.on_unbound = self.services.end

    @property
    def row(self) -> SessionRow:
        """The session as the store knows it."""
        return self.state.row

    async def _history(self, run: RunRow | None) -> Packet | None:
        return await build_packet(self._around.reader, self.row, before=run)

    async def _turns_in(self, acp_session_id: str) -> int:
        return await self._around.reader.turns_in(self.row.key, acp_session_id)

    # -- commands ---------------------------------------------------------------------------------

    def cancel(self, run_id: str, origin: Origin, *, hold_queue: bool) -> Ticket | None:
        """Stop a run; None if there is nothing (left) to stop."""
        state = self.state
        waiting = state.queue.leave(run_id)
        if waiting is not None:
            return self.queue.cancel(waiting.run, origin)
        turn = state.turn
        if turn is None or turn.run.run_id != run_id:
            return None
        if turn.run.cancel_requested_at is not None:
            return None
        turn.run.cancel_requested_at = self._around.now()
        turn.hold_queue = hold_queue
        turn.dismissed, change = state.cancel_decisions(origin)
        asked = note(Kind.RUN_CANCEL_REQUESTED, {"by": origin}, run=turn.run, origin=origin)
        ticket = self.scribe.write(
            [asked, *change.drafts], runs=[turn.run], statements=change.statements
        )
        turn.cancel_ticket = ticket
        turn.cancel_asked.set()
        return ticket

    async def reset(self, origin: Origin, *, is_cold: bool) -> ClosedBinding:
        """End the binding now, and what runs in it as cancelled; what waits goes on with another.

        With `is_cold` the agent's own session is forgotten: the next one is told the history.
        """
        turn, binding = self.state.turn, self.binder.binding
        if turn is not None:
            if self.binder.is_live and binding and turn.prompt_sent and not turn.cancel_sent:
                # Others may share its process, which then lives on.
                self.turns.notify_cancel(turn, binding)
            self.turns.end(turn, closing.of_reset())
        self.state.login = None
        self.binder.leave_parked()
        self.readiness.give_up()  # a start that hangs is what a reset is for
        self.state.trouble = None
        self._around.pool.reset(self.row.agent_id)
        if binding is not None:
            self.binder.unbind(ErrorWord.RUNTIME_RESET, status="closed")
        if is_cold:
            self.binder.forget()
        closed = ClosedBinding(
            binding=None if binding is None else binding.row.binding_id,
            pid=None if binding is None else binding.process.pid,
        )
        told = {"next": "cold" if is_cold else "continue", "closed": closed}
        ticket = self.scribe.write([note(Kind.SESSION_RESET, told, origin=origin)])
        self.state.wake()
        if binding is not None:
            # Before anything is awaited: the next run must find that process on its way out.
            await self._around.pool.retire(binding.process)
        await self.scribe.durable(ticket)
        return closed

    async def configure(self, params: SessionConfigureParams, origin: Origin) -> None:
        """Set mode, model or options: now where an agent is attached, else at its next start.

        Raises InvalidParamsError, AgentRefusedError, AgentUnavailableError, AgentGoneError.
        """
        binding = self.binder.binding
        seat = binding.seat if binding is not None else None
        await self._configurator.configure(params, seat, origin)

    def rename(self, title: str | None, origin: Origin) -> None:
        """Show a person's title; without one the agent's next title is shown again."""
        self.state.is_titled = title is not None
        self.row.title = title
        self.row.settings = keep(self.row.settings, TITLED, value=title is not None)
        self.scribe.write([note(Kind.SESSION_RENAMED, {"title": title}, origin=origin)])

    async def stop_all(self, origin: Origin) -> None:
        """Nothing waits any more and nothing will start; the running turn is seen to its end."""
        self.close()
        for waiting in list(self.state.queue):
            self.state.queue.leave(waiting.run.run_id)
            self.queue.cancel(waiting.run, origin)
        self.readiness.give_up()
        turn = self.state.turn
        if turn is not None:
            self.cancel(turn.run.run_id, origin, hold_queue=True)
            await turn.over.wait()

    def let_go(self, reason: str) -> AgentProcess | None:
        """Part from the agent for good; returns the process it had, for who wants to end it."""
        asked, change = self.state.withdraw_decisions(reason)
        ticket = self.scribe.write(change.drafts, statements=change.statements)
        self.questions.dismiss(asked, ticket)
        self.binder.leave_parked()
        binding = self.binder.unbind(reason, status="closed")
        return None if binding is None else binding.process

    async def fork_in_agent(self) -> str | None:
        """A copy of the session in the agent's own keeping; None where it cannot or will not."""
        binding = self.binder.binding
        if binding is None or not self.binder.is_live or self.state.turn is not None:
            return None
        process = binding.process
        if not process.greeting.agent_capabilities.offers("fork"):
            return None
        try:
            params = {"sessionId": binding.acp_session_id, **await self.binder.params(process)}
            forked = lenient(Forked, await process.ask("session/fork", params)).session_id
        except (AcpHostError, msgspec.DecodeError):
            return None
        if forked:
            # It is opened again where the copy is worked on.
            process.close_session(forked)
        return forked or None

    def take_settings_of(self, other: "Conversation") -> None:
        """Begin with what a person chose in another session."""
        self._configurator.inherit(other._configurator)  # noqa: SLF001  (its own kind)

    # -- what others may ask ----------------------------------------------------------------------

    async def turn_over(self) -> None:
        """Return when no turn runs."""
        if self.state.turn is not None:
            await self.state.turn.over.wait()

    def is_quiet(self) -> bool:
        """Whether the agent has been silent for longer than is usual for it."""
        binding = self.binder.binding
        return binding is not None and self._watchman.is_quiet(
            binding.process.plan.agent.quiet_after
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing runs, waits or starts, and no agent is attached."""
        state = self.state
        is_wanted = self.readiness.is_wanted or state.turn is not None or bool(state.queue)
        is_attached = self.binder.is_live or self.binder.parked is not None
        return not (is_wanted or state.starting or is_attached)

    # -- the work ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        state = self.state
        while True:
            while not (state.may_start() or (self.readiness.is_wanted and not state.closing)):
                state.work = anyio.Event()
                await state.work.wait()
            head = state.queue.head if state.may_start() else None
            binding = await self.readiness.make_ready(head)
            # While the agent was started the head may have been cancelled, or the queue held.
            if binding is None or head is None or state.queue.head is not head:
                continue
            prompt = self.readiness.fit(head, binding) if state.may_start() else None
            if prompt is not None:
                await self.turns.see_through(head, binding, prompt)

    async def stumble(self) -> None:
        """After a mistake of ours: the turn ends as failed, the agent is replaced, work goes on."""
        turn = self.state.turn
        self.state.starting = False
        if turn is not None:
            error = "internal error; the log of the daemon tells more"
            self.turns.end(
                turn, Ending(status=RunStatus.FAILED, error_code="internal", error=error)
            )
        else:
            self.state.hold("internal error")
            self.scribe.write([note(Kind.QUEUE_HELD, {"reason": self.row.held_reason})])
        await self.turns.drop_binding("internal error")

    # -- the end of the daemon --------------------------------------------------------------------

    def close(self) -> None:
        """Start nothing further."""
        self.state.closing = True

    def interrupt(self) -> None:
        """The drain deadline has passed: the open turn ends without an answer."""
        turn = self.state.turn
        if turn is not None:
            asked = turn.run.cancel_requested_at is not None
            word = ErrorWord.CANCEL_UNCONFIRMED if asked else ErrorWord.HOST_SHUTDOWN
            self.turns.end(
                turn,
                Ending(
                    status=RunStatus.INTERRUPTED,
                    error_code=word,
                    error="the daemon stopped before the agent answered",
                ),
            )

    def part(self) -> None:
        """The daemon stops: the binding ends with it."""
        self.binder.leave_parked()
        self.binder.unbind("the daemon stopped", status="closed")
