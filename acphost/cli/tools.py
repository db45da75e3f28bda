"""Tool calls as one line each."""

from typing import Any

from acphost.cli.screen import Pen, one_line
from acphost.wire.event import Kind

_ENDS = {Kind.TOOL_COMPLETED: ("✓", "green"), Kind.TOOL_FAILED: ("✗", "red")}
#: The agent has left it open.
_UNTOLD = ("?", "yellow")
_UP_AND_CLEAR = "\x1b[1A\x1b[2K"


class ToolLines:
    """On a terminal a call shows as it starts and is struck off; elsewhere it shows as it ends."""

    def __init__(self, pen: Pen) -> None:
        self._pen = pen
        self._titles: dict[str, str] = {}
        #: The call whose line is the last one on the screen, so that it may still be replaced.
        self._last: str | None = None

    def pass_by(self) -> None:
        """Something else was written below."""
        self._last = None

    def show(self, kind: str, payload: dict[str, Any], *, is_known: bool = True) -> None:
        """Show a start or an end; what comes between only adds to what is known.

        Without `is_known` nobody has told how it ended.
        """
        call = str(payload.get("toolCallId"))
        title = payload.get("title") or self._titles.get(call) or payload.get("kind") or "tool"
        self._titles[call] = str(title)
        if kind in _ENDS:
            self._end(call, *(_ENDS[Kind(kind)] if is_known else _UNTOLD))
        elif kind == Kind.TOOL_STARTED and self._pen.is_terminal:
            self._line("▸", call, "cyan")
            self._last = call

    def _end(self, call: str, mark: str, colour: str) -> None:
        if self._last == call:
            self._pen.write(_UP_AND_CLEAR)
            self._pen.at_start = True
        self._line(mark, call, colour)
        self._last = None
        self._titles.pop(call, None)

    def _line(self, mark: str, call: str, colour: str) -> None:
        # Never wider than the terminal: a wrapped line could not be replaced.
        title = one_line(self._titles[call], self._pen.columns - 4)
        self._pen.line(f"  {self._pen.paint(mark, colour)} {title}")
