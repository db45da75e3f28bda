"""The end of a run as a value: what its terminal event says, and what follows from it."""

from dataclasses import dataclass, field

from acphost.wire.host import RunStatus
from acphost.wire.usage import Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the terminal event of a run will say."""

    status: RunStatus
    stop_reason: str | None = None
    error_code: str | None = None
    error: str | None = None
    empty: bool = False
    #: Further members of the payload: response, agentError, exitCode, stderr, …
    extra: dict[str, object] = field(default_factory=dict)
    host: dict[str, object] | None = None
    #: What the answer said of tokens.
    usage: Reported | None = None
    #: The agent's session cannot be trusted any further.
    rebind: str | None = None
    #: The agent does not know its session any more.
    is_lost: bool = False
    #: A cancel was written that the agent may take for the next prompt's.
    cancel_lingers: bool = False
