"""What is peculiar to each agent, as judgements."""

import json

import pytest
from msgspec import Raw

from acphost.errors import AgentUnavailableError, RemoteError
from acphost.provider.runtimes import traits_of
from acphost.provider.traits import LoadStatus, Rung, Traits, TurnFacts
from acphost.settings.runtimes import known_runtimes
from acphost.wire.acp import AgentCapabilities

KINDS = {name: traits_of(name, "/nowhere") for name in known_runtimes("/nowhere")}
ACP, HERMES, REASONIX = (KINDS[name] for name in ("acp", "hermes", "reasonix"))
EVERYONE = list(KINDS.values())
ALL = AgentCapabilities(load_session=True, session_capabilities={"resume": Raw(b"{}")})
NOTHING = AgentCapabilities()


def facts(**given: object) -> TurnFacts:
    base: dict[str, object] = {
        "stop_reason": "end_turn",
        "error": None,
        "has_usage": True,
        "cancel_sent": False,
        "updates": 1,
        "remark": "hello",
    }
    return TurnFacts(**{**base, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("traits", "capabilities", "ladder"),
    [
        (ACP, ALL, "resume load cold new"),
        (ACP, NOTHING, "cold new"),
        (HERMES, ALL, "load cold new"),
        (HERMES, NOTHING, "cold new"),
        (REASONIX, ALL, "resume load cold new"),
        (REASONIX, AgentCapabilities(load_session=True), "load cold new"),
        (REASONIX, NOTHING, "cold new"),
    ],
)
def test_the_ladder(traits: Traits, capabilities: AgentCapabilities, ladder: str) -> None:
    assert traits.ladder(capabilities) == tuple(Rung(rung) for rung in ladder.split())


@pytest.mark.parametrize("traits", EVERYONE)
def test_an_end_is_an_end(traits: Traits) -> None:
    verdict = traits.judge_turn(facts())
    assert (verdict.outcome, verdict.rebind, verdict.is_lost) == ("completed", None, False)
    assert traits.judge_turn(facts(stop_reason="cancelled")).outcome == "cancelled"
    assert traits.judge_turn(facts(stop_reason="max_tokens")).outcome == "completed"


@pytest.mark.parametrize("traits", EVERYONE)
def test_an_error_after_a_stop_is_a_stop(traits: Traits) -> None:
    error = RemoteError(-32603, "aborted")
    assert traits.judge_turn(facts(error=error)).outcome == "failed"
    stopped = traits.judge_turn(facts(error=error, cancel_sent=True))
    assert (stopped.outcome, stopped.error) == ("cancelled", "aborted")


@pytest.mark.parametrize("traits", EVERYONE)
def test_a_mute_refusal_after_a_load_is_a_lost_session(traits: Traits) -> None:
    verdict = traits.judge_turn(facts(stop_reason="refusal", updates=0, is_first=True))
    assert (verdict.outcome, verdict.is_lost) == ("failed", True)


def test_a_refusal_with_a_reason_is_an_answer() -> None:
    verdict = ACP.judge_turn(facts(stop_reason="refusal", updates=3, is_first=True))
    assert verdict.outcome == "completed"
    assert ACP.judge_turn(facts(stop_reason="refusal", updates=0)).outcome == "completed"


def test_hermes_puts_a_prompt_aside_and_calls_it_an_end() -> None:
    remark = "Queued for the next turn. (1 queued)"
    wedged = HERMES.judge_turn(facts(remark=remark, has_usage=False))
    assert (wedged.outcome, wedged.error_code, wedged.rebind) == (
        "failed", "agent_wedged", "wedged",
    )  # fmt: skip
    assert HERMES.judge_turn(facts(remark=remark, has_usage=True)).outcome == "completed"


def test_a_cancel_that_came_too_late_lies_in_wait_at_hermes() -> None:
    verdict = HERMES.judge_turn(facts(cancel_sent=True))
    assert (verdict.outcome, verdict.cancel_lingers) == ("completed", True)
    assert HERMES.cancel_cure("s", "m") == ("session/set_model", {"sessionId": "s", "modelId": "m"})
    assert HERMES.cancel_cure("s", None) is None
    assert not ACP.judge_turn(facts(cancel_sent=True)).cancel_lingers


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"modes": {"currentModeId": "x"}}, LoadStatus.LOADED),
        ({"models": {}}, LoadStatus.LOADED),
        ({}, LoadStatus.NOT_FOUND),
        (None, LoadStatus.NOT_FOUND),
    ],
)
def test_how_hermes_says_that_it_does_not_know_a_session(
    result: object, status: LoadStatus
) -> None:
    raw = Raw(json.dumps(result).encode())
    assert HERMES.judge_opened(raw) is status
    assert ACP.judge_opened(raw) is LoadStatus.LOADED


@pytest.mark.parametrize(
    ("traits", "error", "status"),
    [
        (ACP, RemoteError(-32002, "gone"), LoadStatus.NOT_FOUND),
        (ACP, RemoteError(-32601, "what?"), LoadStatus.UNSUPPORTED),
        (ACP, RemoteError(-32603, "oops"), LoadStatus.FAILED),
        (ACP, RemoteError(-32602, "bad"), LoadStatus.FAILED),
        (ACP, AgentUnavailableError("silent"), LoadStatus.FAILED),
        (REASONIX, RemoteError(-32602, "unknown session"), LoadStatus.NOT_FOUND),
        (REASONIX, RemoteError(-32603, "oops"), LoadStatus.FAILED),
    ],
)
def test_what_an_error_says_about_the_session(
    traits: Traits, error: RemoteError, status: LoadStatus
) -> None:
    assert traits.judge_load_error(error) is status


def test_an_old_reasonix_ends_failed_turns_with_a_reason_of_its_own() -> None:
    assert REASONIX.judge_turn(facts(stop_reason="error")).outcome == "failed"
    assert ACP.judge_turn(facts(stop_reason="error")).outcome == "completed"


def test_the_preamble_of_reasonix_is_no_conversation() -> None:
    def chunk(text: str) -> Raw:
        return Raw(json.dumps({"content": {"type": "text", "text": text}}).encode())

    assert REASONIX.is_replay_noise("user_message_chunk", chunk("<session-context>…"))
    assert not REASONIX.is_replay_noise("user_message_chunk", chunk("hello"))
    assert not REASONIX.is_replay_noise("agent_message_chunk", chunk("<session-context>"))
    assert not ACP.is_replay_noise("user_message_chunk", chunk("<session-context>"))


def test_a_preamble_is_no_title() -> None:
    """Reasonix lists a session by its first message, and that is not the user's."""
    assert not REASONIX.is_title('<session-context version="1"> This host-generated snapshot')
    assert REASONIX.is_title("Why herons stand on one leg")
    assert ACP.is_title("<session-context>")
    assert not ACP.is_title(" \n")


def test_every_runtime_says_who_it_is() -> None:
    told = {"acp", "acp_hermes", "acp_reasonix", "chat_only", "api_chat"}
    assert {traits.provider for traits in EVERYONE} == told
    for runtime, traits in KINDS.items():
        assert traits.source == runtime
