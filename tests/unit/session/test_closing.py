"""How a run ends."""

import json

import pytest
from msgspec import Raw

from acphost.errors import AgentUnavailableError, AuthRequiredError, RemoteError
from acphost.provider.connection import AgentGoneError
from acphost.provider.traits import Traits
from acphost.session import closing
from acphost.session.calls import CallBook
from acphost.session.ending import Ending
from acphost.session.turn import Turn
from acphost.session.updates import Matter, Meaning
from acphost.transport.child import Exit
from acphost.wire.event import Kind
from acphost.wire.host import RunStatus
from tests.support.stores import now, run_row

MESSAGE = Meaning(Kind.MESSAGE_DELTA, Matter.CONTENT)


def turn(*, said: bool = True, cancel_sent: bool = False, asked: int | None = None) -> Turn:
    made = Turn(run_row(1, status="running", cancel_requested_at=asked))
    made.cancel_sent = cancel_sent
    if said:
        made.take(MESSAGE, [Raw(b'{"content":{"type":"text","text":"a"}}')])
    return made


def test_an_answer_completes_it() -> None:
    ending = closing.of_answer(
        Traits(), turn(), Raw(b'{"stopReason":"end_turn","usage":{"inputTokens":1}}')
    )
    assert (ending.status, ending.stop_reason, ending.empty) == ("completed", "end_turn", False)
    assert ending.usage is not None
    assert ending.usage.input_tokens == 1


@pytest.mark.parametrize("answer", [b"null", b"{}", b'{"stopReason":5}', b"[]"])
def test_a_strange_answer_is_an_answer(answer: bytes) -> None:
    ending = closing.of_answer(Traits(), turn(), Raw(answer))
    assert (ending.status, ending.stop_reason) == ("completed", None)
    assert ending.extra["response"] == Raw(answer)


def test_an_answer_without_a_word_is_empty() -> None:
    ending = closing.of_answer(Traits(), turn(said=False), Raw(b'{"stopReason":"end_turn"}'))
    assert ending.empty


def test_an_error_fails_it_and_is_kept() -> None:
    error = RemoteError(-32603, "no luck", b'{"d":1}')
    ending = closing.of_answer(Traits(), turn(), error)
    assert (ending.status, ending.error_code, ending.error) == ("failed", "agent_error", "no luck")
    told = {"code": -32603, "message": "no luck", "data": Raw(b'{"d":1}')}
    assert ending.extra["agentError"] == told


def test_an_error_after_a_stop_is_a_stop() -> None:
    ending = closing.of_answer(Traits(), turn(cancel_sent=True), RemoteError(-32603, "aborted"))
    assert (ending.status, ending.error) == ("cancelled", "aborted")


@pytest.mark.parametrize(
    ("exit_", "asked", "code"),
    [
        (Exit(3, None), None, "agent_exited"),
        (Exit(None, 9), None, "agent_exited"),
        (None, None, "agent_exited"),
        (Exit(3, None), now(), "cancel_unconfirmed"),
    ],
)
def test_a_dead_agent_leaves_the_outcome_open(
    exit_: Exit | None, asked: int | None, code: str
) -> None:
    gone = AgentGoneError("the agent went away", exit_=exit_, stderr="panic")
    ending = closing.of_answer(Traits(), turn(asked=asked), gone)
    assert (ending.status, ending.error_code) == ("interrupted", code)
    assert ending.extra == {
        "exitCode": exit_.code if exit_ else None,
        "signal": exit_.signal if exit_ else None,
        "stderr": "panic",
    }


def test_a_prompt_that_was_not_heard_has_failed_or_was_stopped() -> None:
    """Its outcome is known: there is none, and it can be sent again."""
    gone = AgentGoneError("the agent went away", exit_=None, stderr="", unheard=frozenset({7}))
    failed = closing.of_unheard_prompt(turn().run, gone)
    stopped = closing.of_unheard_prompt(turn(asked=now()).run, gone)

    assert (failed.status, failed.error_code) == ("failed", "agent_exited")
    assert str(failed.error).endswith("send it again")
    assert (stopped.status, stopped.stop_reason) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AgentUnavailableError("gone", exitCode=1), "agent_unavailable"),
        (AuthRequiredError("log in", methods=[]), "auth_required"),
        (RemoteError(-1, "no"), "agent_error"),
        (AgentGoneError("died", exit_=None, stderr=""), "agent_unavailable"),
    ],
)
def test_a_run_that_could_not_start(error: Exception, code: str) -> None:
    ending = closing.of_failed_start(error)  # type: ignore[arg-type]
    assert (ending.status, ending.error_code) == ("failed", code)


def test_the_terminal_event_is_the_last_and_the_row_knows_where_it_is() -> None:
    run = run_row(1, status="running", first_seq=3)
    calls = CallBook("run_1")
    calls.follow(Kind.TOOL_STARTED, "c1")
    before = closing.abandoned_tools(run, calls)
    ending = Ending(status=RunStatus.COMPLETED, stop_reason="end_turn", extra={"response": {}})
    drafts = closing.conclude(run, ending, before, next_seq=10, now=now())

    assert [draft.kind for draft in drafts] == ["tool.failed", "run.completed"]
    assert (run.status, run.terminal_seq, run.last_seq, run.first_seq) == ("completed", 11, 11, 3)
    assert run.ended_at == now()
    assert json.loads(drafts[1].payload) == {
        "stopReason": "end_turn",
        "errorCode": None,
        "error": None,
        "empty": False,
        "response": {},
    }


def test_abandoned_calls_are_synthetic_and_of_unknown_outcome() -> None:
    calls = CallBook("run_1")
    calls.follow(Kind.TOOL_UPDATED, "c1")
    (draft,) = closing.abandoned_tools(run_row(1), calls)
    assert draft.kind == "tool.failed"
    assert draft.flags & 1
    assert draft.host is not None
    assert json.loads(draft.host) == {"outcome": "unknown", "toolCallKey": "run_1/c1/1"}
    assert json.loads(draft.payload)["toolCallId"] == "c1"
