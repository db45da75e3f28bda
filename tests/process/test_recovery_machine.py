"""Queue, turns, questions and recovery on a real store, against a plain model, killed at will.

The store's disk can be made to fail: from then on nothing is committed, as in a process that is
about to die. A kill then takes away all that was not committed. What was must be there again, in
its order; what nobody can know any more must be said to be unknown; and putting it right twice is
the same as once.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec import Raw

from acphost.archive.fsck import check_store
from acphost.errors import StorageError
from acphost.journal.store import Store, open_store
from acphost.journal.writer import SessionLog, WriterOptions
from acphost.provider.switchboard import AgentRequest
from acphost.provider.traits import Traits
from acphost.session import closing
from acphost.session.decisions import DecisionDesk
from acphost.session.elicitations import ElicitationDesk
from acphost.session.ending import Ending
from acphost.session.queue import RunQueue, Waiting
from acphost.session.queue_desk import QueueDesk
from acphost.session.recovery import reconcile
from acphost.session.scribe import Scribe, note
from acphost.session.state import SessionState
from acphost.session.turn import Turn
from acphost.settings.model import QueueSettings
from acphost.wire.event import Kind, Origin
from acphost.wire.host import RunStatus
from tests.support.stores import run_row, session_row

HOUR = 3_600_000
#: So many units at least are written in a life.
A_FEW = 6
ORIGIN = Origin(client_id="c", actor_id="a", client_name="n")
QUESTION = Raw(b'{"sessionId":"s","toolCall":{},"options":[{"optionId":"y","kind":"allow_once"}]}')


@dataclass
class Model:
    """What must be so, in words of its own."""

    waiting: list[str] = field(default_factory=list)
    running: str | None = None
    is_cancelling: bool = False
    held: str | None = None
    ended: dict[str, str] = field(default_factory=dict)
    unresolved: set[str] = field(default_factory=set)
    questions: dict[str, str] = field(default_factory=dict)
    open_tools: set[str] = field(default_factory=set)

    def crash(self, *, goes_on: bool) -> None:
        """What a start makes of it; by configuration what waits `goes_on`."""
        self.questions = {
            name: "expired" if word == "pending" else word for name, word in self.questions.items()
        }
        self.open_tools.clear()
        # A session that had nothing to do stays as it was, whatever is unresolved of earlier runs.
        if self.held is None and (self.running is not None or self.waiting):
            if not goes_on or not self.waiting:
                self.held = "host_restarted"
            elif self.is_cancelling:
                self.held = "cancel_unconfirmed"
        if self.running is not None:
            self.ended[self.running] = "interrupted"
            self.unresolved.add(self.running)
        self.running, self.is_cancelling = None, False


class Life:
    """One daemon's session on the store, until it is killed."""

    def __init__(self, store: Store, log: SessionLog, state: SessionState, clock: "Clock") -> None:
        self.store = store
        self.state = state
        self.scribe = Scribe(store.writer, log, state.row, clock)
        self.scribe.refresh = state.refresh
        self.queue = QueueDesk(state, self.scribe, settings=QueueSettings, now=clock)


class Clock:
    """Goes forward by itself, and is set now and then."""

    def __init__(self) -> None:
        self.now = 1_764_490_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Disk:
    """Lets commits through, or fails them."""

    def __init__(self) -> None:
        self.has_failed = False

    def __call__(self) -> None:
        if self.has_failed:
            raise StorageError("the disk does not answer")


