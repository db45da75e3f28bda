"""What the area `agent` tells: who is configured, what was found, what was tried."""

from enum import StrEnum

from acphost.wire.base import HostRecord

DESCRIPTORS_SCHEMA = "mnote.ai_agent_descriptors.v1"
DESCRIPTOR_SCHEMA = "mnote.ai_agent_descriptor.v1"
CHECK_SCHEMA = "mnote.ai_agent_check.v1"
PROBE_SCHEMA = "mnote.ai_agent_probe.v1"


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    #: It works, and something may still surprise.
    WARNING = "warning"
    #: It will not work.
    PROBLEM = "problem"


class Finding(HostRecord, frozen=True):
    """One thing that was looked at, and what to do about it."""

    code: str
    severity: Severity
    message: str
    cure: str | None = None


class AgentCheck(HostRecord, frozen=True):
    """What can be told of an agent without starting it."""

    agent_id: str
    #: Whether it could be started now.
    ready: bool
    launch: list[str]
    #: What it said when it was last started; null if it never was.
    version: str | None
    findings: list[Finding]
    schema: str = CHECK_SCHEMA


class Promise(StrEnum):
    """What a well-behaved agent keeps, each tried by a probe."""

    INITIALIZE = "initialize"
    NEW_SESSION = "new_session"
    UNKNOWN_METHOD = "unknown_method_refused"
    BAD_INPUT = "bad_input_survived"
    UNKNOWN_SESSION = "unknown_session_refused"
    PROMPT = "prompt_answered"
    CANCEL = "cancel_confirmed"
    LOAD = "load"
    LOAD_REPLAYS = "load_replays_before_its_answer"
    RESUME = "resume"
    RESUME_IS_SILENT = "resume_does_not_replay"


class PromiseResult(HostRecord, frozen=True):
    """Whether one promise holds; null: it was not tried, and `note` says why."""

    promise: Promise
    holds: bool | None
    note: str | None = None


class AgentProbe(HostRecord, frozen=True):
    """How an agent behaved when it was tried out."""

    agent_id: str
    name: str
    version: str
    at: str
    results: list[PromiseResult]
    schema: str = PROBE_SCHEMA

    @property
    def broken(self) -> list[Promise]:
        """What the agent was seen not to keep."""
        return [each.promise for each in self.results if each.holds is False]


class AgentHealth(HostRecord, frozen=True):
    """Can this agent be started here."""

    installed: bool
    version: str | None
    launch: list[str]
    #: What may surprise is among them: only `state` says whether runs can go there.
    problems: list[str]
    #: ready, not_ready, or failed: too often to be started now.
    state: str = "ready"


class AgentDescriptor(HostRecord, frozen=True):
    """A configured agent."""

    agent_id: str
    display_name: str
    provider: str
    runtime: str
    acp_runtime: bool
    health: AgentHealth
    #: What was found when it was last tried out; null if it never was.
    probe: AgentProbe | None = None
    schema: str = DESCRIPTOR_SCHEMA


class AgentList(HostRecord, frozen=True):
    """All configured agents."""

    actor_id: str
    agents: list[AgentDescriptor]
    schema: str = DESCRIPTORS_SCHEMA
    #: The agent of those who name none, if one is configured.
    default_agent: str | None = None
