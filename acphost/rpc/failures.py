"""The one place where an exception becomes an error object on a wire."""

import msgspec

from acphost.errors import AcpHostError, RemoteError, cut
from acphost.ids import mint
from acphost.log import get_logger
from acphost.wire.jsonrpc import ErrorObject

_INTERNAL_ERROR = -32603

log = get_logger()


def error_object(exc: Exception) -> ErrorObject:
    """What the peer is told: all of our own errors, nothing but a log id of any other."""
    match exc:
        case RemoteError():
            data = msgspec.UNSET if exc.data is None else msgspec.Raw(exc.data)
            return ErrorObject(exc.remote_code, cut(str(exc)), data)
        case AcpHostError():
            fields = {"code": exc.word, "retryable": exc.retryable, **exc.details}
            return ErrorObject(exc.code, cut(str(exc)), _raw(fields))
        case _:
            return _internal(exc)


def _internal(exc: Exception) -> ErrorObject:
    log_id = mint("err")
    get_logger().error("internal_error", log_id=log_id, exc_info=exc)
    fields = {"code": AcpHostError.word, "retryable": AcpHostError.retryable, "logId": log_id}
    return ErrorObject(_INTERNAL_ERROR, "internal error", _raw(fields))


def _raw(fields: dict[str, object]) -> msgspec.Raw:
    # A detail that JSON cannot say is said as text: an error about the error helps nobody.
    return msgspec.Raw(msgspec.json.encode(fields, enc_hook=str))