class RecoveryMachine(RuleBasedStateMachine):
    """What clients and agents do to a session whose daemon may be killed at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ah-", dir="/tmp"))
        self.path = self.folder / "journal.db"
        self.clock, self.disk = Clock(), Disk()
        self.model = Model()
        self.settings = QueueSettings()
        #: The model as it was when the last unit was committed, by the last seq of that.
        self.past: dict[int, Model] = {}
        self.keys = self.units = 0
        self.portal_scope: AbstractContextManager[BlockingPortal] = start_blocking_portal()
        self.portal = self.portal_scope.__enter__()
        self.scope: AbstractContextManager[Life] | None = None

    def teardown(self) -> None:
        try:
            if self.scope is not None:
                self.close()
        finally:
            self.portal_scope.__exit__(None, None, None)
            shutil.rmtree(self.folder)

    # -- lives ------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        """The first daemon, with one session."""
        self.open(is_new=True)
        self.done()

    def open(self, *, is_new: bool = False) -> None:
        self.scope = self.portal.wrap_async_context_manager(self._life(is_new=is_new))
        self.life = self.scope.__enter__()

    def close(self) -> None:
        assert self.scope is not None
        self.scope.__exit__(None, None, None)
        self.scope = None

    @asynccontextmanager
    async def _life(self, *, is_new: bool) -> AsyncGenerator[Life]:
        options = WriterOptions(before_commit=self.disk, first_retry=0.001, last_retry=0.001)
        async with (
            open_store(self.path, now=self.clock, options=options) as store,
            anyio.create_task_group() as tasks,
        ):
            await tasks.start(store.writer.run)
            if is_new:
                life = self._first(store)
            else:
                await reconcile(store, self.clock, lambda _: Traits(), self.settings)
                head = store.writer.head
                await reconcile(store, self.clock, lambda _: Traits(), self.settings)
                assert store.writer.head == head, "putting it right again changes something"
                life = await self._again(store)
            yield life
            # Nothing is drained: a daemon that is killed has no time for it.
            tasks.cancel_scope.cancel()

    def _first(self, store: Store) -> Life:
        row = session_row(store.writer.next_session_key())
        desk = DecisionDesk(row, Traits(), self.clock)
        forms = ElicitationDesk(row, "acp", self.clock)
        state = SessionState(row, RunQueue(1000), desk, forms)
        life = Life(store, SessionLog(row.key, row.session_id), state, self.clock)
        life.scribe.write([note(Kind.SESSION_CREATED)])
        return life

    async def _again(self, store: Store) -> Life:
        """As a house brings a session back to life."""
        row = await store.reader.session_by_key(1)
        assert row is not None, "the session is gone"
        desk = DecisionDesk(row, Traits(), self.clock)
        forms = ElicitationDesk(row, "acp", self.clock)
        state = SessionState(row, RunQueue(1000), desk, forms)
        for run in await store.reader.queued(row.key):
            content = await store.reader.prompt(run.key)
            assert content == f'[{{"text":"{run.run_id}"}}]'.encode(), "a prompt is gone"
            state.queue.join(Waiting(run, content))
        state.unresolved.update(run.run_id for run in await store.reader.unresolved_runs(row.key))
        return Life(store, SessionLog(row.key, row.session_id, row.last_seq), state, self.clock)

    def on_loop(self, step: Callable[..., object], *args: object) -> object:
        """As everything of the daemon, on its loop."""
        return self.portal.call(partial(step, *args))

    def done(self) -> None:
        """A unit was written: remember what a store that has it must tell."""
        seq, model = self.life.scribe.log.seq, deepcopy(self.model)
        self.units += 1
        if not self.disk.has_failed:
            self.on_loop(self.life.store.writer.drain)
            self.past = {seq: model}

    # -- what happens -----------------------------------------------------------------------------

    @rule(is_first=st.booleans())
    def send(self, *, is_first: bool) -> None:
        """A client sends; where nothing else is to be done the agent is sent it at once."""
        self.keys += 1
        run = run_row(self.life.store.writer.next_run_key(), run_id=f"run_x{self.keys}",
                      request_id=f"q{self.keys}")  # fmt: skip
        content = f'[{{"text":"{run.run_id}"}}]'.encode()
        self.on_loop(self.life.queue.accept, run, content, ORIGIN)
        self.model.waiting.append(run.run_id)
        if self.model.held and not self.model.held.startswith("user"):
            self.model.held = None
        self.done()
        if is_first and self.life.state.may_start():
            self.start()

    @precondition(lambda self: self.life.state.may_start())
    @rule()
    def start(self) -> None:
        """The head of the queue is sent to the agent."""
        state = self.life.state

        def step() -> str:
            head = state.queue.head
            assert head is not None
            run = head.run
            state.queue.leave(run.run_id)
            state.row.queue_rev += 1
            run.status, run.started_at = RunStatus.RUNNING, self.clock()
            state.turn = Turn(run)
            user = {"content": Raw(head.content)}
            drafts = [note(Kind.RUN_STARTED, run=run), note(Kind.MESSAGE_USER, user, run=run)]
            self.life.scribe.write(drafts, runs=[run])
            return run.run_id

        self.model.running = self.model.waiting.pop(0)
        assert self.on_loop(step) == self.model.running
        self.done()

    @precondition(lambda self: self.model.running is not None)
    @rule()
    def use_a_tool(self) -> None:
        """The agent begins something."""
        turn = self.life.state.turn
        assert turn is not None
        call = f"c{len(self.model.open_tools)}"

        def step() -> None:
            kind, _ = turn.calls.follow(Kind.TOOL_STARTED, call)
            self.life.scribe.write([note(kind, {"toolCallId": call}, run=turn.run)])

        self.on_loop(step)
        self.model.open_tools.add(call)
        self.done()

    @precondition(lambda self: self.model.running is not None)
    @rule()
    def ask(self) -> None:
        """The agent asks people."""
        turn, state = self.life.state.turn, self.life.state
        assert turn is not None

        def step() -> str:
            asked = AgentRequest(1, "session/request_permission", QUESTION, None)  # type: ignore[arg-type]
            opened = state.desk.open(asked, turn.run, timeout=None)
            assert opened.question is not None
            self.life.scribe.write(opened.change.drafts, statements=opened.change.statements)
            return opened.question.row.permission_id

        self.model.questions[str(self.on_loop(step))] = "pending"
        self.done()

    @precondition(lambda self: "pending" in self.model.questions.values())
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """One of them answers."""
        still = [name for name, word in self.model.questions.items() if word == "pending"]
        name = data.draw(st.sampled_from(still))

        def step() -> None:
            _, change = self.life.state.desk.resolve(name, "y", origin=ORIGIN)
            self.life.scribe.write(change.drafts, statements=change.statements)

        self.on_loop(step)
        self.model.questions[name] = "resolved"
        self.done()

    @precondition(lambda self: bool(self.model.waiting))
    @rule(data=st.data())
    def cancel_waiting(self, data: st.DataObject) -> None:
        """A run that waits is cancelled, from whatever place."""
        run_id = data.draw(st.sampled_from(self.model.waiting))

        def step() -> None:
            left = self.life.state.queue.leave(run_id)
            assert left is not None
            self.life.queue.cancel(left.run, ORIGIN)

        self.on_loop(step)
        self.model.waiting.remove(run_id)
        self.model.ended[run_id] = "cancelled"
        self.done()

    @precondition(lambda self: self.model.running is not None and not self.model.is_cancelling)
    @rule()
    def cancel_running(self) -> None:
        """A stop is asked for; the agent has not confirmed it."""
        turn = self.life.state.turn
        assert turn is not None

        def step() -> None:
            turn.run.cancel_requested_at = self.clock()
            asked = note(Kind.RUN_CANCEL_REQUESTED, run=turn.run, origin=ORIGIN)
            self.life.scribe.write([asked], runs=[turn.run])

        self.on_loop(step)
        self.model.is_cancelling = True
        self.done()

    @precondition(lambda self: self.model.running is not None)
    @rule(status=st.sampled_from(["completed", "failed", "cancelled", "interrupted"]))
    def end(self, status: str) -> None:
        """The turn is over, its one way or another; an unknown outcome holds the queue."""
        state, model = self.life.state, self.model
        turn = state.turn
        assert turn is not None

        def step() -> None:
            _, change = state.desk.withdraw_all("the turn ended")
            before = [*closing.abandoned_tools(turn.run, turn.calls), *change.drafts]
            ending = Ending(status=RunStatus(status))
            drafts = closing.conclude(
                turn.run, ending, before, next_seq=self.life.scribe.next_seq, now=self.clock()
            )
            state.turn = None
            state.row.last_run_status = status
            if status == "interrupted":
                state.unresolved.add(turn.run.run_id)
                if state.hold("agent_exited"):
                    drafts.append(note(Kind.QUEUE_HELD))
            self.life.scribe.write(drafts, runs=[turn.run], statements=change.statements)

        self.on_loop(step)
        assert model.running is not None
        model.ended[model.running] = status
        if status == "interrupted":
            model.unresolved.add(model.running)
            model.held = model.held or "agent_exited"
        model.questions = {
            name: "expired" if word == "pending" else word for name, word in model.questions.items()
        }
        model.open_tools.clear()
        model.running, model.is_cancelling = None, False
        self.done()

    @rule(reason=st.sampled_from([None, "lunch"]))
    def hold(self, reason: str | None) -> None:
        """A person stops the queue."""
        self.on_loop(self.life.queue.hold, reason, ORIGIN)
        self.model.held = "user: lunch" if reason else "user"
        self.done()

    @rule()
    def release(self) -> None:
        """A person lets it go on."""
        self.on_loop(self.life.queue.release, ORIGIN)
        self.model.held = None
        self.done()

    @rule(hours=st.sampled_from([-1000, -1, 1, 1000]))
    def set_the_clock(self, hours: int) -> None:
        """Whatever it shows, order is what was accepted first."""
        self.clock.now += hours * HOUR

    @precondition(lambda self: not self.disk.has_failed)
    @rule()
    def fail_the_disk(self) -> None:
        """From here on nothing is kept, and nobody is told that it was."""
        self.disk.has_failed = True

    # -- the kill ---------------------------------------------------------------------------------

    @precondition(lambda self: self.units >= A_FEW)
    @rule(on_interrupted=st.sampled_from(["hold", "continue"]))
    def kill(self, on_interrupted: Literal["hold", "continue"]) -> None:
        """What is kept is a beginning of what was done, and a new start puts it right."""
        self.close()
        self.settings = QueueSettings(on_interrupted=on_interrupted)
        self.disk.has_failed = False
        self.units = 0
        report = check_store(self.path, here=False)
        assert report.is_clean, report.findings
        with sqlite3.connect(self.path) as connection:
            (seq,) = connection.execute("SELECT max(seq) FROM events").fetchone()
            keys = [key for (key,) in connection.execute("SELECT run_id FROM runs ORDER BY key")]
        connection.close()
        assert seq in self.past, f"seq {seq} is not the end of what was committed"
        self.model = self.past[seq]
        assert set(self.model.waiting) <= set(keys)
        self.model.crash(goes_on=on_interrupted == "continue")
        self.past = {}
        self.open()
        self.compare()
        self.done()
        self.on_loop(self.life.store.writer.drain)
        report = check_store(self.path, here=False)
        assert report.is_clean, report.findings

    def compare(self) -> None:
        """The store tells what the model does."""
        model, state = self.model, self.life.state
        assert [each.run.run_id for each in state.queue] == model.waiting
        assert state.unresolved == model.unresolved
        assert state.row.held_reason == model.held
        assert state.row.status == ("held" if model.held or model.unresolved else "idle")
        assert state.row.active_run_id is None
        with sqlite3.connect(self.path) as connection:
            runs = dict(connection.execute("SELECT run_id, status FROM runs").fetchall())
            asked = dict(connection.execute("SELECT permission_id, status FROM decisions"))
        connection.close()
        assert runs == {**dict.fromkeys(model.waiting, "pending"), **model.ended}
        assert asked == model.questions


TestRecoveryMachine = RecoveryMachine.TestCase
# A life takes a while: to shrink one that went wrong would take minutes.
TestRecoveryMachine.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None, phases=[Phase.reuse, Phase.generate]
)
