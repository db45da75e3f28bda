"""The one word for what a session is doing."""

import itertools
from collections.abc import Callable

import pytest
from msgspec import Raw

from acphost.journal.rows import RunRow
from acphost.provider.switchboard import AgentRequest
from acphost.provider.traits import Traits
from acphost.session.decisions import DecisionDesk
from acphost.session.elicitations import ElicitationDesk
from acphost.session.queue import RunQueue, Waiting
from acphost.session.state import LATE_WINDOW, SessionState
from acphost.session.turn import Turn
from acphost.session.updates import Matter, Meaning
from acphost.wire.acp import ToolReport
from acphost.wire.event import Kind
from acphost.wire.host import SessionStatus
from tests.support.stores import now, run_row, session_row

QUESTION = Raw(b'{"sessionId":"s","toolCall":{},"options":[{"optionId":"a","kind":"allow_once"}]}')


def state() -> SessionState:
    row = session_row()
    forms = ElicitationDesk(row, "acp", now)
    return SessionState(row, RunQueue(limit=10), DecisionDesk(row, Traits(), now), forms)


def running(run: RunRow | None = None) -> Turn:
    turn = Turn(run or run_row(1, status="running", started_at=now()))
    turn.last_sign = now()
    return turn


def after(session: SessionState, milliseconds: int) -> SessionState:
    """So long after the start of a clock that nobody can set."""
    session.ticks = lambda: milliseconds
    return session


def ask(session: SessionState) -> None:
    asked = AgentRequest(1, "session/request_permission", QUESTION, None)  # type: ignore[arg-type]
    session.desk.open(asked, None, timeout=None)


def fail(session: SessionState) -> None:
    session.trouble = SessionStatus.FAILED, "it broke"


def want_login(session: SessionState) -> None:
    session.trouble = SessionStatus.AUTH_REQUIRED, "log in"


def stop(session: SessionState) -> None:
    session.turn = running(run_row(1, status="running", cancel_requested_at=now()))


def run(session: SessionState) -> None:
    session.turn = session.turn or running()


def start(session: SessionState) -> None:
    session.starting = True


def hold(session: SessionState) -> None:
    session.hold("stopped")


#: Strongest first; `failed` and `auth_required` exclude each other.
TABLE: list[tuple[str, Callable[[SessionState], None]]] = [
    ("failed", fail),
    ("waiting", ask),
    ("stopping", stop),
    ("running", run),
    ("starting", start),
    ("held", hold),
]


@pytest.mark.parametrize("size", range(len(TABLE) + 1))
def test_of_all_that_is_true_the_strongest_word_is_said(size: int) -> None:
    for facts in itertools.combinations(TABLE, size):
        session = state()
        for _, make_true in facts:
            make_true(session)
        session.refresh()
        assert session.row.status == (facts[0][0] if facts else "idle")


def test_a_login_comes_before_everything_else() -> None:
    session = state()
    for _, make_true in TABLE:
        make_true(session)
    want_login(session)
    session.refresh()
    assert (session.row.status, session.row.status_reason) == ("auth_required", "log in")


def test_the_active_run_is_the_one_in_flight() -> None:
    session = state()
    run(session)
    session.refresh()
    assert session.row.active_run_id == "run_1"
    session.turn = None
    session.refresh()
    assert session.row.active_run_id is None


def test_the_head_may_start_when_nothing_is_in_its_way() -> None:
    session = state()
    assert not session.may_start()
    session.queue.join(Waiting(run_row(2, queue_order=1), b"[]"))
    assert session.may_start()
    for obstacle in (run, start, hold):
        session = state()
        session.queue.join(Waiting(run_row(2, queue_order=1), b"[]"))
        obstacle(session)
        assert not session.may_start()
    session = state()
    session.queue.join(Waiting(run_row(2, queue_order=1), b"[]"))
    session.closing = True
    assert not session.may_start()


def test_the_first_reason_to_hold_stays() -> None:
    session = state()
    assert session.hold("stopped")
    assert not session.hold("failed")
    assert session.row.held_reason == "stopped"
    assert not session.is_held_by_user


@pytest.mark.parametrize("reason", ["user", "user: lunch", "user: holdAfter"])
def test_a_hold_of_a_person_is_known_as_such(reason: str) -> None:
    session = state()
    session.hold(reason)
    assert session.is_held_by_user


def test_quiet_is_running_without_a_sign_of_life() -> None:
    session = state()
    run(session)
    session.refresh()
    assert not after(session, 1000).is_quiet(1.0)
    assert after(session, 1001).is_quiet(1.0)


def test_a_person_or_a_tool_may_take_its_time() -> None:
    session = state()
    run(session)
    assert session.turn is not None
    tool = Meaning(Kind.TOOL_STARTED, Matter.TOOL, tool=ToolReport(tool_call_id="c"))
    session.turn.calls.follow(Kind.TOOL_STARTED, "c")
    session.turn.take(tool, [Raw(b"{}")])
    session.refresh()
    assert not after(session, 10_000).is_quiet(1.0)

    session = state()
    run(session)
    ask(session)
    session.refresh()
    assert not after(session, 10_000).is_quiet(1.0)


def test_who_is_idle_is_never_quiet() -> None:
    session = state()
    session.refresh()
    assert not after(session, 10_000).is_quiet(1.0)


def test_a_late_word_belongs_to_the_last_turn_for_a_while() -> None:
    """For how long does not depend on what the time of day is set to meanwhile."""
    session = state()
    assert session.late_run() is None
    session.last_run, session.last_end = run_row(1), 5
    assert after(session, 5 + LATE_WINDOW).late_run() is session.last_run
    assert after(session, 6 + LATE_WINDOW).late_run() is None


def test_a_sign_of_life_is_shown_by_the_time_of_day_and_counted_by_the_other_clock() -> None:
    """A clock that is set, or a machine that slept, makes nobody quiet and keeps nobody so."""
    session = state()
    run(session)
    session.refresh()
    assert session.turn is not None
    for at in (now(), now() + 86_400_000, now() - 86_400_000):
        after(session, 700).hear(at)
        assert session.last_sign == session.turn.last_sign == at
        assert not after(session, 1700).is_quiet(1.0)
        assert after(session, 1701).is_quiet(1.0)
