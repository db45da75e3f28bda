"""What a strict JSON reader would refuse in a payload, and a copy that it would take."""

import re

import msgspec

#: Flag of an event whose payload is such.
LOSSY = 2

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HARMLESS = rb"\\[^u]|\\u(?![dD][89a-fA-F])"
_ESCAPES_ARE_PAIRED = re.compile(
    rb"(?:[^\\]++|" + _PAIR + rb"|" + _HARMLESS + rb")*+", re.DOTALL
).fullmatch
_REPAIRABLE = re.compile((_STRING + rb"|-?(?:NaN|Infinity)").decode(), re.DOTALL)
_LONE_SURROGATE = re.compile(
    rf"({_PAIR.decode()}|{_HARMLESS.decode()})|\\u[dD][89a-fA-F][0-9a-fA-F]{{2}}", re.DOTALL
)
_STRINGS = re.compile(_STRING, re.DOTALL)
_BACKSLASH, _N, _I = b"\\NI"
_SYNTAX = msgspec.json.Decoder(msgspec.Raw)


def classify(payload: bytes) -> int:
    """`LOSSY` if a strict JSON reader would refuse `payload`, else 0.

    The payload is one JSON value by a tolerant reader's measure: what is left to look for is bad
    UTF-8, half a surrogate pair, and the numbers that are none.
    """
    # One byte is searched for several times faster than two.
    if _BACKSLASH in payload and b"\\u" in payload and not _ESCAPES_ARE_PAIRED(payload):
        return LOSSY
    if (_N in payload and b"NaN" in payload) or (_I in payload and b"Infinity" in payload):
        bare = _STRINGS.sub(b"", payload)
        if b"NaN" in bare or b"Infinity" in bare:
            return LOSSY
    if payload.isascii():
        return 0
    try:
        payload.decode()
    except UnicodeDecodeError:
        return LOSSY
    return 0


def repaired(payload: bytes) -> bytes:
    """A strict JSON copy of a lossy payload: U+FFFD for no character, null for no number."""
    text = _REPAIRABLE.sub(_repair_token, payload.decode("utf-8", "replace"))
    try:
        return bytes(_SYNTAX.decode(text))
    except msgspec.DecodeError:
        # Not even a tolerant reader's JSON: as one string it is at least visible.
        return msgspec.json.encode(text)


def _repair_token(found: re.Match[str]) -> str:
    token = found.group()
    if not token.startswith('"'):
        return "null"
    return _LONE_SURROGATE.sub(lambda escape: escape.group(1) or r"\ufffd", token)
