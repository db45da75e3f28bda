"""What of its agent a session lets people set, on the socket."""

import msgspec
from msgspec import UNSET, UnsetType

from acphost.wire.base import HostParams, HostRecord


class ControlChoice(HostRecord, frozen=True):
    """A value on offer."""

    value: str
    name: str
    description: str | None
    group: str | None


class Control(HostRecord, frozen=True):
    """Something that can be set; `key` is `mode`, `model` or the id of a config option."""

    key: str
    #: `select` or `boolean`.
    kind: str
    name: str
    description: str | None
    category: str | None
    #: As the agent said last; null where it did not say.
    value: str | bool | None
    #: What a person chose, and what is set again after the agent was started anew.
    chosen: str | bool | None
    choices: list[ControlChoice]


class SessionConfigureParams(HostParams, frozen=True):
    """`session/configure`: absent is left as it is, null forgets the choice."""

    session_id: str
    #: Another agent: it is told the history. Only while nothing runs or waits.
    agent_id: str | UnsetType = UNSET
    profile: str | UnsetType = UNSET
    mode: str | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    #: By the ids of the options.
    config_option: dict[str, str | bool | None] = {}
    #: All servers of the session's own: an agent that can go on with its session is opened anew
    #: with them before the next prompt, another has them from its next start.
    mcp_servers: list[msgspec.Raw] | UnsetType = UNSET
