"""What the socket returns about a session's agent, beside its status (contract section 5)."""

from acphost.wire.base import HostRecord


class RuntimeStarted(HostRecord, frozen=True):
    """The answer to `runtime/start`: the agent is there, and this is how it came to the session."""

    session_id: str
    acp_session_id: str
    mode: str
