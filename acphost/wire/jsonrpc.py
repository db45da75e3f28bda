"""JSON-RPC 2.0 messages as values; `params` and `result` stay raw until somebody reads them."""

import msgspec

#: As both directions allow: echoed exactly, compared by type and value.
RequestId = int | str | None


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` member of a failure."""

    code: int
    message: str
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Request(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """Wants an answer, whatever its id, null included."""

    id: RequestId
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Notification(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """Wants none."""

    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Success(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The good answer."""

    id: RequestId
    result: msgspec.Raw


class Failure(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The bad answer."""

    id: RequestId
    error: ErrorObject


Message = Request | Notification | Success | Failure
