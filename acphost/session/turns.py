"""One prompt on its way through an agent: started, stopped, ended, and tidied up after."""

from collections.abc import Awaitable, Callable

import anyio
import msgspec

from acphost.errors import AcpHostError, RemoteError
from acphost.ids import Clock
from acphost.journal.rows import RunRow
from acphost.provider.connection import AgentGoneError
from acphost.provider.pool import AgentPool
from acphost.provider.traits import Traits
from acphost.rpc.pending import Answer
from acphost.session import closing
from acphost.session.binding import Binding, remote_error
from acphost.session.content import Fitted
from acphost.session.continuity import Binder
from acphost.session.ending import Ending
from acphost.session.questions import Questions
from acphost.session.queue import Waiting
from acphost.session.receipts import Receipts
from acphost.session.scribe import Scribe, note
from acphost.session.silence import Watchman
from acphost.session.state import USER_HOLD, SessionState
from acphost.session.transcript import Message
from acphost.session.turn import Turn
from acphost.settings.model import QueueSettings
from acphost.wire.acp import TRANSCRIPT
from acphost.wire.event import Kind
from acphost.wire.host import RunStatus

#: So often a busy agent is asked again, after so many seconds at first and then twice as long.
MAX_REFUSALS = 6
FIRST_PAUSE = 0.5


