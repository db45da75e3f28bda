"""What turns have used: as agents report it, and as clients read it (contract section 4).

Unknown is null, never 0. Cost is decimal text with its currency.
"""

from decimal import Decimal

from acphost.wire.base import AcpStruct, HostRecord

USAGE_SCHEMA = "mnote.page_ai_usage_projection.v1"


class Cost(AcpStruct, frozen=True):
    """An amount of money, or of credits."""

    amount: Decimal
    currency: str


class Reported(AcpStruct, frozen=True):
    """Tokens and cost as an agent tells them, of a turn or of its life so far."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thought_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None
    total_tokens: int | None = None
    cost: Cost | None = None

    @property
    def total(self) -> int | None:
        """All tokens: as told, or added up from what was told."""
        if self.total_tokens is not None:
            return self.total_tokens
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


class ContextUpdate(AcpStruct, frozen=True):
    """`usage_update`: the context, and what the session has cost so far."""

    used: int | None = None
    size: int | None = None
    cost: Cost | None = None


class RunUsage(HostRecord, frozen=True):
    """What one turn has used."""

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    #: Of the prompt, what came from a cache.
    cache: int | None = None
    total: int | None = None
    cost: str | None = None


class SessionUsage(HostRecord, frozen=True):
    """What all turns of a session have used together."""

    tokens: int | None = None
    cost: str | None = None
    cache_hit: int | None = None
    #: Of the tokens, those from before the agent's present process.
    carryover: int | None = None
    prompt: int | None = None
    completion: int | None = None


class ContextSize(HostRecord, frozen=True):
    """How much is in the agent's context, as it said last."""

    used: int | None = None
    size: int | None = None


class Reserved(HostRecord, frozen=True):
    """What of the context is taken before anybody has spoken."""

    tool: int | None = None
    system: int | None = None
    context: int | None = None


class RuntimeUsage(HostRecord, frozen=True):
    """What the runtime itself takes."""

    reserved: Reserved = Reserved()


class ModelUsage(HostRecord, frozen=True):
    """The share of one model."""

    model: str | None
    tokens: int | None
    cost: str | None = None


class ColdResumeUsage(HostRecord, frozen=True):
    """The history packet of the last cold resume."""

    packet_bytes: int | None = None
    truncated_reason: str | None = None


class UsageProjection(HostRecord, frozen=True):
    """The answer to `usage/get`: a run, its session, and the context, kept apart."""

    session_id: str
    host_run_id: str | None
    run: RunUsage
    session: SessionUsage
    context: ContextSize
    cold_resume: ColdResumeUsage
    by_model: list[ModelUsage] = []
    runtime: RuntimeUsage = RuntimeUsage()
    balance: str | None = None
    schema: str = USAGE_SCHEMA
