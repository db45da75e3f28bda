"""Updates read many at a time: they are nearly all that an agent says, and come in floods."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from acphost.rpc.nesting import SHALLOW, is_too_deep
from acphost.wire.acp import SessionUpdate


class _Line(msgspec.Struct, gc=False):
    method: Literal["session/update"]
    params: SessionUpdate
    #: With an id it would be a request.
    id: msgspec.UnsetType = msgspec.UNSET


_decode_lines = msgspec.json.Decoder(_Line).decode_lines


def read_updates(lines: Sequence[bytes]) -> list[SessionUpdate] | None:
    """The updates in `lines`; None unless each line is one, in strict JSON and good UTF-8."""
    block = b"\n".join(lines)
    # msgspec takes any white space between values and inside them. In valid JSON a `}` before and
    # a `{` behind it stand between values only, so with the count below each line is one value.
    if block.count(b"}\n{") != len(lines) - 1:
        return None
    try:
        found = _decode_lines(block)
        # msgspec looks at the UTF-8 of what it decodes, not of what it keeps raw.
        if not block.isascii():
            block.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(found) != len(lines):
        return None
    # Short lines cannot be deep, and nearly all are short.
    if max(map(len, lines)) > SHALLOW and any(map(is_too_deep, lines)):
        return None
    return [line.params for line in found]
