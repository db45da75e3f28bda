"""Which tool calls of a turn are still open. Pure."""

from collections.abc import Iterator

from acphost.wire.event import Kind

_ENDS = frozenset({Kind.TOOL_COMPLETED, Kind.TOOL_FAILED})


class OpenCalls:
    """A call is open from its first mention; once ended, only a new announcement opens it again."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._ended: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        """The ids of open calls, the oldest first."""
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def follow(self, kind: str, tool_call_id: str) -> None:
        """Take an event of a tool call."""
        if kind in _ENDS:
            self._open.pop(tool_call_id, None)
            self._ended.add(tool_call_id)
        elif kind == Kind.TOOL_STARTED or tool_call_id not in self._ended:
            self._open[tool_call_id] = None
