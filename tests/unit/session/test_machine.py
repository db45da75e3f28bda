"""Queue and state together, against a plain model, however the commands fall."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from acphost.errors import QueueFullError
from acphost.provider.traits import Traits
from acphost.session.decisions import DecisionDesk
from acphost.session.elicitations import ElicitationDesk
from acphost.session.queue import RunQueue, Waiting
from acphost.session.state import SessionState
from acphost.session.turn import Turn
from tests.support.stores import now, run_row, session_row

LIMIT = 4


class SessionMachine(RuleBasedStateMachine):
    """What a conversation does with its state, and a list that says what must come of it."""

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.row = session_row()
        self.state = self._fresh()
        self.last_key = 0
        #: The model: what waits, what is in flight, why nothing may start.
        self.waiting: list[str] = []
        self.in_flight: str | None = None
        self.held: str | None = None
        self.started: list[str] = []

    def _fresh(self) -> SessionState:
        forms = ElicitationDesk(self.row, "acp", now)
        desk = DecisionDesk(self.row, Traits(), now)
        return SessionState(self.row, RunQueue(LIMIT), desk, forms)

    @rule(target=runs)
    def send(self) -> str:
        """Accept a run, or refuse it at the limit."""
        try:
            order = self.state.queue.next_order()
        except QueueFullError:
            assert len(self.waiting) == LIMIT
            return ""
        assert len(self.waiting) < LIMIT
        self.last_key += 1
        run = run_row(self.last_key, queue_order=order)
        self.state.queue.join(Waiting(run, b"[]"))
        self.waiting.append(run.run_id)
        if self.held is not None and not self.held.startswith("user"):
            assert not self.state.is_held_by_user
            self.row.held_reason = self.held = None
        return run.run_id

    @rule(run_id=consumes(runs))
    def cancel_waiting(self, run_id: str) -> None:
        """Only what waits can leave, from whatever place."""
        left = self.state.queue.leave(run_id)
        assert (left is not None) == (run_id in self.waiting)
        if left is not None:
            self.waiting.remove(run_id)

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, LIMIT - 1), place=st.integers(0, LIMIT - 1))
    def move(self, which: int, place: int) -> None:
        """What waits may change places."""
        run_id = self.waiting[which % len(self.waiting)]
        place %= len(self.waiting)
        self.state.queue.move(run_id, place)
        self.waiting.remove(run_id)
        self.waiting.insert(place, run_id)

    @rule()
    def start_if_possible(self) -> None:
        """The head starts exactly when the model says that it may."""
        may = bool(self.waiting) and self.in_flight is None and self.held is None
        assert self.state.may_start() == may
        if may:
            head = self.state.queue.head
            assert head is not None
            self.state.queue.leave(head.run.run_id)
            self.state.turn = Turn(head.run)
            self.in_flight = self.waiting.pop(0)
            assert head.run.run_id == self.in_flight
            self.started.append(self.in_flight)

    @precondition(lambda self: self.in_flight is not None)
    @rule(reason=st.sampled_from([None, "stopped", "failed", "agent_exited"]))
    def end(self, reason: str | None) -> None:
        """A turn is over; some ends hold what waits."""
        self.state.turn = None
        self.in_flight = None
        if reason is not None and self.state.hold(reason):
            assert self.held is None
            self.held = reason

    @rule(reason=st.sampled_from(["user", "user: lunch"]))
    def hold(self, reason: str) -> None:
        """A person's hold replaces any other."""
        self.row.held_reason = self.held = reason

    @rule()
    def release(self) -> None:
        """Whatever held it."""
        self.row.held_reason = self.held = None

    @rule()
    def crash(self) -> None:
        """All that is not in the store is gone; the queue is read back in any order."""
        kept = list(self.state.queue)
        self.state = self._fresh()
        for waiting in reversed(kept):
            self.state.queue.join(waiting)
        self.in_flight = None
        if self.held is None and kept:
            self.row.held_reason = self.held = "host_restarted"

    @invariant()
    def the_queue_is_as_it_was_accepted(self) -> None:
        assert [each.run.run_id for each in self.state.queue] == self.waiting

    @invariant()
    def the_word_is_right(self) -> None:
        self.state.refresh()
        expected = "running" if self.in_flight else "held" if self.held else "idle"
        assert self.row.status == expected
        assert self.row.active_run_id == self.in_flight
        assert self.row.held_reason == self.held

    @invariant()
    def nothing_starts_twice(self) -> None:
        assert len(self.started) == len(set(self.started))


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
