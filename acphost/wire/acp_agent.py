"""What an editor says to an agent, as far as the front door acts on it (guide section 3)."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.wire.acp import PROTOCOL_VERSION, Implementation, lenient
from acphost.wire.base import AcpStruct


class FileSystem(AcpStruct, frozen=True):
    """Which files the editor reads and writes for agents, unsaved text included."""

    read_text_file: bool = False
    write_text_file: bool = False


class Elicitation(AcpStruct, frozen=True):
    """Which questions beside permissions the editor can put to people."""

    form: Raw | UnsetType = UNSET
    url: Raw | UnsetType = UNSET


class SessionSupport(AcpStruct, frozen=True):
    """Which newer parts of a conversation the editor shows."""

    config_options: dict[str, Raw] = {}
    notices: Raw | UnsetType = UNSET
    compaction: Raw | UnsetType = UNSET


class EditorCapabilities(AcpStruct, frozen=True):
    """What the editor said of itself; what it did not mention it cannot do."""

    fs: FileSystem = FileSystem()
    elicitation: Elicitation = Elicitation()
    session: SessionSupport = SessionSupport()
    plan: Raw | UnsetType = UNSET

    @property
    def shows_booleans(self) -> bool:
        """Whether a config option may be a switch."""
        return _is_marked(self.session.config_options.get("boolean", UNSET))

    @property
    def shows_notices(self) -> bool:
        """Whether it takes `notice` updates."""
        return _is_marked(self.session.notices)

    @property
    def shows_compaction(self) -> bool:
        """Whether it takes `compaction_…` updates."""
        return _is_marked(self.session.compaction)

    @property
    def shows_plans(self) -> bool:
        """Whether it takes several plans, and their removal."""
        return _is_marked(self.plan)

    @property
    def elicitation_modes(self) -> dict[str, bool]:
        """Which elicitations it shows."""
        asked = {"form": self.elicitation.form, "url": self.elicitation.url}
        return {mode: True for mode, marker in asked.items() if _is_marked(marker)}


class InitializeParams(AcpStruct, frozen=True):
    """The editor's first request."""

    protocol_version: int = PROTOCOL_VERSION
    client_capabilities: EditorCapabilities = EditorCapabilities()
    client_info: Implementation = Implementation()


class SessionParams(AcpStruct, frozen=True):
    """Requests about one session."""

    session_id: str


class OpeningParams(AcpStruct, frozen=True):
    """`session/new`, and what else opens one."""

    cwd: str
    session_id: str = ""
    mcp_servers: list[Raw] = []
    additional_directories: list[str] = []


class AuthenticateParams(AcpStruct, frozen=True):
    """`authenticate`."""

    method_id: str


class ModeParams(AcpStruct, frozen=True):
    """`session/set_mode`."""

    session_id: str
    mode_id: str


class OptionParams(AcpStruct, frozen=True):
    """`session/set_config_option`."""

    session_id: str
    config_id: str
    value: str | bool


class PromptParams(AcpStruct, frozen=True):
    """`session/prompt`."""

    session_id: str
    prompt: list[Raw]
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


class ListParams(AcpStruct, frozen=True):
    """`session/list`."""

    cwd: str | None = None
    cursor: str | None = None


def read_initialize(params: Raw) -> InitializeParams:
    """What the editor said, read as leniently as the protocol asks."""
    try:
        return lenient(InitializeParams, params)
    except msgspec.DecodeError:
        return InitializeParams()


def _is_marked(marker: Raw | UnsetType) -> bool:
    return isinstance(marker, Raw) and bytes(marker) not in (b"null", b"false")
