"""Logging in to agents and out of them, on the socket."""

import msgspec

from acphost.wire.acp import AuthMethod
from acphost.wire.base import HostParams, HostRecord


class AuthChoice(HostRecord, frozen=True):
    """A way to log in that an agent offers."""

    id: str
    name: str
    #: `agent`, `terminal`, or whatever else an agent says.
    type: str
    description: str | None = None


class AgentAuthenticateParams(HostParams, frozen=True):
    """`agent/authenticate`: without a method it tells which there are."""

    agent_id: str
    method_id: str | None = None
    #: The program of a terminal login was run and ended well.
    completed: bool = False


class TerminalLogin(HostRecord, frozen=True):
    """What a client runs in a terminal: the agent's own command with more arguments."""

    command: list[str]
    args: list[str]
    #: The agent's own variables for this; they go before all others.
    env: dict[str, str]
    #: Variables that the configuration sets for the agent; their values stay there.
    configured: list[str]


class AgentLogin(HostRecord, frozen=True):
    """What came of it: `choose`, `terminal`, `authenticated`, or `logged_out`."""

    agent_id: str
    status: str
    methods: list[AuthChoice]
    method_id: str | None = None
    terminal: TerminalLogin | None = None
    #: The sessions that had waited for it, and go on now.
    sessions: list[str] = msgspec.field(default_factory=list)


class Login(HostRecord, frozen=True):
    """What a session waits for, as part of it."""

    agent_id: str
    message: str
    methods: list[AuthChoice]


def choices(offered: list[AuthMethod]) -> list[AuthChoice]:
    """The methods of an agent as clients are told of them."""
    return [
        AuthChoice(
            id=each.id, name=each.name or each.id, type=each.type, description=each.description
        )
        for each in offered
    ]
