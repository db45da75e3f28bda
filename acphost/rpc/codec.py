"""One line to one message and back, no I/O.

A line that is not strict JSON is mended where its structure is sound: peers are allowed bad UTF-8,
cut surrogate pairs, bare control characters, NaN, and terminal escapes in front of a message.
"""

from typing import NamedTuple, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.errors import InvalidRequestError, ParseError
from acphost.rpc import mending
from acphost.rpc.nesting import MAX_DEPTH, is_too_deep
from acphost.wire.jsonrpc import (
    ErrorObject,
    Failure,
    Message,
    Notification,
    Request,
    RequestId,
    Success,
)

_NO_PARAMS = Raw(b"{}")
_NULL = Raw(b"null")
_INTERNAL_ERROR = -32603
_TOO_DEEP = "nested too deeply"


class _Envelope(msgspec.Struct, gc=False):
    # In the order of the wire. `jsonrpc` is not looked at: absent or other is tolerated. ACP knows
    # ids of 64 bits; a longer one is as good a name for a request that somebody waits for.
    id: int | str | UnsetType | None = UNSET
    method: str | None = None
    params: Raw = _NO_PARAMS
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Shape(msgspec.Struct, gc=False):
    """What a refused line looks like, whatever the types of its members."""

    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _RequestOut(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: RequestId
    method: str
    params: object


class _NotificationOut(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: object


class _SuccessOut(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: RequestId
    result: object


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_error = msgspec.json.Decoder(ErrorObject).decode
_decode_shape = msgspec.json.Decoder(_Shape).decode
_encode_lines = msgspec.json.Encoder().encode_lines


class Repaired(NamedTuple):
    """A message that could be read only after its line was mended: worth a note in the log.

    `line` is what came, without escapes in front. `lossy`: the message differs from it inside its
    text; `verbatim_member` finds the exact bytes. Not lossy: only the escapes were in the way.
    """

    message: Message
    line: bytes
    lossy: bool


def decode_message(line: bytes, max_depth: int = MAX_DEPTH) -> Message | Repaired:
    """Read one line.

    Raises ParseError if it is not JSON or nested too deeply, InvalidRequestError if it is JSON but
    no message.
    """
    try:
        envelope = _decode_envelope(line)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(str(exc)) from exc
    except (msgspec.DecodeError, RecursionError):
        return _lenient(line, max_depth)
    if is_too_deep(line, max_depth):
        raise ParseError(_TOO_DEEP)
    # msgspec looks at the UTF-8 of what it decodes, not of what it keeps raw.
    if not line.isascii() and not mending.is_utf8(line):
        return _lenient(line, max_depth)
    method = envelope.method
    if method is not None and envelope.id is UNSET and envelope.params != _NULL:
        # What nearly every line is. The rest can afford another call.
        return Notification(method, envelope.params)
    return _message(envelope)


def _message(envelope: _Envelope) -> Message:
    id_ = envelope.id
    if envelope.method is not None:
        params = _NO_PARAMS if envelope.params == _NULL else envelope.params
        if id_ is UNSET:
            return Notification(envelope.method, params)
        return Request(id_, envelope.method, params)
    if id_ is UNSET:
        raise InvalidRequestError("neither a method nor an id")
    if _given(envelope.error):
        return Failure(id_, _error(envelope.error))
    if envelope.result is not UNSET:
        return Success(id_, envelope.result)
    raise InvalidRequestError("neither a request, a notification nor a response")


def _given(member: Raw | UnsetType) -> TypeGuard[Raw]:
    """Whether a member is there; a null `method`, `params` or `error` is as good as absent."""
    return member is not UNSET and member != _NULL


def _error(raw: Raw) -> ErrorObject:
    """An error object as it should be; one that is not is wrapped, since somebody waits for it."""
    try:
        return _decode_error(raw)
    except msgspec.DecodeError:
        return ErrorObject(_INTERNAL_ERROR, "the peer failed without a proper error object", raw)


def _lenient(line: bytes, max_depth: int) -> Repaired:
    bare = mending.without_leading_escapes(line)
    mended = mending.mend(bare)
    try:
        message = _message(_decode_envelope(mended))
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(str(exc)) from exc
    except msgspec.DecodeError as exc:
        raise ParseError(str(exc)) from exc
    except RecursionError as exc:
        raise ParseError(_TOO_DEEP) from exc
    if is_too_deep(mended, max_depth):
        raise ParseError(_TOO_DEEP)
    return Repaired(message, bare, lossy=mended != bare)


def verbatim_member(line: bytes, *path: str) -> bytes | None:
    """The exact bytes of the member at `path` of a line that is sound in structure, else None."""
    return mending.member(line, path)


def deserves_answer(line: bytes) -> bool:
    """Whether a peer is to be told that `line` was refused: not if it looks like a response."""
    try:
        shape = _decode_shape(mending.mend(line))
    except (msgspec.DecodeError, RecursionError):
        return True
    return _given(shape.method) or (shape.result is UNSET and not _given(shape.error))


def encode_request(request_id: RequestId, method: str, params: object = _NO_PARAMS) -> bytes:
    """A request, with its newline; `params` is raw JSON or anything msgspec encodes."""
    return _frame(_RequestOut(request_id, method, params))


def encode_notification(method: str, params: object = _NO_PARAMS) -> bytes:
    """A notification, with its newline."""
    return _frame(_NotificationOut(method, params))


def encode_success(request_id: RequestId, result: object) -> bytes:
    """A good answer, with its newline."""
    return _frame(_SuccessOut(request_id, result))


def encode_failure(request_id: RequestId, error: ErrorObject) -> bytes:
    """A bad answer, with its newline."""
    return _frame(Failure(request_id, error))


def _frame(message: msgspec.Struct) -> bytes:
    """Exactly one line of valid UTF-8, whatever raw JSON was put into it."""
    try:
        line = _encode_lines([message])
    except UnicodeEncodeError:
        line = _encode_lines([mending.without_surrogates(message)])
    if not line.isascii():
        line = mending.for_any_line_reader(line)
    if line.find(b"\n") != len(line) - 1:
        # Outside of strings a line break is white space; inside it cannot be in JSON.
        line = line[:-1].replace(b"\n", b" ") + b"\n"
    return line
