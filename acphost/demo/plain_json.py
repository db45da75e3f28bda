"""JSON by the standard library alone, as strict as the host's own reader.

To load the host's library would take half of the time that an agent under test lives. And a peer
that reads JSON by other means than the host shows more.
"""

import json
from math import isfinite
from typing import Any, NoReturn


class _Nothing:
    """The type of what is not there, where null would be something."""

    def __repr__(self) -> str:
        return "NOTHING"


#: Not there.
NOTHING = _Nothing()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _number(text: str) -> float:
    found = float(text)
    return found if isfinite(found) else _refuse(text)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_refuse, parse_float=_number).decode


def encode(value: object) -> bytes:
    """UTF-8, nothing escaped that JSON does not force. Raises ValueError for half a character."""
    return _encode(value).encode()


def decode(text: bytes | str) -> Any:  # noqa: ANN401  it is JSON
    """What the JSON says.

    Raises ValueError for whatever is none, UTF-8 and escapes of half a character included.
    """
    given = text if isinstance(text, str) else text.decode()
    found = _decode(given)
    if "\\ud" in given or "\\uD" in given:
        encode(found)
    return found
