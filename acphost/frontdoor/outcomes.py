"""How a run ended, as the answer to the editor's prompt, or as words where there is no prompt."""

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw

from acphost.frontdoor.failures import INTERNAL_ERROR
from acphost.frontdoor.members import is_given, members, raw, text
from acphost.frontdoor.updates import RUN_ID, encoded
from acphost.wire.event import Event, Kind
from acphost.wire.jsonrpc import ErrorObject

#: Version 1 has no others, and some editors refuse what they do not know (guide 4.2).
STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
AUTH_REQUIRED = -32000


class Outcome(NamedTuple):
    """What a prompt is answered with, and what a person should read before."""

    result: Raw | None = None
    error: ErrorObject | None = None
    words: str | None = None


def outcome_of(event: Event) -> Outcome:
    """Read the terminal event of a run."""
    said = members(event.payload)
    match event.kind:
        case Kind.RUN_COMPLETED:
            return Outcome(result=_result(said.get("response"), "end_turn", event))
        case Kind.RUN_CANCELLED:
            return Outcome(
                result=_result(said.get("response"), "cancelled", event, always=True),
                words=_sentence("Stopped", text(said.get("error"))) if _is_forced(event) else None,
            )
        case Kind.RUN_INTERRUPTED:
            # Nobody knows the outcome: no error of the prompt, and no success either.
            told = _sentence("Interrupted", text(said.get("error")))
            words = (
                f"{told} What came until then is kept; whether the rest was done is not known. "
                "Nothing is sent again by itself."
            )
            return Outcome(result=_result(None, "end_turn", event), words=words)
        case _:
            error = _error(event)
            return Outcome(error=error, words=_sentence("Failed", error.message))


def login_wanted(event: Event) -> Outcome | None:
    """What a prompt is answered with whose agent wants a login before it takes any."""
    said = members(event.payload)
    if text(said.get("code")) != "auth_required":
        return None
    words = text(said.get("message")) or "the agent wants a login first"
    data = {
        "details": raw(words),
        "code": raw("auth_required"),
        "hostRunId": raw(event.host_run_id),
        "authMethods": said.get("methods", Raw(b"[]")),
    }
    return Outcome(error=ErrorObject(AUTH_REQUIRED, words, encoded(data)))


def _result(response: Raw | None, reason: str, event: Event, *, always: bool = False) -> Raw:
    """The agent's own answer where the protocol allows it, `reason` where it does not."""
    said = members(response) if response is not None else {}
    given = text(said.get("stopReason"))
    if response is not None and given in STOP_REASONS and (not always or given == reason):
        return response
    if not said:
        said = {"_meta": raw({RUN_ID: event.host_run_id})}
    return encoded(
        {"stopReason": raw(reason), **{k: v for k, v in said.items() if k != "stopReason"}}
    )


def _error(event: Event) -> ErrorObject:
    """The agent's own error, whole; else what the host says about it."""
    said = members(event.payload)
    agents = members(said["agentError"]) if is_given(said.get("agentError")) else {}
    word = text(said.get("errorCode")) or "failed"
    words = text(said.get("error")) or "the run failed"
    if agents:
        code = msgspec.json.decode(agents.get("code", Raw(b"0")), type=int) or INTERNAL_ERROR
        return ErrorObject(code, text(agents.get("message")) or words, agents.get("data", UNSET))
    # As in failures.py: some editors show the `details` alone.
    data: dict[str, object] = {"details": words, "code": word, "hostRunId": event.host_run_id}
    if word == "auth_required":
        data["authMethods"] = said.get("methods", Raw(b"[]"))
        return ErrorObject(AUTH_REQUIRED, words, raw(data))
    return ErrorObject(INTERNAL_ERROR, words, raw(data))


def _is_forced(event: Event) -> bool:
    return isinstance(event.host, Raw) and is_given(members(event.host).get("forced"))


def _sentence(head: str, words: str | None) -> str:
    told = f"{head}: {words or 'no reason is known'}"
    return told if told.endswith((".", "!", "?")) else f"{told}."
