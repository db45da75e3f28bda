"""Reasonix 1.x (Go) and 0.x (TypeScript): what they really do (agents/reasonix NOTES)."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import msgspec

from acphost.errors import AcpHostError, RemoteError
from acphost.provider.traits import (
    INVALID_PARAMS,
    Hazard,
    KnownCall,
    LoadStatus,
    ProcessModel,
    Traits,
    TurnFacts,
    Verdict,
)
from acphost.wire.acp import MessageChunk, ToolReport, lenient
from acphost.wire.agents import Finding, Severity
from acphost.wire.base import AcpStruct
from acphost.wire.event import Source
from acphost.wire.usage import Cost, Reported

#: The agent's own preamble, replayed as if the user had said it (section 3, load).
_PREAMBLE = "<session-context"
#: Its own notification with all it knows of a session, sent whether or not anybody asked.
_STATUS = "_reasonix.io/session/status_update"
#: Ids of questions: about a call, or of the tool that asks people (section 3, permissions).
_QUESTION = re.compile(r"(?:gate-\d+|ask-\d+-q\d+)\Z")
_ASKED_USER = "ask-"


class _Tokens(AcpStruct, frozen=True):
    total_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_hit_tokens: int | None = None
    estimated_cost: Decimal | None = None
    currency: str | None = None


class _Usage(AcpStruct, frozen=True):
    turn: _Tokens


class _StatusBody(AcpStruct, frozen=True):
    usage: _Usage


class _Status(AcpStruct, frozen=True):
    status: _StatusBody


class _Gate(AcpStruct, frozen=True):
    tool: str | None = None


class _Meta(msgspec.Struct, frozen=True, rename={"gate": "reasonix.io"}):
    gate: _Gate = _Gate()


class Reasonix(Traits):
    """One process per session keeps its ownership lock simple and its memory small."""

    provider = "acp_reasonix"
    provider_kind = "reasonix-acp"
    source: ClassVar[Source] = "reasonix"
    process: ClassVar[ProcessModel] = "per_session"

    def judge_load_error(self, error: AcpHostError) -> LoadStatus:
        """An unknown session, or one that another process holds, is "invalid params" here."""
        if isinstance(error, RemoteError) and error.remote_code == INVALID_PARAMS:
            return LoadStatus.NOT_FOUND
        return super().judge_load_error(error)

    def judge_turn(self, facts: TurnFacts) -> Verdict:
        """The 0.x line ends failed turns with a stop reason that ACP does not have."""
        if facts.error is None and facts.stop_reason == "error":
            return Verdict("failed", "agent_error", "the agent reported an error without a text")
        return super().judge_turn(facts)

    def usage_of(self, method: str, params: msgspec.Raw) -> Reported | None:
        """Tokens and cost stand only in its status (section 3, plain turn)."""
        if method != _STATUS:
            return None
        try:
            turn = lenient(_Status, params).status.usage.turn
        except msgspec.DecodeError:
            return None
        cost = None
        if turn.estimated_cost is not None and turn.currency:
            cost = Cost(amount=turn.estimated_cost, currency=turn.currency)
        return Reported(
            input_tokens=turn.prompt_tokens,
            output_tokens=turn.completion_tokens,
            thought_tokens=turn.reasoning_tokens,
            cached_read_tokens=turn.cache_hit_tokens,
            total_tokens=turn.total_tokens,
            cost=cost,
        )

    def meant_call(self, asked: ToolReport, calls: Sequence[KnownCall]) -> str | None:
        """The first open call with the same input, else the first of that tool or kind."""
        if not _QUESTION.match(asked.tool_call_id):
            return None
        if self.is_question(asked):
            return next((call.id for call in calls if call.title == "ask"), None)
        given, tool = _value(asked.raw_input), self.tool_name(asked, None)
        ways: tuple[Callable[[KnownCall], bool], ...] = (
            lambda call: given is not None and _value(call.raw_input) == given,
            lambda call: tool is not None and call.title == tool,
            # MCP tools are called through another one.
            lambda call: call.title == "use_capability",
            lambda call: call.kind == asked.kind,
        )
        for is_meant in ways:
            found = next(filter(is_meant, calls), None)
            if found is not None:
                return found.id
        return None

    def is_question(self, asked: ToolReport) -> bool:
        """Those of its tool `ask`: one way to answer looks like leave that is asked for."""
        return asked.tool_call_id.startswith(_ASKED_USER)

    def tool_name(self, asked: ToolReport, meant: KnownCall | None) -> str | None:
        """Told in a member of its own; the title of a call is the tool."""
        if isinstance(asked.meta, msgspec.Raw):
            try:
                tool = lenient(_Meta, asked.meta).gate.tool
            except msgspec.DecodeError:
                tool = None
            if tool is not None:
                return tool
        return meant.title if meant is not None else super().tool_name(asked, meant)

    def is_replay_noise(self, tag: str, update: msgspec.Raw) -> bool:
        """The replayed preamble is the agent's, not the user's."""
        if tag != "user_message_chunk":
            return False
        try:
            return lenient(MessageChunk, update).content.text.startswith(_PREAMBLE)
        except msgspec.DecodeError:
            return False

    def is_title(self, text: str) -> bool:
        """It takes the first message for the title, and that is its own preamble."""
        return super().is_title(text) and not text.lstrip().startswith(_PREAMBLE)

    def inspect_home(self, env: Mapping[str, str]) -> list[Finding]:
        """Whether its configuration can be read, names a model, and has the key for it."""
        home = Path(env.get("REASONIX_HOME") or f"{env.get('HOME', '')}/.reasonix")
        config = home / "config.toml"
        setup = "run `reasonix setup`, or point REASONIX_HOME to where it is set up"
        try:
            settings = tomllib.loads(config.read_text(encoding="utf-8"))
        except OSError:
            return [_problem("not_configured", f"Reasonix has no {config}", setup)]
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
            # It starts all the same, and fails at the first session.
            return [_problem("config_broken", f"{config}: {exc}", "mend that file")]
        findings = []
        if not settings.get("default_model"):
            findings.append(_problem("no_model", f"{config} names no default_model", setup))
        return findings + [
            # A key in the environment of the process is ignored; only this file counts.
            _problem("no_key", f"{home}/.env has no {name}", f"write {name}=… into {home}/.env")
            for name in sorted(_keys(settings) - _variables(home / ".env"))
        ]

    def hazard_of(self, cwd: str) -> Hazard | None:
        """A `reasonix.toml` there is loaded unasked; it can send the user's key elsewhere."""
        file = Path(cwd, "reasonix.toml")
        if not file.exists():
            return None
        return Hazard(
            str(file),
            f"Reasonix obeys {file} unasked, which can change the model and send your key to an "
            "address of its own: look at it first",
        )


def _problem(code: str, message: str, cure: str) -> Finding:
    return Finding(code=code, severity=Severity.PROBLEM, message=message, cure=cure)


def _keys(settings: Mapping[str, object]) -> set[str]:
    """The names of the keys that the providers want."""
    providers = settings.get("providers")
    if not isinstance(providers, list):
        return set()
    named = [each.get("api_key_env") for each in providers if isinstance(each, dict)]
    return {name for name in named if isinstance(name, str)}


def _variables(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {line.partition("=")[0].removeprefix("export ").strip() for line in lines if "=" in line}


def _value(raw: msgspec.Raw | msgspec.UnsetType | None) -> object:
    try:
        return msgspec.json.decode(raw) if isinstance(raw, msgspec.Raw) else None
    except msgspec.DecodeError:
        return None
