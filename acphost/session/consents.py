"""What was allowed in a turn: an agent that has asked for a thing need not ask for it again.

A request for permission names what it is about: places, diffs, and members of the tool's input that
are known to hold a path or a command. Other text in it counts for nothing, or a description could
smuggle in what nobody has seen. A deed that comes through the host counts as the one that was
allowed if it is named there exactly.
"""

import shlex

import msgspec
from msgspec import Raw, UnsetType

from acphost.wire.acp import lenient
from acphost.wire.base import AcpStruct

#: Members of a tool's input that name a file, or what is run.
_PATHS = frozenset({"path", "file", "file_path", "filePath", "filename", "abs_path", "absPath"})
_COMMANDS = frozenset({"command", "cmd"})
#: Where such members stand if not in the input itself.
_INNER = "arguments"


class _Named(AcpStruct, frozen=True):
    path: str = ""


class _Call(AcpStruct, frozen=True):
    kind: str | None = None
    locations: list[_Named] = msgspec.field(default_factory=list)
    content: list[_Named] = msgspec.field(default_factory=list)
    raw_input: Raw | UnsetType = msgspec.UNSET


class _Asked(AcpStruct, frozen=True):
    tool_call: _Call = _Call()


class Consents:
    """The requests that somebody, or a rule, has answered with an option that allows."""

    def __init__(self) -> None:
        self._by_kind: dict[str, set[str]] = {}

    def add(self, params: Raw) -> None:
        """A request for permission was granted."""
        try:
            call = lenient(_Asked, params).tool_call
        except msgspec.DecodeError:
            return
        given = _members(call.raw_input)
        kind = call.kind or ("edit" if call.content else "other")
        if kind == "execute":
            named = {_line(given[name], given.get("args")) for name in _COMMANDS & given.keys()}
        else:
            named = {each.path for each in (*call.locations, *call.content)}
            named |= {path for name in _PATHS if isinstance(path := given.get(name), str)}
        self._by_kind.setdefault(kind, set()).update(named - {""})

    def clear(self) -> None:
        """The turn is over, and what was allowed in it."""
        self._by_kind.clear()

    def cover(self, kind: str, *names: str) -> bool:
        """Whether a tool of that kind was allowed for something with one of these names."""
        return not self._by_kind.get(kind, set()).isdisjoint(names)


def _members(raw: Raw | UnsetType) -> dict[str, object]:
    try:
        given = msgspec.json.decode(raw, type=dict[str, object]) if isinstance(raw, Raw) else {}
    except msgspec.DecodeError:
        return {}
    inner = given.get(_INNER)
    return given | inner if isinstance(inner, dict) else given


def _line(command: object, args: object) -> str:
    """A command line, its words quoted where needed; empty if it is none."""
    if isinstance(command, str) and not args:
        return command
    words = [*(command if isinstance(command, list) else [command])]
    words += args if isinstance(args, list) else []
    texts = [word for word in words if isinstance(word, str)]
    return shlex.join(texts) if len(texts) == len(words) else ""