class Turns:
    """Sees the runs of one session through, one at a time."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        binder: Binder,
        questions: Questions,
        pool: AgentPool,
        traits: Traits,
        watchman: Watchman,
        receipts: Receipts,
        *,
        transcript: Callable[[RunRow], Awaitable[list[Message]]],
        queue_settings: Callable[[], QueueSettings],
        now: Clock,
    ) -> None:
        self._state = state
        self._row = state.row
        self._scribe = scribe
        self._binder = binder
        self._questions = questions
        self._pool = pool
        self._traits = traits
        self._watchman = watchman
        self._receipts = receipts
        self._transcript = transcript
        self._queue_settings = queue_settings
        self._now = now

    async def see_through(self, head: Waiting, binding: Binding, prompt: Fitted) -> None:
        """One turn, from `run.started` on disk to its terminal event in the journal."""
        turn = self._start(head, binding, prompt)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._receipts.begin, turn)
            await self._scribe.durable(turn.start_ticket)
        meta = await self._meta(head)
        if turn.over.is_set():
            pass  # the daemon stops, and would not wait
        elif turn.cancel_asked.is_set():
            self.end(turn, Ending(status=RunStatus.CANCELLED, stop_reason="cancelled"))
        elif not binding.process.is_live:
            gone = binding.process.connection.gone
            assert gone is not None, "a process that is not live has gone, or is being stopped"
            self.end(turn, closing.of_unheard_prompt(turn.run, gone))
        else:
            send = self._send_prompt(turn, prompt.blocks, binding, meta)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._enforce_cancel, turn, binding)
                tasks.start_soon(self._ask_again, turn, send)
                tasks.start_soon(self._watchman.watch, turn, binding.process.plan.agent.quiet_after)
                await turn.over.wait()
                tasks.cancel_scope.cancel()
        await self._tidy(turn)

    def _start(self, head: Waiting, binding: Binding, prompt: Fitted) -> Turn:
        run, state, now = head.run, self._state, self._now()
        state.queue.leave(run.run_id)
        self._row.queue_rev += 1
        run.status, run.started_at = RunStatus.RUNNING, now
        run.continuity, run.acp_session_id = self._row.mode, binding.acp_session_id
        state.turn = turn = Turn(run)
        turn.last_sign, turn.heard = now, state.ticks()
        counts = binding.process.plan.agent.usage
        turn.usage_is_cumulative = (
            self._traits.usage_is_cumulative if counts is None else counts == "cumulative"
        )
        state.usage.begin(binding.process.plan.launch_id)
        # What was said stays as it was said, whatever became of it on the way to the agent.
        started = {"acpSessionId": binding.acp_session_id, "continuity": self._row.mode}
        drafts = [
            note(Kind.RUN_STARTED, started, run=run),
            note(
                Kind.MESSAGE_USER,
                {"content": msgspec.Raw(head.content)},
                run=run,
                host={"simplified": prompt.simplified} if prompt.simplified else None,
            ),
        ]
        turn.start_ticket = self._scribe.write(drafts, runs=[run])
        return turn

    async def _meta(self, head: Waiting) -> dict[str, object]:
        """What goes with a prompt: trace context; what was said before, where it is forgotten."""
        meta: dict[str, object] = {**head.trace}
        if self._traits.is_stateless:
            meta[TRANSCRIPT] = await self._transcript(head.run)
        return {"_meta": meta} if meta else {}

    def _send_prompt(
        self, turn: Turn, blocks: list[msgspec.Raw], binding: Binding, meta: dict[str, object]
    ) -> Callable[[], None]:
        """Send the prompt; returns how to send it once more."""
        if binding.prelude is not None:
            prelude = msgspec.json.encode({"type": "text", "text": binding.prelude})
            blocks.insert(0, msgspec.Raw(prelude))
            binding.prelude = None
        self._binder.replay = None
        turn.prompt_sent = True
        params = {"sessionId": binding.acp_session_id, "prompt": blocks, **meta}

        def on_answer(answer: Answer) -> None:
            binding.process.has_served |= isinstance(answer, msgspec.Raw)
            if turn.over.is_set():
                self._take_late_answer(turn, answer)
            elif isinstance(answer, RemoteError) and self._is_put_off(turn, answer):
                turn.put_off.set()
            elif isinstance(answer, AgentGoneError) and turn.request_id in {None, *answer.unheard}:
                self.end(turn, closing.of_unheard_prompt(turn.run, answer))
            else:
                self.end(turn, closing.of_answer(self._traits, turn, answer))

        def send() -> None:
            turn.request_id = binding.process.connection.request(
                "session/prompt", params, on_answer
            )

        send()
        return send

    def _is_put_off(self, turn: Turn, error: RemoteError) -> bool:
        """Whether the prompt is to be sent once more: the agent had not begun with it (X-3).

        One that has said anything in the turn may have begun: its prompt is never sent again.
        """
        if turn.updates or turn.refusals >= MAX_REFUSALS or not self._traits.is_busy(error):
            return False
        turn.refusals += 1
        told = {"method": "session/prompt", "agentError": remote_error(error)}
        host = {"evidence": "busy", "attempt": turn.refusals}
        self._scribe.write([note(Kind.EVIDENCE, told, run=turn.run, host=host)])
        return True

    async def _ask_again(self, turn: Turn, send: Callable[[], None]) -> None:
        """Bring a prompt to an agent that was busy with something of its own; the queue waits."""
        while True:
            await turn.put_off.wait()
            with anyio.move_on_after(FIRST_PAUSE * 2 ** (turn.refusals - 1)):
                await turn.cancel_asked.wait()
            if turn.cancel_asked.is_set():
                self.end(turn, Ending(status=RunStatus.CANCELLED, stop_reason="cancelled"))
                return
            turn.put_off = anyio.Event()
            send()

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
        self._scribe.write([note(Kind.EVIDENCE, told, run=turn.run, host=host)])

    # -- the stop ---------------------------------------------------------------------------------

    async def _enforce_cancel(self, turn: Turn, binding: Binding) -> None:
        """Once a stop is asked for: withdraw questions, tell the agent, wait within bounds."""
        await turn.cancel_asked.wait()
        if turn.cancel_ticket is not None:
            await self._questions.answer_cancelled(turn.dismissed, turn.cancel_ticket)
        with anyio.move_on_after(self._traits.cancel_settle):
            await turn.alive.wait()
        if turn.over.is_set() or turn.put_off.is_set():
            return
        self.notify_cancel(turn, binding)
        with anyio.move_on_after(binding.process.plan.agent.cancel_grace):
            await turn.over.wait()
        if not turn.over.is_set():
            self.end(
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
    def notify_cancel(turn: Turn, binding: Binding) -> None:
        """Ask the agent to stop; once for a turn."""
        turn.cancel_sent = True
        binding.process.connection.notify("session/cancel", {"sessionId": binding.acp_session_id})

    # -- the end ----------------------------------------------------------------------------------

    def end(self, turn: Turn, ending: Ending) -> None:
        """Close the turn with its one terminal event, and decide what the queue does next."""
        state, run = self._state, turn.run
        receipt = self._receipts.end(turn)
        withdrawn, change = state.withdraw_decisions("the turn ended")
        before = [*closing.abandoned_tools(run, turn.calls), *change.drafts]
        if receipt is not None:
            before.append(receipt)
        run.usage = state.usage.end(
            ending.usage, is_cumulative=turn.usage_is_cumulative, model=self._row.resolved_model
        )
        if run.usage is not None:
            ending.extra["usage"] = state.usage.told()
        drafts = closing.conclude(
            run, ending, before, next_seq=self._scribe.next_seq, now=self._now()
        )
        state.turn, state.last_run, state.last_end = None, run, state.ticks()
        state.last_calls = turn.calls
        self._row.last_run_status = run.status
        if run.status == RunStatus.INTERRUPTED:
            state.unresolved.add(run.run_id)
        reason = self._hold_reason(turn)
        if reason is not None and state.hold(reason):
            drafts.append(note(Kind.QUEUE_HELD, {"reason": self._row.held_reason}))
        ticket = self._scribe.write(drafts, runs=[run], statements=change.statements)
        turn.dismissed += withdrawn
        self._questions.dismiss(turn.dismissed, ticket)
        turn.ending = ending
        turn.over.set()
        self._state.announce_end(run)

    def _hold_reason(self, turn: Turn) -> str | None:
        run, queue = turn.run, self._queue_settings()
        goes_on = queue.on_interrupted == "continue" and self._state.queue and not turn.hold_queue
        if run.status == RunStatus.INTERRUPTED and not goes_on:
            return run.error_code or "interrupted"
        if run.hold_after:
            return f"{USER_HOLD}: holdAfter"
        if not self._state.queue:
            return None
        if run.status == RunStatus.CANCELLED and (turn.hold_queue or queue.on_stop == "hold"):
            return "stopped"
        if run.status == RunStatus.FAILED and queue.on_failed == "hold":
            return "failed"
        return None

    async def _tidy(self, turn: Turn) -> None:
        """Leave the binding fit for the next prompt, or without one."""
        ending = turn.ending
        if ending is None or self._binder.binding is None:
            return
        if ending.is_lost:
            await self.drop_binding("the agent lost its session", status="lost")
            self._binder.forget()
        elif ending.rebind is not None:
            await self.drop_binding(ending.rebind)
        elif ending.cancel_lingers:
            await self._cure_late_cancel(self._binder.binding)

    async def _cure_late_cancel(self, binding: Binding) -> None:
        """A cancel that came too late must not hit the next prompt; if in doubt, a new binding."""
        cure = self._traits.cancel_cure(binding.acp_session_id, self._binder.model_id)
        if cure is None:
            await self.drop_binding("late_cancel")
            return
        try:
            with anyio.fail_after(binding.process.plan.agent.cancel_grace):
                await binding.process.connection.call(*cure)
                self._note_request(cure[0])
        except (TimeoutError, AcpHostError):
            await self.drop_binding("late_cancel")

    def _note_request(self, method: str) -> None:
        """Some requests have the agent count its tokens from zero."""
        if method in self._traits.usage_restarts_at:
            self._state.usage.restart()

    async def drop_binding(self, reason: str, *, status: str = "closed") -> None:
        """Let the next prompt find another way to an agent."""
        binding = self._binder.unbind(reason, status=status)
        if binding is not None:
            await self._pool.retire(binding.process)
