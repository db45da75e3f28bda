"""Members of a session's stored settings, each read and written without touching the others."""

from typing import TypeVar

import msgspec
from msgspec import Raw

T = TypeVar("T")


#: A person gave the title: the agent's own is not shown.
TITLED = "titled"
#: It began as a session of the agent's that was not made here; until it was loaded once.
ADOPTED = "adopted"
#: The digest of what an agent obeys in the folder, after a person has said that it may.
TRUSTED = "trusted"


class ForkedFrom(msgspec.Struct, frozen=True, rename="camel"):
    """Where a fork begins: what that session had said up to that seq."""

    session_id: str
    seq: int
    #: Not all of it fitted: the earlier turns are in that session alone.
    is_cut: bool = False


def keep(settings: bytes, name: str, value: object) -> bytes:
    """The settings with that member exchanged."""
    return msgspec.json.encode({**_members(settings), name: value})


def kept(settings: bytes, name: str, kind: type[T]) -> T | None:
    """That member; None if it is not there, or of another version of ours."""
    raw = _members(settings).get(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        return None


def _members(settings: bytes) -> dict[str, Raw]:
    try:
        return msgspec.json.decode(settings, type=dict[str, Raw])
    except msgspec.DecodeError:
        return {}
