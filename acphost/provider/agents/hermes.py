"""Hermes Agent 0.19: what it really does (agents/hermes NOTES, sections 5, 6 and 8)."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

import msgspec

from acphost.provider.traits import (
    SESSION_LOST,
    KnownCall,
    LoadStatus,
    ProcessModel,
    Rung,
    Traits,
    TurnFacts,
    Verdict,
)
from acphost.wire.acp import AgentCapabilities, SessionOpened, ToolReport, lenient
from acphost.wire.agents import Finding, Severity
from acphost.wire.base import AcpStruct
from acphost.wire.event import Source

_OPENED = msgspec.json.Decoder(SessionOpened)
#: What a wedged session says instead of running a prompt (Q1, Q4).
_QUEUED_REMARK = "Queued for the next turn."
_MODE = re.compile(r"""\bmode:\s*["']?(\w+)""")
_DEFAULT_MODE = "smart"
_MANUAL = "set `approvals: {mode: manual}` in %s"
#: How it says that its model said nothing, or that it was made to stop.
_NO_REPLY = {
    "No reply: the model returned empty content": "empty_answer",
    "No reply: the maximum tool-iteration limit": "turn_limit",
}
#: Ids of questions; those of calls are "tc-" and hex digits (section 5).
_QUESTION = re.compile(r"(?:edit-approval|perm-check)-\d+\Z")


class _Arguments(AcpStruct, frozen=True):
    path: str | None = None


class _Input(AcpStruct, frozen=True):
    """The raw input of a question: an edit's has `tool` and `arguments`, a command's `command`."""

    tool: str | None = None
    arguments: _Arguments = _Arguments()
    command: str | None = None


