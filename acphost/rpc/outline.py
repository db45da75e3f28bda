"""What kind of message a line would be that cannot be read: somebody may wait for it. No I/O."""

import re
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from acphost.wire.jsonrpc import RequestId

#: So much of a line is looked at to tell what it is.
_HEAD = 512

# Possessive, as in `mending`: a hostile line costs one pass.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN = re.compile(_STRING + rb"|[{}\[\]:,]|[^\s{}\[\]:,\"]++", re.DOTALL)
_ID = msgspec.json.Decoder(RequestId)


class Outline(NamedTuple):
    """What a line would be."""

    id: RequestId | UnsetType
    has_method: bool
    is_response: bool


def outlined(line: bytes) -> Outline:
    """What a line that cannot be read is, by its beginning."""
    id_: RequestId | UnsetType = UNSET
    if b'"id"' not in line[:_HEAD]:
        return Outline(UNSET, has_method=False, is_response=False)
    names: set[bytes] = set()
    depth, key, is_value = 0, b"", False
    for token in _TOKEN.finditer(line[:_HEAD]):
        text = token[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif depth != 1:
            continue
        elif text == b":":
            is_value = True
        elif text == b",":
            is_value = False
        elif not is_value:
            key = text.strip(b'"')
            names.add(key)
        elif key == b"id":
            id_ = _read_id(text)
    has_method = b"method" in names
    return Outline(id_, has_method, not has_method and bool(names & {b"result", b"error"}))


def _read_id(text: bytes) -> RequestId | UnsetType:
    try:
        return _ID.decode(text)
    except msgspec.DecodeError:
        return UNSET
