"""Sessions as things that are named, kept, copied, found and deleted, on the socket."""

import msgspec
from msgspec import UNSET, UnsetType

from acphost.wire.base import HostParams, HostRecord


class SessionRenameParams(HostParams, frozen=True):
    """`session/rename`: null leaves the title to the agent."""

    session_id: str
    title: str | None


class SessionPinParams(HostParams, frozen=True):
    """`session/pin`: a pinned session is not deleted by retention."""

    session_id: str
    pinned: bool = True


class SessionDeleteParams(HostParams, frozen=True):
    """`session/delete`: the agent's own session only with `confirm`, which repeats the id."""

    session_id: str
    delete_external_provider_session: bool = False
    confirm: str | None = None


class ExternalDeletion(HostRecord, frozen=True):
    """What became of the agent's own session."""

    requested: bool
    #: `not_requested`, `deleted`, `unsupported` or `failed`.
    status: str
    error: str | None = None


class SessionDeleted(HostRecord, frozen=True):
    """The answer to `session/delete`."""

    session_id: str
    deleted: bool
    external: ExternalDeletion


class SessionDiscoverParams(HostParams, frozen=True):
    """`session/discover`: the sessions an agent keeps, of one folder or of all."""

    agent_id: str
    cwd: str | None = None


class DiscoveredSession(HostRecord, frozen=True):
    """A session in an agent's own list."""

    acp_session_id: str
    cwd: str
    title: str | None
    updated_at: str | None
    #: The session of ours that is tied to it.
    session_id: str | None


class Discovered(HostRecord, frozen=True):
    """The answer to `session/discover`."""

    agent_id: str
    #: Whether the agent can list its sessions at all.
    supported: bool
    sessions: list[DiscoveredSession] = msgspec.field(default_factory=list)
    #: Why the list is not whole; null if it is.
    problem: str | None = None


class SessionAdoptParams(HostParams, frozen=True):
    """`session/adopt`: a session of ours that goes on with one of the agent's."""

    agent_id: str
    acp_session_id: str
    cwd: str
    title: str | None = None
    profile: str | None = None
    workspace_id: str | None = None
    start: bool = False


class SessionForkParams(HostParams, frozen=True):
    """`session/fork`: a session that begins with what this one has said."""

    session_id: str
    title: str | UnsetType | None = UNSET
    start: bool = False
