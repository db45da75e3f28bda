"""Writing for people: colours where a terminal wants them, plain text elsewhere."""

import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import environ as process_environ
from typing import TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
#: Control characters of an agent's text may not steer the terminal; tab and newline may stay.
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")
#: Neither may they turn the direction of the text around them, so that it reads as another.
_CONTROLS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_VISIBLE = {key: value for key, value in _CONTROLS.items() if key not in (9, 10)}
_VISIBLE[13] = ""  # a carriage return would let the line before it disappear
_FALLBACK_COLUMNS = 100
_UNLIMITED = 1 << 20


class Pen:
    """Writes to one stream, and knows whether it stands at the start of a line."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str] = process_environ) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.has_colour = (
            self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        )
        self.at_start = True

    def paint(self, text: str, *styles: str) -> str:
        """`text` in styles, or as it is where there are no colours."""
        if not self.has_colour or not text or not styles:
            return text
        codes = ";".join(_STYLES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def write(self, text: str, *styles: str) -> None:
        """Write and show at once: whoever watches a stream does not want it in blocks."""
        if not text:
            return
        self.at_start = text.endswith("\n")
        self.stream.write(self.paint(text, *styles))
        self.stream.flush()

    def line(self, text: str = "", *styles: str) -> None:
        """Write one line, on a line of its own."""
        self.fresh()
        self.write(self.paint(text, *styles) + "\n")

    def fresh(self) -> None:
        """End the line that was begun, if one was."""
        if not self.at_start:
            self.write("\n")

    def safe(self, text: str) -> str:
        """Text of a stranger: harmless on a terminal, and in what a terminal may show later.

        `--json` is for programs: there it is exact.
        """
        return text.translate(_VISIBLE)

    @property
    def columns(self) -> int:
        """How wide a line may be; where there is no terminal, nothing is cut."""
        return self.width if self.is_terminal else _UNLIMITED

    @property
    def width(self) -> int:
        """How wide a table is to be, also where there is no terminal."""
        if not self.is_terminal:
            return _FALLBACK_COLUMNS
        return shutil.get_terminal_size((_FALLBACK_COLUMNS, 24)).columns


def out() -> Pen:
    """Where results go."""
    return Pen(sys.stdout)


def err() -> Pen:
    """Where everything goes that is not the result."""
    return Pen(sys.stderr)


def one_line(text: str, width: int) -> str:
    """The text as a single line of at most `width` cells."""
    flat = " ".join(text.translate(_CONTROLS | {9: " ", 10: " ", 13: " "}).split())
    return flat if _cells(flat) <= width else _cut(flat, width - 1) + "…"


def plain(text: str) -> str:
    """The text without anything that would move the cursor: what it shows is what it is."""
    return text.translate(_CONTROLS)


def shortened(path: str, width: int) -> str:
    """A path of at most `width` cells; its end tells more than its begin."""
    path = plain(path)
    return path if _cells(path) <= width else "…" + _cut(path[::-1], width - 1)[::-1]


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], columns: int = _UNLIMITED
) -> list[str]:
    """Lines of aligned columns; the last one is not padded, but cut to the room there is.

    Each row is one line and steers nothing, whatever is in its cells.
    """
    rows = [[plain(cell) for cell in row[:-1]] + [row[-1]] for row in rows]
    widths = [max(_cells(row[i]) for row in (head, *rows)) for i in range(len(head))]
    rest = max(10, columns - sum(widths[:-1]) - 2 * len(widths[:-1]))
    rows = [[*row[:-1], one_line(row[-1], rest)] for row in rows]
    widths[-1] = 0
    return [
        "  ".join(
            cell + " " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True)
        )
        for row in (head, *rows)
    ]


def age(moment: str, now: datetime | None = None) -> str:
    """How long ago a time of the wire was, in one unit."""
    then = datetime.fromisoformat(moment)
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def short(identifier: str) -> str:
    """The end of an id, which tells it apart: ids begin with the time they were made."""
    return identifier[-8:]


def _cells(text: str) -> int:
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += _cell(char)
        if used > width:
            return text[:index]
    return text
