"""Questions to people."""

import json
from typing import Any

import pytest
from msgspec import Raw

from acphost.errors import InvalidParamsError, PermissionNotFoundError
from acphost.provider.agents.hermes import Hermes
from acphost.provider.switchboard import AgentRequest
from acphost.session.calls import CallBook
from acphost.session.decisions import DecisionDesk, OpenQuestion, already_resolved
from acphost.wire.event import Origin
from tests.support.stores import now, run_row, session_row

ANNA = Origin(client_id="c", actor_id="anna", client_name="editor")
ALLOW = {"optionId": "a", "name": "Allow", "kind": "allow_once"}
DENY = {"optionId": "d", "name": "Deny", "kind": "reject_once"}
NEVER = {"optionId": "n", "name": "Never", "kind": "reject_always"}


def request(*options: object, **tool_call: object) -> AgentRequest:
    params = {"sessionId": "s", "toolCall": tool_call, "options": options}
    raw = Raw(json.dumps(params).encode())
    return AgentRequest(1, "session/request_permission", raw, None)  # type: ignore[arg-type]


def desk() -> DecisionDesk:
    return DecisionDesk(session_row(), Hermes(), now)


def opened(at: DecisionDesk, asked: AgentRequest, timeout: float | None = None) -> OpenQuestion:
    question = at.open(asked, run_row(1), timeout=timeout).question
    assert question is not None
    return question


def said(payload: bytes) -> Any:  # noqa: ANN401  it is JSON
    return json.loads(payload)


def test_a_question_is_recorded_with_all_that_was_asked() -> None:
    asked = request(ALLOW, DENY, toolCallId="c1", title="Edit", extra=[1])
    calls = CallBook("run_1")
    opened = desk().open(asked, run_row(1), timeout=2.0, calls=calls)
    question, change = opened.question, opened.change

    assert question is not None
    row = question.row
    assert (row.status, row.kind, row.tool_call_key, row.run_id) == (
        "pending", "permission", "run_1/c1/1", "run_1",
    )  # fmt: skip
    assert row.expires_at == now() + 2000
    (draft,) = change.drafts
    assert draft.kind == "permission.requested"
    assert draft.source == "hermes"
    assert said(draft.payload)["request"] == said(bytes(asked.params))
    assert said(draft.payload)["options"] == [ALLOW, DENY]
    assert len(change.statements) == 1


def test_the_first_answer_closes_it() -> None:
    at = desk()
    question = opened(at, request(ALLOW, DENY))
    resolved, change = at.resolve(question.row.permission_id, "d", origin=ANNA)

    assert resolved is question
    assert (question.row.status, question.row.outcome) == ("resolved", "selected")
    assert question.row.resolved_at == now()
    (draft,) = change.drafts
    assert said(draft.payload)["optionId"] == "d"
    assert said(draft.payload)["by"]["actorId"] == "anna"
    with pytest.raises(PermissionNotFoundError):
        at.resolve(question.row.permission_id, "a", origin=ANNA)


def test_an_option_that_was_not_offered_changes_nothing() -> None:
    at = desk()
    question = opened(at, request(ALLOW))
    with pytest.raises(InvalidParamsError) as refused:
        at.resolve(question.row.permission_id, "x", origin=ANNA)

    assert refused.value.details["offered"] == ["a"]
    assert len(at) == 1


def test_a_stopped_turn_answers_all_of_them_cancelled() -> None:
    at = desk()
    questions = [opened(at, request(ALLOW)) for _ in range(2)]
    closed, change = at.cancel_all(ANNA)

    assert closed == questions
    assert [said(draft.payload)["outcome"] for draft in change.drafts] == ["cancelled"] * 2
    assert len(change.statements) == 2
    assert len(at) == 0


def test_what_nobody_waits_for_is_withdrawn() -> None:
    at = desk()
    question = opened(at, request(ALLOW))
    withdrawn, change = at.withdraw_all("the turn ended")

    assert withdrawn == [question]
    assert question.row.status == "expired"
    assert [draft.kind for draft in change.drafts] == ["permission.expired"]
    assert change.drafts[0].run is not None
    error = already_resolved(question.row)
    assert "withdrawn" in str(error)
    assert error.details["status"] == "expired"


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ((ALLOW, NEVER, DENY), "d"),
        ((ALLOW, NEVER), "n"),
        ((ALLOW,), None),
    ],
)
def test_the_mildest_offered_no_is_chosen(options: tuple[object, ...], chosen: str | None) -> None:
    at = desk()
    question = opened(at, request(*options))
    assert at.reject_option(question.row.permission_id) == chosen
    assert at.reject_option("perm_x") is None


@pytest.mark.parametrize(
    ("options", "tool_call", "kind"),
    [
        ((ALLOW, DENY), {}, "permission"),
        ((ALLOW, {**ALLOW, "optionId": "b"}), {}, "choice"),
        ((ALLOW, DENY), {"kind": "switch_mode"}, "plan"),
    ],
)
def test_kinds_of_questions(
    options: tuple[object, ...], tool_call: dict[str, object], kind: str
) -> None:
    assert opened(desk(), request(*options, **tool_call)).row.kind == kind


@pytest.mark.parametrize("params", [b"{}", b"[]", b'{"options":[]}', b'{"options":[{"no":"id"}]}'])
def test_with_nothing_to_choose_from_there_is_no_question(params: bytes) -> None:
    asked = AgentRequest(1, "session/request_permission", Raw(params), None)  # type: ignore[arg-type]
    opened = desk().open(asked, None, timeout=None)

    assert opened.question is None
    assert [draft.kind for draft in opened.change.drafts] == ["evidence"]
    assert opened.change.drafts[0].payload == params


def test_one_bad_option_does_not_spoil_the_others() -> None:
    question = opened(desk(), request(ALLOW, {"name": "no id"}, 5))
    assert [option.option_id for option in question.options] == ["a"]
