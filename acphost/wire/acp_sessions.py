"""What agents keep of their own sessions: listed, forked, deleted (guide section 3)."""

from acphost.wire.base import AcpStruct


class SessionInfo(AcpStruct, frozen=True):
    """A session in an agent's list."""

    session_id: str
    cwd: str = ""
    additional_directories: list[str] = []
    title: str | None = None
    updated_at: str | None = None


class SessionList(AcpStruct, frozen=True):
    """A page of `session/list`; the cursor means nothing but itself."""

    sessions: list[SessionInfo] = []
    next_cursor: str | None = None


class Forked(AcpStruct, frozen=True):
    """The answer to `session/fork`."""

    session_id: str = ""
