"""What the editor is told when something does not work, in the protocol's own codes."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw

from acphost.errors import (
    HOST_ERROR,
    AcpHostError,
    AuthRequiredError,
    CursorForeignError,
    CursorFutureError,
    CursorMalformedError,
    InvalidParamsError,
    RemoteError,
    SessionNotFoundError,
    TooLargeError,
    UnsupportedContentError,
)
from acphost.rpc.codec import encode_failure
from acphost.wire.jsonrpc import ErrorObject, RequestId

INTERNAL_ERROR = -32603
#: What the editor asked for cannot be had as it was asked: nothing is wrong in here.
_ITS_PARAMS = frozenset(
    {
        UnsupportedContentError.word,
        TooLargeError.word,
        CursorMalformedError.word,
        CursorForeignError.word,
        CursorFutureError.word,
    }
)
#: The answer to a request that the editor itself has taken back (guide section 6).
REQUEST_CANCELLED = ErrorObject(-32800, "the request was cancelled")


def error_object(exc: Exception, *, session_id: str | None = None) -> ErrorObject:
    """An error of ours, or of the daemon, or an agent's own, which is passed on whole."""
    if isinstance(exc, RemoteError):
        if exc.remote_code != HOST_ERROR:
            return ErrorObject(
                exc.remote_code, str(exc), UNSET if exc.data is None else Raw(exc.data)
            )
        said = msgspec.json.decode(exc.data or b"{}", type=dict[str, Raw])
        return ErrorObject(INTERNAL_ERROR, str(exc), _in_words(exc, said))
    if not isinstance(exc, AcpHostError):
        told = f"internal error: {type(exc).__name__}: {exc}"
        return ErrorObject(INTERNAL_ERROR, told)
    # The daemon's own number lies in what the protocol reserves; its word says more anyway.
    code = exc.code
    if code == HOST_ERROR:
        code = InvalidParamsError.code if exc.word in _ITS_PARAMS else INTERNAL_ERROR
    data = {"code": exc.word, "retryable": exc.retryable, **exc.details}
    if isinstance(exc, SessionNotFoundError) and session_id is not None:
        data["sessionId"] = session_id
    if isinstance(exc, AuthRequiredError):
        data["authMethods"] = data.pop("methods", [])
    return ErrorObject(code, str(exc), _in_words(exc, data))


def _in_words(exc: AcpHostError, data: Mapping[str, object]) -> Raw:
    """The data of an error of ours: some editors show its `details`, and never the message."""
    return Raw(msgspec.json.encode({"details": str(exc), **data}, enc_hook=str))


def failure_frame(request_id: RequestId, exc: Exception, *, session_id: str | None = None) -> bytes:
    """The answer that says so."""
    return encode_failure(request_id, error_object(exc, session_id=session_id))
