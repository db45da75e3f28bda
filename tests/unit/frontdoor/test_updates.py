"""Events as updates: verbatim where the editor knows them, otherwise put or left out."""

import json

import msgspec
import pytest
from msgspec import UNSET, Raw

from acphost.frontdoor.outcomes import outcome_of
from acphost.frontdoor.updates import Projector
from acphost.wire.acp_agent import EditorCapabilities
from acphost.wire.event import Event

PLAIN = EditorCapabilities()


def event(kind: str, payload: object, source: str = "acp", host: object = None) -> Event:
    data = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
    return Event(
        schema="", offset="1", session_id="s", seq="1", host_run_id="run_1", kind=kind,
        source=source, created_at="2026-01-01T00:00:00.000Z", payload=Raw(data),
        host=UNSET if host is None else Raw(msgspec.json.encode(host)),
    )  # fmt: skip


def shown(
    kind: str,
    payload: object,
    *,
    source: str = "acp",
    host: object = None,
    capabilities: EditorCapabilities = PLAIN,
) -> list[bytes]:
    told = Projector(capabilities).updates(event(kind, payload, source, host))
    return [bytes(each) for each in told]


@pytest.mark.parametrize("kind", ["message.delta", "thought.delta", "tool.started", "tool.updated"])
def test_an_agents_update_keeps_every_byte(kind: str) -> None:
    said = b'{ "sessionUpdate":"x" ,"n":1.50, "_meta":{"a":[ ]} }'
    assert shown(kind, said) == [said]


def test_a_call_that_the_host_closed_becomes_an_update() -> None:
    (told,) = shown("tool.failed", {"toolCallId": "c", "status": "failed"}, source="mnote")
    expected = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"}
    assert json.loads(told) == expected


def test_a_notice_is_for_editors_that_show_notices() -> None:
    notice = {"sessionUpdate": "notice", "severity": "info", "title": "t"}
    rich = msgspec.json.decode(b'{"session":{"notices":{}}}', type=EditorCapabilities)
    assert shown("notice", notice, capabilities=rich)
    assert not shown("notice", notice)
    assert not shown("evidence", notice, capabilities=rich)


def test_what_the_host_says_about_usage_is_no_update_of_the_agent() -> None:
    assert shown("usage.updated", {"method": "_x/status", "params": {}}) == []


@pytest.mark.parametrize(
    "event_kind", ["run.created", "binding.started", "agent.stderr", "new.kind"]
)
def test_other_events_are_not_shown(event_kind: str) -> None:
    assert shown(event_kind, {}) == []


def test_an_answer_of_the_agent_is_the_answer_of_the_prompt() -> None:
    response = b'{"stopReason":"max_tokens", "_meta":{"n":1.50}}'
    payload = b'{"stopReason":"max_tokens","response":%b}' % response
    outcome = outcome_of(event("run.completed", payload))
    assert outcome.result is not None
    assert bytes(outcome.result) == response


def test_a_reason_that_version_1_does_not_have_is_put_otherwise() -> None:
    outcome = outcome_of(event("run.completed", {"response": {"stopReason": "paused", "x": 1}}))
    assert outcome.result is not None
    assert json.loads(bytes(outcome.result)) == {"stopReason": "end_turn", "x": 1}


def test_a_stop_is_cancelled_whatever_the_agent_answered() -> None:
    outcome = outcome_of(event("run.cancelled", {"response": {"stopReason": "end_turn"}}))
    assert outcome.result is not None
    assert json.loads(bytes(outcome.result))["stopReason"] == "cancelled"


def test_an_unknown_outcome_is_said_in_words() -> None:
    outcome = outcome_of(event("run.interrupted", {"error": "the agent went away"}))
    assert outcome.error is None
    assert outcome.words is not None
    assert outcome.words.startswith("Interrupted: the agent went away.")


def test_a_login_that_is_needed_keeps_the_protocols_code() -> None:
    outcome = outcome_of(
        event("run.failed", {"errorCode": "auth_required", "error": "log in", "methods": ["m"]})
    )
    assert outcome.error is not None
    assert outcome.error.code == -32000
    assert outcome.words == "Failed: log in."
