"""Looking into objects of an agent and changing single members, the bytes of the rest untouched."""

import msgspec
from msgspec import Raw

Members = dict[str, Raw]


def members(raw: bytes | Raw) -> Members:
    """The members of an object as they came; empty where it is none."""
    try:
        return msgspec.json.decode(raw, type=Members)
    except (msgspec.DecodeError, RecursionError):
        return {}


def items(raw: bytes | Raw | None) -> list[Raw]:
    """The items of an array as they came; empty where it is none."""
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        return []


def text(raw: bytes | Raw | None) -> str | None:
    """A string; None where it is none."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return None


def is_given(raw: Raw | None) -> bool:
    """Whether a member is there and says something."""
    return raw is not None and bytes(raw) != b"null"


def raw(value: object) -> Raw:
    """A value of ours as a member."""
    return Raw(msgspec.json.encode(value))