class Hermes(Traits):
    """One process per session: a stop can wedge the session, with bad luck the process."""

    provider = "acp_hermes"
    provider_kind = "hermes-acp"
    source: ClassVar[Source] = "hermes"
    process: ClassVar[ProcessModel] = "per_session"
    # A cancel in the same breath as its prompt poisons the next one (Q2): wait for a sign of life.
    cancel_settle = 0.5
    # It waits for 60 s, and hears no answer that comes later (section 5).
    question_patience = 55.0
    usage_is_cumulative = True
    usage_restarts_at = frozenset({"session/set_model"})

    def ladder(self, capabilities: AgentCapabilities) -> tuple[Rung, ...]:
        """No resume: of an unknown id it silently makes another session (Q8)."""
        load = (Rung.LOAD,) if capabilities.load_session else ()
        return (*load, Rung.COLD, Rung.NEW)

    def judge_opened(self, result: msgspec.Raw) -> LoadStatus:
        """`{}` without modes is how it says that it does not know the session (Q8)."""
        try:
            opened = _OPENED.decode(result)
        except msgspec.ValidationError:
            return LoadStatus.NOT_FOUND
        known = isinstance(opened.modes, msgspec.Raw) or isinstance(opened.models, msgspec.Raw)
        return LoadStatus.LOADED if known else LoadStatus.NOT_FOUND

    def judge_turn(self, facts: TurnFacts) -> Verdict:
        """An error after a stop, or an answer that only says "queued", means a wedged session."""
        if facts.error is not None:
            error = str(facts.error)
            if facts.cancel_sent:
                return Verdict("cancelled", "agent_error", error, rebind="prompt_error")
            return Verdict("failed", "agent_error", error, rebind="prompt_error")
        remark = facts.remark or ""
        if remark.startswith(_QUEUED_REMARK) and not facts.has_usage:
            if facts.cancel_sent:
                return Verdict("cancelled", rebind="wedged")
            return Verdict(
                "failed",
                "agent_wedged",
                "the agent put the prompt aside without running it; its session is replaced",
                rebind="wedged",
            )
        if facts.stop_reason == "refusal" and not facts.updates:
            # An unknown session refuses instead of failing (Q8).
            return SESSION_LOST
        if facts.stop_reason == "cancelled":
            return Verdict("cancelled")
        word, said = _trouble_told_as_text(facts)
        return Verdict(
            "completed",
            word,
            said,
            # Answered in full although a cancel was written: it now waits for the next prompt.
            cancel_lingers=facts.cancel_sent,
            is_empty=word == "empty_answer",
        )

    def meant_call(self, asked: ToolReport, calls: Sequence[KnownCall]) -> str | None:
        """The last open call of the kind, sooner one whose title ends with the same words."""
        if not _QUESTION.match(asked.tool_call_id):
            return None
        given = _input_of(asked)
        words = given.command or given.arguments.path
        alike = [call for call in calls if call.kind == asked.kind]
        same = [call for call in alike if words and (call.title or "").endswith(f": {words}")]
        # Edits are asked about one after the other, in the order in which they were announced.
        return same[0].id if same else alike[-1].id if alike else None

    def may_take_long(self, call: KnownCall) -> bool:
        """The end of an edit or a read is not told (Q5), and never takes long."""
        return call.kind not in ("edit", "read")

    def tool_name(self, asked: ToolReport, meant: KnownCall | None) -> str | None:
        """A title is the tool, a colon, and what it is used on."""
        given = _input_of(asked)
        if given.tool is not None:
            return given.tool
        title = (meant.title if meant is not None else None) or ""
        name, colon, _ = title.partition(": ")
        if colon and name.isidentifier():
            return name
        return "terminal" if given.command is not None else super().tool_name(asked, meant)

    def cancel_cure(
        self, acp_session_id: str, model_id: str | None
    ) -> tuple[str, dict[str, object]] | None:
        """Setting the model it already has clears the flag (Q2)."""
        if model_id is None:
            return None
        return "session/set_model", {"sessionId": acp_session_id, "modelId": model_id}

    def inspect_home(self, env: Mapping[str, str]) -> list[Finding]:
        """Whether it has a model, and who approves: by default a model does (Q6)."""
        home = env.get("HERMES_HOME") or f"{env.get('HOME', '')}/.hermes"
        config = Path(home, "config.yaml")
        try:
            text = config.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return [
                Finding(
                    code="not_configured",
                    severity=Severity.PROBLEM,
                    message=f"Hermes has no configuration in {home}",
                    cure="run `hermes model` once, or point HERMES_HOME to where it is set up",
                )
            ]
        mode = _approvals_mode(text)
        if mode == "manual":
            return [Finding(code="approvals", severity=Severity.OK, message="people approve")]
        who = "a model approves" if mode == "smart" else f"approvals are {mode!r}:"
        return [
            Finding(
                code="approvals",
                severity=Severity.WARNING,
                message=f"{who} dangerous commands, and you are not asked",
                cure=_MANUAL % config,
            )
        ]


def _approvals_mode(config: str) -> str:
    """The `mode` under `approvals`, in either style of YAML; nothing else of the file is read."""
    lines = iter(config.splitlines())
    for line in lines:
        key, _, inline = line.partition(":")
        if key != "approvals":
            continue
        block = takewhile(lambda each: not each.strip() or each[0] in " \t#", lines)
        found = _MODE.search("\n".join([inline, *block]))
        return found[1] if found else _DEFAULT_MODE
    return _DEFAULT_MODE


def _trouble_told_as_text(facts: TurnFacts) -> tuple[str | None, str | None]:
    """Upstream failures come as ordinary text; the missing usage is the only tell (section 4).

    A slash command is answered without usage as well, and well.
    """
    remark = (facts.remark or "").strip()
    for said, word in _NO_REPLY.items():
        if said in remark:
            return word, remark
    if facts.has_usage or not facts.updates or facts.prompt.startswith("/"):
        return None, None
    return "upstream_error", remark or "the turn ended without any word of what it has used"


def _input_of(asked: ToolReport) -> _Input:
    if isinstance(asked.raw_input, msgspec.Raw):
        try:
            return lenient(_Input, asked.raw_input)
        except msgspec.DecodeError:
            pass
    return _Input()
