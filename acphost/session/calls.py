"""The tool calls of a turn: which are open, which is meant, and what is known of each. Pure.

A call is open from its first mention; once it has ended only a new announcement of that id opens
it again, as another occurrence. A call is named by its turn, its id and its occurrence.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw, UnsetType

from acphost.wire.acp import ToolReport
from acphost.wire.event import Kind

_ENDS = frozenset({Kind.TOOL_COMPLETED, Kind.TOOL_FAILED})
#: A longer input, or content, is not remembered: then nobody can tell what the call is about.
REMEMBERED = 65_536
#: Of more calls than this in one turn, what the older ones were about is not remembered either.
FRESH = 1000


class Followed(NamedTuple):
    """An event of a call, as the journal is to have it."""

    kind: str
    #: What the host knows beside the payload; the same object as long as nothing changes.
    host: bytes


class Call:
    """One occurrence of a tool call."""

    __slots__ = ("content", "host", "host_late", "id", "is_known_whole", "key", "kind",
                 "locations", "name", "occurrence", "raw_input", "title")  # fmt: skip

    def __init__(self, turn_id: str, tool_call_id: str, occurrence: int) -> None:
        self.id = tool_call_id
        self.occurrence = occurrence
        self.key = call_key(turn_id, tool_call_id, occurrence)
        told: dict[str, object] = {"toolCallKey": self.key}
        if occurrence > 1:
            told["occurrence"] = occurrence
        self.host = msgspec.json.encode(told)
        #: For what comes after its end.
        self.host_late = msgspec.json.encode({**told, "afterEnd": True})
        self.title: str | None = None
        self.name: str | None = None
        self.kind: str | None = None
        self.raw_input: Raw | None = None
        self.locations: Raw | None = None
        self.content: Raw | None = None
        #: False if something of it was too long to be remembered.
        self.is_known_whole = True

    def learn(self, report: ToolReport) -> None:
        """Take what a report says; what it leaves out, or says null of, stays (guide rule 31)."""
        self.title = report.title or self.title
        self.name = report.name or self.name
        self.kind = report.kind or self.kind
        self.raw_input = self._kept(report.raw_input, self.raw_input)
        self.locations = self._kept_list(report.locations, self.locations)
        self.content = self._kept_list(report.content, self.content)

    def fade(self) -> None:
        """Too many came after it; who is to tell what it is about has to look into the journal."""
        self.is_known_whole = False
        self.forget()

    def forget(self) -> None:
        """It has ended: what it was about is in the journal."""
        self.raw_input = self.locations = self.content = None

    def _kept_list(self, new: Raw | UnsetType, old: Raw | None) -> Raw | None:
        """As `_kept`; what is no list is malformed, and ignored alone (rule 32)."""
        is_list = isinstance(new, Raw) and bytes(new).startswith(b"[")
        return self._kept(new, old) if is_list else old

    def _kept(self, new: Raw | UnsetType, old: Raw | None) -> Raw | None:
        if not isinstance(new, Raw) or bytes(new) == b"null":
            return old
        if len(bytes(new)) > REMEMBERED:
            self.is_known_whole = False
            return None
        # A copy: what was read together lies in one buffer, which would be kept whole.
        return new.copy()


class CallBook:
    """The tool calls of one turn, in the order in which they were first mentioned."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self._calls: dict[str, Call] = {}
        self._open: dict[str, Call] = {}
        self._fresh: deque[Call] = deque()
        self._ended: set[str] = set()
        self._claimed: set[str] = set()

    def __iter__(self) -> Iterator[Call]:
        """The open calls, the oldest first."""
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def follow(self, kind: str, tool_call_id: str, report: ToolReport | None = None) -> Followed:
        """Take an event of a tool call.

        An announcement without a title adds to a call that has ended; it begins no other.
        """
        call = self._calls.get(tool_call_id)
        has_ended = tool_call_id in self._ended
        if has_ended and kind == Kind.TOOL_STARTED and report is not None and not report.title:
            kind = Kind.TOOL_UPDATED
        if call is None or (has_ended and kind == Kind.TOOL_STARTED):
            occurrence = 1 if call is None else call.occurrence + 1
            call = self._calls[tool_call_id] = Call(self._turn_id, tool_call_id, occurrence)
            self._fresh.append(call)
            if len(self._fresh) > FRESH:
                self._fresh.popleft().fade()
            self._ended.discard(tool_call_id)
            has_ended = False
        if report is not None:
            call.learn(report)
        if kind in _ENDS:
            self._open.pop(tool_call_id, None)
            self._ended.add(tool_call_id)
            call.forget()
        elif not has_ended:
            self._open[tool_call_id] = call
        return Followed(kind, call.host_late if has_ended else call.host)

    # -- questions about calls --------------------------------------------------------------------

    def find(self, tool_call_id: str) -> Call | None:
        """The latest occurrence of an id."""
        return self._calls.get(tool_call_id)

    def candidates(self) -> list[Call]:
        """The open calls that no question was found to be about yet, the oldest first."""
        return [call for call in self if call.key not in self._claimed]

    def claim(self, call: Call) -> None:
        """A question is about this call; a second one then is about another."""
        self._claimed.add(call.key)

    def mention(self, tool_call_id: str) -> str:
        """The key of a call, whether or not it was announced."""
        call = self._calls.get(tool_call_id)
        return call.key if call else call_key(self._turn_id, tool_call_id, 1)


def call_key(turn_id: str, tool_call_id: str, occurrence: int) -> str:
    """One text for turn, id and occurrence."""
    return f"{turn_id}/{tool_call_id}/{occurrence}"
