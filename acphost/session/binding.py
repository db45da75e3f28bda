"""What ties a session to a process of its agent, and what the agent says while it is tied."""

from dataclasses import dataclass

import msgspec

from acphost.errors import RemoteError
from acphost.ids import AcpSessionId
from acphost.journal.rows import BindingRow
from acphost.provider.process import AgentProcess
from acphost.session.configure import Seat
from acphost.wire.acp import SessionOpened, lenient


@dataclass(slots=True)
class Binding:
    """A live agent process together with one ACP session inside it."""

    process: AgentProcess
    acp_session_id: AcpSessionId
    row: BindingRow
    #: Sent ahead of the next prompt, once: the history packet of a cold resume.
    prelude: str | None = None

    @property
    def seat(self) -> Seat:
        """Where requests about the session go."""
        return Seat(self.process, self.acp_session_id)


@dataclass(slots=True)
class Replay:
    """What an agent says between our request to load and our next prompt."""

    count: int = 0
    #: How many of them the user is to have said.
    users: int = 0
    last_seq: int | None = None
    #: How many of them are of a kind that people are shown.
    tellable: int = 0
    #: So many of those were shown before; None: all of it is known, and none is shown.
    shown: int | None = None


def remote_error(error: RemoteError) -> dict[str, object]:
    """An agent's error object, whole."""
    told: dict[str, object] = {"code": error.remote_code, "message": error.message}
    if error.data is not None:
        told["data"] = msgspec.Raw(error.data)
    return told


def check_alive(process: AgentProcess) -> None:
    """It may have gone while its answer was being looked at. Raises AgentGoneError."""
    if process.connection.gone is not None:
        raise process.connection.gone


def other_session(result: msgspec.Raw, known: AcpSessionId) -> str | None:
    """The id of another session than the one that was asked for, where an answer names one."""
    try:
        named = lenient(SessionOpened, result).session_id
    except msgspec.DecodeError:
        return None
    return named if named and named != known else None
