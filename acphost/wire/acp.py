"""Typed views of what ACP agents say, read as leniently as the protocol asks (guide section 3).

The bytes of an agent are kept as they came; these views only lift what the host acts on. A view
that does not fit is not an error of the connection: `lenient` reads member by member and drops what
is malformed.
"""

from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.wire.base import AcpStruct

#: In the `_meta` of a prompt to a chat: what was said before, as messages of chat models.
TRANSCRIPT = "acphost/transcript"
PROTOCOL_VERSION = 1

S = TypeVar("S", bound=msgspec.Struct)


class Implementation(AcpStruct, frozen=True):
    """Who the agent is."""

    name: str = ""
    version: str = ""
    title: str | None = None


class PromptCapabilities(AcpStruct, frozen=True):
    """Which content a prompt may carry beside text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class AuthMethod(AcpStruct, frozen=True):
    """A way to log in."""

    id: str = ""
    name: str = ""
    type: str = "agent"
    description: str | None = None
    #: Of a terminal login: what the agent's command is given besides.
    args: list[str] = []
    env: dict[str, str] = {}


class AgentCapabilities(AcpStruct, frozen=True):
    """What the agent says it can do; whether it holds is another matter."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: dict[str, bool] = {}
    session_capabilities: dict[str, Raw] = {}
    auth: dict[str, Raw] = {}

    def offers(self, name: str) -> bool:
        """Whether a session capability is marked: an object, or liberally `true`."""
        return _is_marked(self.session_capabilities, name)

    def offers_auth(self, name: str) -> bool:
        """The same of what it offers about logins."""
        return _is_marked(self.auth, name)


def _is_marked(capabilities: dict[str, Raw], name: str) -> bool:
    marker = capabilities.get(name)
    return marker is not None and bytes(marker) not in (b"null", b"false")


class InitializeResult(AcpStruct, frozen=True):
    """The agent's answer to `initialize`; a bare protocolVersion is legal."""

    protocol_version: int = 0
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    agent_info: Implementation = Implementation()
    auth_methods: list[AuthMethod] = []


class SessionOpened(AcpStruct, frozen=True):
    """The answer to session/new, load and resume; `session_id` only from new."""

    session_id: str = ""
    modes: Raw | UnsetType = UNSET
    models: Raw | UnsetType = UNSET
    config_options: Raw | UnsetType = UNSET


class PromptResult(AcpStruct, frozen=True):
    """The end of a turn."""

    stop_reason: str = ""
    usage: Raw | UnsetType = UNSET


class SessionUpdate(AcpStruct, frozen=True, gc=False):
    """The envelope of `session/update`; hundreds are read at once, and none refers to another."""

    session_id: str
    update: Raw


class UpdateTag(AcpStruct, frozen=True):
    """The one member that tells what an update is."""

    session_update: str = ""


class SessionScoped(AcpStruct, frozen=True):
    """Any params that name a session."""

    session_id: str = ""


class ToolCall(AcpStruct, frozen=True):
    """What of a tool call or its update the host follows."""

    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None


class ToolReport(ToolCall, frozen=True):
    """A tool call or its update with what it is about, unread."""

    name: str | None = None
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)
    raw_input: Raw | UnsetType = UNSET
    locations: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET


class PermissionOption(AcpStruct, frozen=True):
    """One offered answer; the kind is a hint, the id is what counts."""

    option_id: str
    name: str = ""
    kind: str = ""


class PermissionRequest(AcpStruct, frozen=True):
    """`session/request_permission`."""

    session_id: str = ""
    tool_call: ToolReport = ToolReport()
    options: list[PermissionOption] = []


class TextBlock(AcpStruct, frozen=True):
    """A content block as far as its text."""

    type: str = ""
    text: str = ""


class MessageChunk(AcpStruct, frozen=True):
    """A piece of a message."""

    content: TextBlock = TextBlock()


def lenient(kind: type[S], raw: bytes | Raw) -> S:
    """Read `raw` as `kind`, leaving out each member that does not fit (guide, leniency marks).

    An object that lacks a required member, or no object at all, still raises
    msgspec.ValidationError: then there is nothing to act on.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError:
        members = msgspec.json.decode(raw, type=dict[str, Raw])
    kept: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in members:
            if field.required:
                raise msgspec.ValidationError(f"missing required field `{field.encode_name}`")
            continue
        try:
            kept[field.name] = _member(field.type, members[field.encode_name])
        except msgspec.ValidationError:
            if field.required:
                raise
    return kind(**kept)


def _member(kind: object, raw: Raw) -> object:
    """One member; a struct is read leniently in turn, and a list loses only its bad items."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return lenient(kind, raw)
    if getattr(kind, "__origin__", None) is list:
        (item,) = kind.__args__  # type: ignore[attr-defined]  # what list[...] was written with
        kept = []
        for piece in msgspec.json.decode(raw, type=list[Raw]):
            try:
                kept.append(_member(item, piece))
            except msgspec.ValidationError:
                continue
        return kept
    if getattr(kind, "__origin__", None) is dict:
        _, value = kind.__args__  # type: ignore[attr-defined]  # what dict[...] was written with
        pairs = msgspec.json.decode(raw, type=dict[str, Raw])
        fitting = {}
        for name, piece in pairs.items():
            try:
                fitting[name] = _member(value, piece)
            except msgspec.ValidationError:
                continue
        return fitting
    return msgspec.json.decode(raw, type=kind)
