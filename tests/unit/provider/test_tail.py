"""The end of a stream, kept in bounded memory."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from acphost.provider.tail import MAX_LINE_BYTES, MAX_LINES, Tail


def test_the_last_lines_are_kept() -> None:
    tail = Tail()
    tail.feed(b"".join(b"line %d\n" % n for n in range(200)))
    assert tail.lines() == [f"line {n}" for n in range(200 - MAX_LINES, 200)]
    assert tail.total_lines == 200


def test_an_unfinished_line_counts() -> None:
    tail = Tail()
    tail.feed(b"panic: x")
    assert tail.text() == "panic: x"


def test_bytes_that_are_no_text_are_shown_somehow() -> None:
    tail = Tail()
    tail.feed(b"caf\xe9\r\n")
    assert tail.lines() == ["caf\ufffd"]


@given(st.binary(max_size=5000), st.lists(st.integers(0, 5000), max_size=8))
def test_how_it_is_cut_changes_nothing_that_is_kept(data: bytes, cuts: list[int]) -> None:
    whole, pieces = Tail(), Tail()
    whole.feed(data)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        pieces.feed(data[start:end])
    assert pieces.lines() == whole.lines()
    assert all(len(line.encode()) <= 3 * MAX_LINE_BYTES for line in whole.lines())


def test_what_is_hidden_is_hidden_at_the_cut_too() -> None:
    """A line is cut after a secret has been taken out of it, never in the middle of one."""
    tail = Tail(lambda text: text.replace("secret-value", "***"))
    tail.feed(b"x" * (MAX_LINE_BYTES - 5) + b"secret-value and more\n")
    tail.feed(b"secret-va")
    tail.feed(b"lue")

    first, second = tail.lines()
    assert first == "x" * (MAX_LINE_BYTES - 5) + "*** a"
    assert second == "***"
