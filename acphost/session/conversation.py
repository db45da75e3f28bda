"""One session at work: its queue, its turn, its agent; commands go in, history comes out.

State is changed and written down in one step without awaiting anything, so memory and journal
cannot tell different stories. One task, `run`, takes the head of the queue, finds it an agent, and
sees it through.
"""

from collections.abc import Callable, Iterable, Sequence

import anyio
import msgspec
from anyio.abc import TaskGroup

from acphost.errors import (
    AcpHostError,
    AuthRequiredError,
    ConflictError,
    PermissionNotFoundError,
    RemoteError,
)
from acphost.ids import Clock
from acphost.journal.event import Draft
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.journal.statements import Statement, save_prompt
from acphost.journal.writer import SessionLog, Ticket, Writer
from acphost.provider.pool import AgentPool
from acphost.provider.process import AgentRequest
from acphost.rpc.pending import Answer
from acphost.session import closing
from acphost.session.continuity import Binder, Binding, remote_error
from acphost.session.decisions import CANCELLED, DecisionDesk
from acphost.session.ending import Ending
from acphost.session.listener import Listener, settled
from acphost.session.packet import Packet, build_packet
from acphost.session.queue import RunQueue, Waiting
from acphost.session.resume import wants_history
from acphost.session.scribe import Scribe, note
from acphost.session.state import USER_HOLD, SessionState
from acphost.session.turn import Turn
from acphost.session.vault import Vault
from acphost.settings.model import Settings
from acphost.wire.event import Kind, Origin
from acphost.wire.host import ClosedBinding, ErrorWord, RunStatus, SessionStatus


