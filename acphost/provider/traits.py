"""What differs between agents, as values and pure judgements; the rest asks, and never names.

The base class is what the protocol promises (runtime `acp`); each file in `provider/agents`, or in
`runtimes` beside the configuration, overrides what its agent really does. The name of the file is
the word that the configuration knows it by; it holds one class.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple, Protocol

import msgspec

from acphost.errors import AcpHostError, RemoteError
from acphost.wire.acp import AgentCapabilities, ToolReport
from acphost.wire.agents import Finding, Severity
from acphost.wire.event import Source
from acphost.wire.usage import Reported

ProcessModel = Literal["per_session", "shared"]

_BUSY = re.compile(
    r"\b(?:session|agent|turn|prompt)\b[^.]{0,40}\bbusy\b"
    r"|\balready (?:has an active|running|processing)\b",
    re.IGNORECASE,
)

#: JSON-RPC codes of ACP (guide section 6).
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class Rung(StrEnum):
    """A way to continue a conversation, strongest first (contract section 7)."""

    RESUME = "resume"
    LOAD = "load"
    COLD = "cold"
    NEW = "new"


class LoadStatus(StrEnum):
    """What came of an attempt to load or resume."""

    LOADED = "loaded"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    NOT_FOUND = "not_found"


class TurnFacts(NamedTuple):
    """What is known of a turn when its prompt has been answered."""

    stop_reason: str
    error: RemoteError | None
    has_usage: bool
    #: `session/cancel` was written for this turn.
    cancel_sent: bool
    #: Updates of any kind that came within the turn.
    updates: int
    #: All message text, when it is short; None once it is longer than a remark.
    remark: str | None
    #: It was the first prompt since the session was loaded or resumed.
    is_first: bool = False
    #: How the prompt begins.
    prompt: str = ""


class KnownCall(Protocol):
    """A tool call as far as it was told."""

    id: str
    title: str | None
    name: str | None
    kind: str | None
    raw_input: msgspec.Raw | None
    locations: msgspec.Raw | None


class Verdict(NamedTuple):
    """How a turn is to be taken."""

    outcome: Literal["completed", "cancelled", "failed"]
    error_code: str | None = None
    error: str | None = None
    #: The agent's session cannot be trusted any further: the next prompt needs a new binding.
    rebind: str | None = None
    #: The cancel may have come too late and still lie in wait for the next prompt.
    cancel_lingers: bool = False
    #: The agent does not know the session, whatever it said when it was to load it.
    is_lost: bool = False
    #: What it said is the agent's own way of saying that the model said nothing.
    is_empty: bool = False


#: What an agent says by refusing the first prompt after a load without a word.
SESSION_LOST = Verdict(
    "failed",
    "agent_session_lost",
    "the agent no longer knows the session; the next prompt begins a new one with the history",
    is_lost=True,
)


class Hazard(NamedTuple):
    """A file of the folder that an agent obeys unasked, and what it can do by that."""

    path: str
    message: str


class Traits:
    """An agent that keeps to the protocol."""

    provider: ClassVar[str] = "acp"
    provider_kind: ClassVar[str] = "acp"
    source: ClassVar[Source] = "acp"
    process: ClassVar[ProcessModel] = "shared"
    #: Seconds a cancel is held back so that it cannot overtake the prompt it is meant for.
    cancel_settle: ClassVar[float] = 0.0
    #: Seconds after which the agent takes a question that nobody has answered for a no.
    question_patience: ClassVar[float | None] = None
    #: Whether the answers of `session/prompt` carry totals since the agent started.
    usage_is_cumulative: ClassVar[bool] = False
    #: Requests after which such totals begin at zero again.
    usage_restarts_at: ClassVar[frozenset[str]] = frozenset()

    #: It keeps nothing between prompts: each comes with what was said before.
    is_stateless: ClassVar[bool] = False

    def ladder(self, capabilities: AgentCapabilities) -> tuple[Rung, ...]:
        """The rungs to try, in order, for an agent that says it can do this."""
        rungs = []
        if capabilities.offers("resume"):
            rungs.append(Rung.RESUME)
        if capabilities.load_session:
            rungs.append(Rung.LOAD)
        return (*rungs, Rung.COLD, Rung.NEW)

    def judge_opened(self, result: msgspec.Raw) -> LoadStatus:
        """Whether the good answer to load or resume means what it says; `null` and `{}` do."""
        return LoadStatus.LOADED

    def judge_load_error(self, error: AcpHostError) -> LoadStatus:
        """What an error in answer to load or resume says about the session."""
        if not isinstance(error, RemoteError):
            return LoadStatus.FAILED
        if error.remote_code == NOT_FOUND:
            return LoadStatus.NOT_FOUND
        if error.remote_code == -32601:
            return LoadStatus.UNSUPPORTED
        return LoadStatus.FAILED

    def judge_turn(self, facts: TurnFacts) -> Verdict:
        """How the end of a turn is to be taken."""
        if facts.error is not None:
            if facts.cancel_sent:
                return Verdict("cancelled", "agent_error", str(facts.error))
            return Verdict("failed", "agent_error", str(facts.error))
        if facts.stop_reason == "refusal" and facts.is_first and not facts.updates:
            return SESSION_LOST
        if facts.stop_reason == "cancelled":
            return Verdict("cancelled")
        return Verdict("completed")

    def is_busy(self, error: RemoteError) -> bool:
        """Whether a prompt was refused only because another turn of the agent's own runs."""
        return _BUSY.search(str(error)) is not None

    def cancel_cure(
        self, acp_session_id: str, model_id: str | None
    ) -> tuple[str, dict[str, object]] | None:
        """A request that clears a cancel which came too late; None: only a new binding does."""
        return None

    def usage_of(self, method: str, params: msgspec.Raw) -> Reported | None:
        """What a notification of the agent's own tells of the tokens of the turn at hand."""
        return None

    def meant_call(self, asked: ToolReport, calls: Sequence[KnownCall]) -> str | None:
        """Which of these open calls a question under an id of its own is about.

        None: the id is that of the call, or nothing tells which it is.
        """
        return None

    def is_question(self, asked: ToolReport) -> bool:
        """Whether a request for permission is really a question to the user: no rule answers it."""
        return False

    def may_take_long(self, call: KnownCall) -> bool:
        """Whether an open call explains a silence; some agents never say that a call has ended."""
        return True

    def tool_name(self, asked: ToolReport, meant: KnownCall | None) -> str | None:
        """What the agent calls the tool that a question is about."""
        return asked.name or (meant.name if meant is not None else None)

    def is_replay_noise(self, tag: str, update: msgspec.Raw) -> bool:
        """Whether a replayed update is the agent's own bookkeeping, not conversation."""
        return False

    def is_title(self, text: str) -> bool:
        """Whether what the agent calls a session by is meant for people."""
        return bool(text.strip())

    def inspect_home(self, env: Mapping[str, str]) -> list[Finding]:
        """What in the agent's own configuration will surprise its user; reads, never writes."""
        return []

    def hazard_of(self, cwd: str) -> Hazard | None:
        """What in a folder an agent would obey unasked, so that a person is to be asked first."""
        return None

    def environment(self, environ: dict[str, str]) -> dict[str, str]:
        """What the agent needs in its environment to be hosted; the configuration's wins."""
        return environ


class UnusableTraits(Traits):
    """In place of traits that are not there; its sessions can be read, and no agent starts."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def inspect_home(self, env: Mapping[str, str]) -> list[Finding]:
        """That nothing will come of it."""
        return [
            Finding(
                code="runtime_unusable",
                severity=Severity.PROBLEM,
                message=self.reason,
                cure="mend that file; the next start of the agent reads it",
            )
        ]
