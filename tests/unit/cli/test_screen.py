"""Text for people: widths, colours, and nothing that steers a terminal."""

from datetime import UTC, datetime
from io import StringIO

import pytest

from acphost.cli.screen import Pen, age, one_line, short, table


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_no_colours_and_nothing_that_could_steer_a_terminal_later() -> None:
    stream = StringIO()
    pen = Pen(stream, {})
    pen.write(pen.safe("a\x1b[2Jb\tc\nd"), "red")
    assert stream.getvalue() == "a\ufffd[2Jb\tc\nd"


@pytest.mark.parametrize("turn", ["\u202e", "\u202a", "\u2066", "\u2069"])
def test_nobody_turns_the_direction_of_the_text_around_his_own(turn: str) -> None:
    """A file name that reads as another one; right-to-left letters themselves stay."""
    pen = Pen(StringIO(), {})
    assert pen.safe(f"photo{turn}gpj.exe \u05d0") == "photo\ufffdgpj.exe \u05d0"
    assert one_line(f"a{turn}b", 80) == "a\ufffdb"


def test_the_last_column_takes_the_room_there_is() -> None:
    lines = table(("ID", "WHY"), [("1", "x" * 200), ("2", "short")], 40)
    assert max(map(len, lines)) == 40
    assert lines[1].endswith("…")
    assert lines[2] == "2   short"


def test_a_terminal_gets_colours_and_no_strange_control_characters() -> None:
    stream = Terminal()
    pen = Pen(stream, {"TERM": "xterm"})
    pen.line(pen.safe("a\x1b[2Jb\r\n\tc\x9b"), "red")
    assert stream.getvalue() == "\x1b[31ma�[2Jb\n\tc�\x1b[0m\n"


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(environ: dict[str, str]) -> None:
    stream = Terminal()
    Pen(stream, environ).line("text", "bold")
    assert stream.getvalue() == "text\n"


def test_a_line_begins_on_a_line_of_its_own() -> None:
    stream = StringIO()
    pen = Pen(stream, {})
    pen.write("begun")
    pen.line("next")
    pen.line("after")
    assert stream.getvalue() == "begun\nnext\nafter\n"


def test_columns_align_by_cells_not_by_characters() -> None:
    assert table(("ID", "NAME", "X"), [("日本", "a", "long text"), ("b", "ccccc", "")]) == [
        "ID    NAME   X",
        "日本  a      long text",
        "b     ccccc  ",
    ]


def test_a_long_text_is_cut_to_its_width() -> None:
    assert one_line("one\ntwo\tthree", 80) == "one two three"
    assert one_line("abcdefgh", 5) == "abcd…"
    assert one_line("日本語日本語", 7) == "日本語…"


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("2026-01-02T00:00:00.000Z", "0s ago"),
        ("2026-01-01T23:59:01.000Z", "59s ago"),
        ("2026-01-01T23:00:00.000Z", "1h ago"),
        ("2025-12-30T00:00:00.000Z", "3d ago"),
        ("2026-01-03T00:00:00.000Z", "0s ago"),  # a clock that is ahead
    ],
)
def test_age_is_said_in_one_unit(moment: str, said: str) -> None:
    assert age(moment, datetime(2026, 1, 2, tzinfo=UTC)) == said


def test_a_short_id_is_the_end_of_it() -> None:
    assert short("sess_0190aaaabbbb0123456789abcdef") == "89abcdef"