class Conversation:
    """A session with its agent. Its public methods are the commands of the socket."""

    def __init__(
        self,
        row: SessionRow,
        *,
        log: SessionLog,
        writer: Writer,
        reader: Reader,
        pool: AgentPool,
        settings: Callable[[], Settings],
        tasks: TaskGroup,
        now: Clock,
        is_attended: Callable[[], bool],
        vault: Vault,
    ) -> None:
        self._traits = pool.traits(row.agent_id, row.runtime)
        self._pool = pool
        self._reader = reader
        self._settings = settings
        self._writer = writer
        self._tasks = tasks
        self._now = now
        self._is_attended = is_attended
        self._wake = anyio.Event()
        self._is_wanted = False
        self._starting = anyio.CancelScope()
        self._over: dict[str, anyio.Event] = {}
        self.scribe = Scribe(writer, log, row, now)
        desk = DecisionDesk(row, self._traits.source, now)
        self.state = SessionState(row, RunQueue(settings().queue.limit), desk)
        listener = Listener(
            self.state,
            self.scribe,
            writer,
            self._traits,
            now,
            permission_timeout=lambda: settings().permissions.timeout,
            on_question=self._watch_question,
            on_dismissed=self._dismiss_questions,
        )
        self.binder = listener.binder = Binder(
            self.scribe,
            pool,
            listener,
            now=now,
            history=self._history,
            mcp_servers=lambda: host_mcp_servers(row, vault),
        )

    @property
    def row(self) -> SessionRow:
        """The session as the store knows it."""
        return self.state.row

    async def _history(self, run: RunRow | None) -> Packet | None:
        return await build_packet(self._reader, self.row, before=run)

    def _write(
        self,
        drafts: Sequence[Draft],
        *,
        runs: Iterable[RunRow] = (),
        statements: Iterable[Statement] = (),
    ) -> Ticket:
        self.state.refresh()
        return self.scribe.write(drafts, runs=runs, statements=statements)

    # -- commands ---------------------------------------------------------------------------------

    def accept(self, run: RunRow, content: bytes, created: msgspec.Raw, origin: Origin) -> Ticket:
        """Take a run into the queue. Raises QueueFullError.

        A hold that only waited for the user to speak again ends with this send; the order stays.
        """
        state = self.state
        state.queue.limit = self._settings().queue.limit
        run.queue_order = state.queue.next_order()
        run.queue_rev = 1
        run.first_seq = run.last_seq = self.scribe.next_seq
        position = len(state.queue) + (1 if state.turn else 0)
        told: dict[str, object] = {"prompt": created, "requestId": run.request_id,
                "contextRefs": msgspec.Raw(run.context_refs)}  # fmt: skip
        if run.parent_run_id is not None:
            told["parentRunId"], told["resumeRequestId"] = run.parent_run_id, run.resume_request_id
            state.unresolved.discard(run.parent_run_id)
        drafts = [
            note(Kind.RUN_CREATED, told, run=run, origin=origin),
            note(Kind.RUN_QUEUED, {"position": position}, run=run, origin=origin),
        ]  # fmt: skip
        run.last_seq += 1
        state.queue.join(Waiting(run, content))
        self.row.queue_rev += 1
        if self.row.held_reason is not None and not state.is_held_by_user:
            drafts.append(self._released("a new message was sent", origin))
        self._wake.set()
        return self._write(drafts, runs=[run], statements=[save_prompt(run.key, content)])

    def cancel(self, run_id: str, origin: Origin, *, hold_queue: bool) -> Ticket | None:
        """Stop a run; None if there is nothing (left) to stop."""
        state = self.state
        waiting = state.queue.leave(run_id)
        if waiting is not None:
            return self._cancel_waiting(waiting.run, origin)
        turn = state.turn
        if turn is None or turn.run.run_id != run_id:
            return None
        if turn.run.cancel_requested_at is not None:
            return None
        turn.run.cancel_requested_at = self._now()
        turn.hold_queue = hold_queue
        questions, change = state.desk.cancel_all(origin)
        turn.dismissed = [question.asked for question in questions]
        asked = note(Kind.RUN_CANCEL_REQUESTED, {"by": origin}, run=turn.run, origin=origin)
        ticket = self._write([asked, *change.drafts], runs=[turn.run], statements=change.statements)
        turn.cancel_ticket = ticket
        turn.cancel_asked.set()
        return ticket

    def _cancel_waiting(self, run: RunRow, origin: Origin) -> Ticket:
        self.row.queue_rev += 1
        run.cancel_requested_at = self._now()
        asked = note(Kind.RUN_CANCEL_REQUESTED, {"by": origin}, run=run, origin=origin)
        ending = Ending(status=RunStatus.CANCELLED, stop_reason="cancelled")
        drafts = closing.conclude(
            run, ending, [asked], next_seq=self.scribe.next_seq, now=self._now()
        )
        drafts.append(self._queue_changed("cancelled", origin))
        self.row.last_run_status = run.status
        ticket = self._write(drafts, runs=[run])
        self._announce_end(run)
        return ticket

    def hold(self, reason: str | None, origin: Origin) -> Ticket:
        """Let nothing further start until `release`; what runs goes on."""
        told = f"{USER_HOLD}: {reason}" if reason else USER_HOLD
        self.row.held_reason = told
        return self._write([note(Kind.QUEUE_HELD, {"reason": told}, origin=origin)])

    def release(self, origin: Origin) -> Ticket:
        """Let the queue go on."""
        if self.row.held_reason is None:
            return self._write([])
        ticket = self._write([self._released("released", origin)])
        self._wake.set()
        return ticket

    def _released(self, reason: str, origin: Origin | None) -> Draft:
        was, self.row.held_reason = self.row.held_reason, None
        return note(Kind.QUEUE_RELEASED, {"reason": reason, "was": was}, origin=origin)

    def _queue_changed(self, reason: str, origin: Origin | None = None) -> Draft:
        items = [waiting.run.run_id for waiting in self.state.queue]
        payload = {"items": items, "rev": self.row.queue_rev, "reason": reason}
        return note(Kind.QUEUE_CHANGED, payload, origin=origin)

    async def reset(self, origin: Origin, *, is_cold: bool) -> ClosedBinding:
        """End the binding now, and what runs in it as cancelled; what waits goes on with another.

        With `is_cold` the agent's own session is forgotten: the next one is told the history.
        """
        turn, binding = self.state.turn, self.binder.binding
        if turn is not None:
            if self.binder.is_live and binding and turn.prompt_sent and not turn.cancel_sent:
                # Others may share its process, which then lives on.
                self._notify_cancel(turn, binding)
            self._end(turn, closing.of_reset())
        self._starting.cancel()  # a start that hangs is what a reset is for
        self.state.trouble = None
        self._pool.reset(self.row.agent_id)
        if binding is not None:
            self.binder.unbind(ErrorWord.RUNTIME_RESET, status="closed")
        if is_cold:
            self.binder.forget()
        closed = ClosedBinding(
            binding=None if binding is None else binding.row.binding_id,
            pid=None if binding is None else binding.process.pid,
        )
        told = {"next": "cold" if is_cold else "continue", "closed": closed}
        ticket = self._write([note(Kind.SESSION_RESET, told, origin=origin)])
        self._wake.set()
        if binding is not None:
            # Before anything is awaited: the next run must find that process on its way out.
            await self._pool.retire(binding.process)
        await self.scribe.durable(ticket)
        return closed

    def dismiss(self, run: RunRow, origin: Origin) -> Ticket:
        """A person has seen that the run's outcome is unknown. Raises ConflictError otherwise."""
        if run.status != RunStatus.INTERRUPTED:
            raise ConflictError(
                f"run {run.run_id} is {run.status}; only an interrupted run can be dismissed"
            )
        if run.dismissed_at is not None:
            return self._write([])
        run.dismissed_at = self._now()
        self.state.unresolved.discard(run.run_id)
        drafts = [note(Kind.RUN_DISMISSED, {}, run=run, origin=origin,
                       host={"late": True})]  # fmt: skip
        nothing_waits = not self.state.queue and not self.state.unresolved
        if self.row.held_reason and not self.state.is_held_by_user and nothing_waits:
            drafts.append(self._released("nothing is left to decide", origin))
        return self._write(drafts, runs=[run])

    async def respond(self, permission_id: str, option_id: str, origin: Origin) -> None:
        """Answer an open question; it is journaled before it reaches the agent."""
        await self._answer(permission_id, option_id, origin=origin, rule=None)

    async def _answer(
        self, permission_id: str, option_id: str, *, origin: Origin | None, rule: str | None
    ) -> None:
        question, change = self.state.desk.resolve(
            permission_id, option_id, origin=origin, rule=rule
        )
        ticket = self._write(change.drafts, statements=change.statements)
        with anyio.CancelScope(shield=True):
            # The client may go away; its answer has been taken and must reach the agent.
            await self.scribe.durable(ticket)
            outcome = {"outcome": "selected", "optionId": option_id}
            question.asked.answer({"outcome": outcome})

    async def until_over(self, run_id: str) -> None:
        """Return when the run neither waits nor runs."""
        turn = self.state.turn
        if self.state.queue.find(run_id) or (turn is not None and turn.run.run_id == run_id):
            await self._over.setdefault(run_id, anyio.Event()).wait()

    async def turn_over(self) -> None:
        """Return when no turn runs."""
        if self.state.turn is not None:
            await self.state.turn.over.wait()

    def is_quiet(self) -> bool:
        """Whether the agent has been silent for longer than is usual for it."""
        binding = self.binder.binding
        return binding is not None and self.state.is_quiet(
            self._now(), binding.process.plan.agent.quiet_after
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing runs, waits or starts, and no agent is attached."""
        state = self.state
        is_wanted = self._is_wanted or state.turn is not None or bool(state.queue)
        return not (is_wanted or state.starting or self.binder.is_live)

    def wake(self) -> None:
        """Have `run` look at the queue again."""
        self._wake.set()

    def warm_up(self) -> None:
        """Have the agent started before there is anything to say to it."""
        self._is_wanted = True
        self._wake.set()

    def _announce_end(self, run: RunRow) -> None:
        over = self._over.pop(run.run_id, None)
        if over is not None:
            over.set()

    # -- questions that nobody answers ------------------------------------------------------------

    def _watch_question(self, permission_id: str) -> None:
        permissions = self._settings().permissions
        if permissions.unattended == "reject" and not self._is_attended():
            self._tasks.start_soon(self._reject, permission_id, 0.0, "unattended")
        elif permissions.timeout is not None:
            self._tasks.start_soon(self._reject, permission_id, permissions.timeout, "timeout")

    async def _reject(self, permission_id: str, delay: float, rule: str) -> None:
        """Say no by an offered option; without one the question stays open."""
        await anyio.sleep(delay)
        option_id = self.state.desk.reject_option(permission_id)
        if option_id is not None:
            try:
                await self._answer(permission_id, option_id, origin=None, rule=rule)
            except PermissionNotFoundError:
                return

    def _dismiss_questions(self, asked: list[AgentRequest], ticket: Ticket) -> None:
        """No person will answer these; their agent is told, as it would be by a person."""
        if asked:
            self._tasks.start_soon(self._answer_cancelled, asked, ticket)

    async def _answer_cancelled(self, asked: list[AgentRequest], ticket: Ticket) -> None:
        await settled(self._writer, ticket)
        while asked:
            asked.pop().answer(CANCELLED)

    # -- the work ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        state = self.state
        while True:
            while not (state.may_start() or (self._is_wanted and not state.closing)):
                self._wake = anyio.Event()
                await self._wake.wait()
            self._is_wanted = False
            head = state.queue.head if state.may_start() else None
            binding = await self._make_ready(head)
            # While the agent was started the head may have been cancelled, or the queue held.
            if binding is None or head is None or state.queue.head is not head:
                continue
            if state.may_start():
                await self._see_through(head, binding)

    async def _make_ready(self, head: Waiting | None) -> Binding | None:
        """An agent for the head of the queue; the run fails if there is none to be had."""
        state, run = self.state, head.run if head else None
        state.trouble = None
        if run is not None and wants_history(run) and not self.binder.is_made_for(run):
            await self._drop_binding("resumed with history")
            self.binder.forget()
        if self.binder.is_live:
            return await self.binder.ensure(run)
        state.starting = True
        self._write([])
        try:
            with anyio.CancelScope() as self._starting:
                return await self.binder.ensure(run)
        except AcpHostError as exc:
            state.starting = False
            # A daemon that stops keeps what waits; it does not fail it.
            if not state.closing:
                self._fail_to_start(run, exc)
        finally:
            state.starting = False
            self._write([])
        return None

    def _fail_to_start(self, run: RunRow | None, error: AcpHostError) -> None:
        ending = closing.of_failed_start(error)
        self.state.trouble = _trouble(error)
        if run is None or self.state.queue.leave(run.run_id) is None:
            return
        drafts = closing.conclude(run, ending, [], next_seq=self.scribe.next_seq, now=self._now())
        self.row.last_run_status = run.status
        self.row.queue_rev += 1
        if self.state.queue and self.state.hold(ErrorWord.AGENT_UNAVAILABLE):
            # The others would fail one after the other: keep them until somebody has looked.
            drafts.append(note(Kind.QUEUE_HELD, {"reason": self.row.held_reason}))
        self._write(drafts, runs=[run])
        self._announce_end(run)

    async def _see_through(self, head: Waiting, binding: Binding) -> None:
        """One turn, from `run.started` on disk to its terminal event in the journal."""
        turn = self._start(head, binding)
        await self.scribe.durable(turn.start_ticket)
        if turn.over.is_set():
            pass  # the daemon stops, and would not wait
        elif turn.cancel_asked.is_set():
            self._end(turn, Ending(status=RunStatus.CANCELLED, stop_reason="cancelled"))
        elif not binding.process.is_live:
            gone = binding.process.connection.gone
            assert gone is not None, "a process that is not live has gone, or is being stopped"
            self._end(turn, closing.of_lost_agent(turn.run, gone))
        else:
            self._send_prompt(turn, head.content, binding)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._enforce_cancel, turn, binding)
                await turn.over.wait()
                tasks.cancel_scope.cancel()
        await self._tidy(turn)

    def _start(self, head: Waiting, binding: Binding) -> Turn:
        run, state, now = head.run, self.state, self._now()
        state.queue.leave(run.run_id)
        self.row.queue_rev += 1
        run.status, run.started_at = RunStatus.RUNNING, now
        run.continuity, run.acp_session_id = self.row.mode, binding.acp_session_id
        state.turn = turn = Turn(run)
        turn.last_sign = now
        started = {"acpSessionId": binding.acp_session_id, "continuity": self.row.mode}
        drafts = [
            note(Kind.RUN_STARTED, started, run=run),
            note(Kind.MESSAGE_USER, {"content": msgspec.Raw(head.content)}, run=run),
        ]
        turn.start_ticket = self._write(drafts, runs=[run])
        return turn

    def _send_prompt(self, turn: Turn, content: bytes, binding: Binding) -> None:
        blocks = msgspec.json.decode(content, type=list[msgspec.Raw])
        if binding.prelude is not None:
            prelude = msgspec.json.encode({"type": "text", "text": binding.prelude})
            blocks.insert(0, msgspec.Raw(prelude))
            binding.prelude = None
        self.binder.replay = None
        turn.prompt_sent = True
        params = {"sessionId": binding.acp_session_id, "prompt": blocks}

        def on_answer(answer: Answer) -> None:
            binding.process.has_served |= isinstance(answer, msgspec.Raw)
            if turn.over.is_set():
                self._take_late_answer(turn, answer)
            else:
                self._end(turn, closing.of_answer(self._traits, turn, answer))

        binding.process.connection.request("session/prompt", params, on_answer)

    def _take_late_answer(self, turn: Turn, answer: Answer) -> None:
        """The turn was closed without it: keep what the agent said, change nothing."""
        told: dict[str, object] = {"method": "session/prompt"}
        if isinstance(answer, RemoteError):
            told["agentError"] = remote_error(answer)
        elif isinstance(answer, msgspec.Raw):
            told["response"] = answer
        else:
            return
        host = {"late": True, "evidence": "late_answer"}
        self._write([note(Kind.EVIDENCE, told, run=turn.run, host=host)])

    async def _enforce_cancel(self, turn: Turn, binding: Binding) -> None:
        """Once a stop is asked for: withdraw questions, tell the agent, wait within bounds."""
        await turn.cancel_asked.wait()
        if turn.cancel_ticket is not None:
            await self._answer_cancelled(turn.dismissed, turn.cancel_ticket)
        with anyio.move_on_after(self._traits.cancel_settle):
            await turn.alive.wait()
        if turn.over.is_set():
            return
        self._notify_cancel(turn, binding)
        with anyio.move_on_after(binding.process.plan.agent.cancel_grace):
            await turn.over.wait()
        if not turn.over.is_set():
            self._end(
                turn,
                Ending(
                    status=RunStatus.CANCELLED,
                    stop_reason="cancelled",
                    error="the agent did not confirm the stop in time; its binding was ended",
                    host={"forced": True},
                    rebind="forced_cancel",
                ),
            )

    @staticmethod
    def _notify_cancel(turn: Turn, binding: Binding) -> None:
        turn.cancel_sent = True
        binding.process.connection.notify("session/cancel", {"sessionId": binding.acp_session_id})

    # -- the end of a turn ------------------------------------------------------------------------

    def _end(self, turn: Turn, ending: Ending) -> None:
        """Close the turn with its one terminal event, and decide what the queue does next."""
        state, run = self.state, turn.run
        withdrawn, change = state.desk.withdraw_all("the turn ended")
        before = [*closing.abandoned_tools(run, turn.open_tools), *change.drafts]
        drafts = closing.conclude(
            run, ending, before, next_seq=self.scribe.next_seq, now=self._now()
        )
        state.turn, state.last_run, state.last_end = None, run, self._now()
        self.row.last_run_status = run.status
        if run.status == RunStatus.INTERRUPTED:
            state.unresolved.add(run.run_id)
        reason = self._hold_reason(turn)
        if reason is not None and state.hold(reason):
            drafts.append(note(Kind.QUEUE_HELD, {"reason": self.row.held_reason}))
        ticket = self._write(drafts, runs=[run], statements=change.statements)
        turn.dismissed += [question.asked for question in withdrawn]
        self._dismiss_questions(turn.dismissed, ticket)
        turn.ending = ending
        turn.over.set()
        self._announce_end(run)

    def _hold_reason(self, turn: Turn) -> str | None:
        run, queue = turn.run, self._settings().queue
        if run.status == RunStatus.INTERRUPTED:
            return run.error_code or "interrupted"
        if run.hold_after:
            return f"{USER_HOLD}: holdAfter"
        if not self.state.queue:
            return None
        if run.status == RunStatus.CANCELLED and (turn.hold_queue or queue.on_stop == "hold"):
            return "stopped"
        if run.status == RunStatus.FAILED and queue.on_failed == "hold":
            return "failed"
        return None

    async def _tidy(self, turn: Turn) -> None:
        """Leave the binding fit for the next prompt, or without one."""
        ending = turn.ending
        if ending is None or self.binder.binding is None:
            return
        if ending.is_lost:
            await self._drop_binding("the agent lost its session", status="lost")
            self.binder.forget()
        elif ending.rebind is not None:
            await self._drop_binding(ending.rebind)
        elif ending.cancel_lingers:
            await self._cure_late_cancel(self.binder.binding)

    async def _cure_late_cancel(self, binding: Binding) -> None:
        """A cancel that came too late must not hit the next prompt; if in doubt, a new binding."""
        cure = self._traits.cancel_cure(binding.acp_session_id, binding.model_id)
        if cure is None:
            await self._drop_binding("late_cancel")
            return
        try:
            with anyio.fail_after(binding.process.plan.agent.cancel_grace):
                await binding.process.connection.call(*cure)
        except (TimeoutError, AcpHostError):
            await self._drop_binding("late_cancel")

    async def _drop_binding(self, reason: str, *, status: str = "closed") -> None:
        binding = self.binder.unbind(reason, status=status)
        if binding is not None:
            await self._pool.retire(binding.process)

    async def stumble(self) -> None:
        """After a mistake of ours: the turn ends as failed, the agent is replaced, work goes on."""
        turn = self.state.turn
        self.state.starting = False
        if turn is not None:
            error = "internal error; the log of the daemon tells more"
            self._end(turn, Ending(status=RunStatus.FAILED, error_code="internal", error=error))
        else:
            self.state.hold("internal error")
            self._write([note(Kind.QUEUE_HELD, {"reason": self.row.held_reason})])
        await self._drop_binding("internal error")

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
            self._end(
                turn,
                Ending(
                    status=RunStatus.INTERRUPTED,
                    error_code=word,
                    error="the daemon stopped before the agent answered",
                ),
            )

    def part(self) -> None:
        """The daemon stops: the binding ends with it."""
        self.binder.unbind("the daemon stopped", status="closed")


def _trouble(error: AcpHostError) -> tuple[SessionStatus, str]:
    """The session's status while its agent cannot be had."""
    is_login = isinstance(error, AuthRequiredError)
    return SessionStatus.AUTH_REQUIRED if is_login else SessionStatus.FAILED, str(error)


async def host_mcp_servers(session: SessionRow, vault: Vault) -> list[msgspec.Raw]:
    """The MCP servers an agent is given: those that `session/create` named."""
    kept = await vault.read(session.session_id)
    return msgspec.json.decode(kept or session.mcp_servers, type=list[msgspec.Raw])
