"""How a run ends: the one terminal event, and everything of the run that ends with it. Pure."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec
from msgspec import Raw

from acphost.errors import (
    AcpHostError,
    AuthRequiredError,
    PermissionDeniedError,
    RemoteError,
    UnsupportedContentError,
)
from acphost.journal.event import SYNTHETIC, Draft
from acphost.journal.rows import RunRow
from acphost.provider.connection import AgentGoneError
from acphost.provider.traits import Traits
from acphost.session.binding import remote_error
from acphost.session.calls import CallBook
from acphost.session.ending import Ending
from acphost.session.scribe import note
from acphost.session.turn import Turn
from acphost.wire.acp import PromptResult, lenient
from acphost.wire.event import Kind
from acphost.wire.host import ErrorWord, RunStatus
from acphost.wire.usage import Reported

_KINDS = {
    RunStatus.COMPLETED: Kind.RUN_COMPLETED,
    RunStatus.FAILED: Kind.RUN_FAILED,
    RunStatus.CANCELLED: Kind.RUN_CANCELLED,
    RunStatus.INTERRUPTED: Kind.RUN_INTERRUPTED,
}


#: Characters of an agent's stop reason where it stands in rows and lists; the event has all of it.
MAX_STOP_REASON = 200


def of_answer(traits: Traits, turn: Turn, answer: Raw | AcpHostError) -> Ending:
    """What the answer to the prompt, or the lack of one, says about the run."""
    if isinstance(answer, AgentGoneError):
        return of_lost_agent(turn.run, answer)
    if isinstance(answer, AcpHostError) and not isinstance(answer, RemoteError):
        return Ending(status=RunStatus.FAILED, error_code=answer.word, error=str(answer))
    usage: Reported | None = None
    if isinstance(answer, RemoteError):
        facts = turn.facts(error=answer)
        extra: dict[str, object] = {"agentError": remote_error(answer)}
    else:
        result = _prompt_result(answer)
        facts = turn.facts(stop_reason=result.stop_reason, has_usage=isinstance(result.usage, Raw))
        extra = {"response": answer}
        if isinstance(result.usage, Raw):
            usage = _reported(result.usage)
    verdict = traits.judge_turn(facts)
    code, error = verdict.error_code, verdict.error
    if verdict.outcome == "cancelled" and code is None and turn.run.cancel_requested_at is None:
        # Some end every turn so, or all turns of a process when one is stopped.
        code, error = ErrorWord.AGENT_CANCELLED, "the agent ended the turn; nobody had asked it to"
    return Ending(
        status=RunStatus(verdict.outcome),
        stop_reason=facts.stop_reason or None,
        error_code=code,
        error=error,
        empty=verdict.is_empty or (verdict.outcome == "completed" and turn.content == 0),
        extra=extra,
        rebind=verdict.rebind,
        is_lost=verdict.is_lost,
        cancel_lingers=verdict.cancel_lingers,
        usage=usage,
    )


def of_lost_agent(run: RunRow, gone: AgentGoneError) -> Ending:
    """The process went away with the prompt unanswered: nobody knows the outcome."""
    asked = run.cancel_requested_at is not None
    return Ending(
        status=RunStatus.INTERRUPTED,
        error_code=ErrorWord.CANCEL_UNCONFIRMED if asked else ErrorWord.AGENT_EXITED,
        error=str(gone),
        extra={
            "exitCode": gone.exit.code if gone.exit else None,
            "signal": gone.exit.signal if gone.exit else None,
            "stderr": gone.stderr,
        },
    )


def of_unheard_prompt(run: RunRow, gone: AgentGoneError) -> Ending:
    """The process went away before it had the whole prompt: nothing can have come of it."""
    lost = of_lost_agent(run, gone)
    if run.cancel_requested_at is not None:
        return replace(lost, status=RunStatus.CANCELLED, error_code=None, stop_reason="cancelled")
    return replace(
        lost, status=RunStatus.FAILED, error=f"{gone} before it got the prompt; send it again"
    )


#: Why a prompt was never sent, where it is not that the agent cannot be started.
_NOT_STARTED = {
    AuthRequiredError: ErrorWord.AUTH_REQUIRED,
    UnsupportedContentError: ErrorWord.UNSUPPORTED_CONTENT,
    PermissionDeniedError: ErrorWord.PERMISSION_DENIED,
    RemoteError: ErrorWord.AGENT_ERROR,
}


def of_failed_start(error: AcpHostError) -> Ending:
    """The agent could not be had for this run; the prompt was never sent."""
    words = (word for kind, word in _NOT_STARTED.items() if isinstance(error, kind))
    word = next(words, ErrorWord.AGENT_UNAVAILABLE)
    extra = dict(error.details)
    if isinstance(error, RemoteError):
        extra["agentError"] = remote_error(error)
    return Ending(status=RunStatus.FAILED, error_code=word, error=str(error), extra=extra)


def of_reset() -> Ending:
    """A person had the agent ended without waiting for its answer."""
    return Ending(
        status=RunStatus.CANCELLED,
        stop_reason="cancelled",
        error_code=ErrorWord.RUNTIME_RESET,
        error="the runtime of the session was reset; the agent was not waited for",
        host={"forced": True},
    )


def conclude(
    run: RunRow, ending: Ending, before: Iterable[Draft], *, next_seq: int, now: int
) -> list[Draft]:
    """Bring the run's row to its end; the events, `before` first and the terminal one last."""
    drafts = list(before)
    run.status = ending.status
    run.stop_reason = ending.stop_reason and ending.stop_reason[:MAX_STOP_REASON]
    run.error_code, run.error = ending.error_code, ending.error
    run.is_empty = ending.empty
    run.ended_at = now
    run.terminal_seq = run.last_seq = next_seq + len(drafts)
    if run.first_seq is None:
        run.first_seq = next_seq
    payload = {
        "stopReason": run.stop_reason,
        "errorCode": run.error_code,
        "error": run.error,
        "empty": ending.empty,
        **ending.extra,
    }
    drafts.append(note(_KINDS[ending.status], payload, run=run, host=ending.host))
    return drafts


def abandoned_tools(run: RunRow, open_calls: CallBook) -> list[Draft]:
    """Close the calls that the agent left open: their outcome is unknown (TC-3)."""
    return [
        note(
            Kind.TOOL_FAILED,
            {"toolCallId": call.id, "status": "failed"},
            run=run,
            host={"outcome": "unknown", **msgspec.json.decode(call.host)},
            flags=SYNTHETIC,
        )
        for call in open_calls
    ]


def _reported(raw: Raw) -> Reported | None:
    try:
        return lenient(Reported, raw)
    except msgspec.DecodeError:
        return None


def _prompt_result(raw: Raw) -> PromptResult:
    try:
        return lenient(PromptResult, raw)
    except msgspec.DecodeError:
        return PromptResult()
