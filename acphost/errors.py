"""Every deliberate error of acphost, each with the word that clients match on.

The numbers are JSON-RPC codes, the words are those of the contract ("Errors"). How an exception
becomes an error object on a wire is decided in one place, `rpc.failures`.
"""

from collections.abc import Mapping
from typing import ClassVar

#: JSON-RPC number shared by all words that are only ours.
HOST_ERROR = -32050
#: Characters of a message; what a peer sent may stand in it, and that has no limit.
MAX_MESSAGE = 2000


def cut(message: str) -> str:
    """Its beginning and its end, where the path and the cure stand."""
    if len(message) <= MAX_MESSAGE:
        return message
    half = MAX_MESSAGE // 2
    return f"{message[:half]} … {message[-half:]}"


class AcpHostError(Exception):
    """Root of the hierarchy: a fact stated in one sentence, with a number, a word and details.

    `code` is the JSON-RPC number, `word` is what a client may match on, `details` are further
    fields of `error.data`. A message that ends on the cure needs no manual.
    """

    code: ClassVar[int] = -32603
    word: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **details: object) -> None:
        super().__init__(message)
        self.details: Mapping[str, object] = details


# -- JSON-RPC: a peer broke the framing or the protocol -------------------------------------------


class ProtocolError(AcpHostError):
    """A peer broke JSON-RPC or ACP; never raised for our own mistakes."""

    code = -32600
    word = "invalid_request"


class ParseError(ProtocolError):
    """A line is not JSON."""

    code = -32700
    word = "parse_error"


class InvalidRequestError(ProtocolError):
    """A line is JSON, but neither request, notification nor response."""


class FrameTooLongError(ProtocolError):
    """A line grew over the limit; the connection cannot be trusted any further."""

    word = "too_large"


class MethodNotFoundError(ProtocolError):
    """Nobody here answers to that method."""

    code = -32601
    word = "method_not_found"


class InvalidParamsError(ProtocolError):
    """The params do not fit the method; the message names the path."""

    code = -32602
    word = "invalid_params"


class RemoteError(AcpHostError):
    """A peer answered with an error object; it is kept whole for whoever asked.

    As a text it is short: that stands in rows, lists and status.
    """

    def __init__(self, remote_code: int, message: str, data: bytes | None = None) -> None:
        super().__init__(cut(message))
        self.remote_code = remote_code
        self.message = message
        self.data = data


class ConnectionLostError(AcpHostError):
    """The peer went away before it answered."""

    word = "connection_lost"
    retryable = True


# -- ours: what a client of the socket may be told ------------------------------------------------


class HostError(AcpHostError):
    """An error that is only acphost's; the word tells which."""

    code = HOST_ERROR


class NotInitializedError(HostError):
    """A method came before `initialize`."""

    word = "not_initialized"


class UnsupportedVersionError(HostError):
    """No protocol version in common; `supported` lists ours."""

    word = "unsupported_version"


class AuthRequiredError(HostError):
    """The agent wants a login first; `methods` are those it offers."""

    code = -32000
    word = "auth_required"


class SessionNotFoundError(HostError):
    """No session has that id."""

    code = -32002
    word = "session_not_found"


class RunNotFoundError(HostError):
    """No run has that id."""

    code = -32002
    word = "run_not_found"


class AgentNotFoundError(HostError):
    """No agent of that id is configured."""

    code = -32002
    word = "agent_not_found"


class PermissionNotFoundError(HostError):
    """No decision has that id."""

    code = -32002
    word = "permission_not_found"


class PathNotGrantedError(HostError):
    """A path leads out of the folders that the session may use; `roots` names them."""

    word = "path_not_granted"


class AgentUnavailableError(HostError):
    """The agent could not be started or went away; details: command, exitCode, signal, stderr."""

    word = "agent_unavailable"
    retryable = True


class AgentRefusedError(HostError):
    """The agent answered with an error of its own; `agentError` holds it."""

    word = "agent_error"


class ConflictError(HostError):
    """The request contradicts what is already recorded."""

    word = "conflict"


class ConfirmationRequiredError(HostError):
    """What was asked for cannot be undone; details: what `confirm` must be."""

    word = "confirmation_required"


class QueueFullError(HostError):
    """The session's queue has reached its limit."""

    word = "queue_full"
    retryable = True


class PermissionDeniedError(HostError):
    """The actor may not do that."""

    word = "permission_denied"


class TooLargeError(HostError):
    """A value is over its limit."""

    word = "too_large"


class UnsupportedContentError(HostError):
    """The agent does not take that kind of prompt content."""

    word = "unsupported_content"


class StorageFullError(HostError):
    """The disk or the store is full: nothing can be accepted until there is room."""

    word = "storage_full"
    retryable = True


class StorageError(HostError):
    """The store cannot be read or written."""

    word = "storage_error"
    retryable = True


class ShuttingDownError(HostError):
    """The daemon drains and takes no new work."""

    word = "shutting_down"
    retryable = True


class OverloadedError(HostError):
    """A limit of the connection or the daemon is reached; `retryAfterMs` says when to try again."""

    word = "overloaded"
    retryable = True


class AlreadyResolvedError(HostError):
    """Somebody answered first; details: `by`, `optionId`, `outcome`."""

    word = "already_resolved"


class CursorMalformedError(HostError):
    """A cursor is not a number of at most 18 digits."""

    word = "cursor_malformed"


class CursorForeignError(HostError):
    """A cursor belongs to another store."""

    word = "cursor_foreign"


class CursorFutureError(HostError):
    """A cursor points past the head of the journal."""

    word = "cursor_future"


# -- what only agents are told, by the numbers of their protocol -----------------------------------


class FileMissingError(AcpHostError):
    """There is no such file (guide rule 36)."""

    code = -32002
    word = "file_not_found"


class TerminalNotFoundError(AcpHostError):
    """No terminal has that id, or it was released (guide rule 42)."""

    code = -32002
    word = "terminal_not_found"


class RequestCancelledError(AcpHostError):
    """The agent took its request back; it is answered all the same (guide section 6)."""

    code = -32800
    word = "request_cancelled"


# -- start-up: shown to whoever starts the daemon, with an exit code -------------------------------


class StartError(AcpHostError):
    """The daemon cannot start; `exit_code` follows sysexits where one fits."""

    exit_code: ClassVar[int] = 1
    word = "start_failed"


class ConfigError(StartError):
    """A configuration file has a mistake; the message names file, key path and expectation."""

    exit_code = 78
    word = "config_error"


class AlreadyRunningError(StartError):
    """Another daemon holds the lock of this state directory."""

    exit_code = 3
    word = "already_running"


class StateFolderError(StartError):
    """The state folder cannot be used as it is; the message says why and what to do."""

    exit_code = 78
    word = "state_folder"


class SocketPathError(StartError):
    """The socket path cannot be used; the message says why and what to do."""

    exit_code = 78
    word = "socket_path"


class StoreRefusedError(StartError):
    """The store on disk is newer than this program, damaged, or not ours."""

    exit_code = 78
    word = "store_refused"


class DaemonUnreachableError(AcpHostError):
    """No daemon answers on the socket."""

    word = "daemon_unreachable"
    retryable = True
