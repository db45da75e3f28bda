"""The end of an output: so many bytes, whole characters, and told when something is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.workspace.output import OutputTail


def tail(limit: int, *pieces: bytes) -> OutputTail:
    found = OutputTail(limit)
    for piece in pieces:
        found.feed(piece)
    return found


@pytest.mark.parametrize(
    ("limit", "text", "truncated"),
    [(9, "a€😀b", False), (8, "€😀b", True), (7, "😀b", True), (4, "b", True), (0, "", True)],
)
def test_the_front_goes_first_and_no_character_is_cut(
    limit: int, text: str, truncated: bool
) -> None:
    found = tail(limit, "a€😀b".encode())

    assert found.text(whole=True) == text
    assert found.truncated == truncated


def test_the_begin_of_a_character_is_shown_once_the_rest_has_come() -> None:
    euro = "€".encode()
    found = tail(100, b"a", euro[:2])

    assert found.text(whole=False) == "a"
    assert found.text(whole=True) == "a\ufffd"
    found.feed(euro[2:])
    assert found.text(whole=False) == "a€"


def test_what_is_no_text_is_replaced_and_still_fits() -> None:
    found = tail(10, b"\xff" * 10)

    assert found.text(whole=True) == "\ufffd" * 3
    assert found.total == 10


@given(st.integers(0, 64), st.lists(st.text(max_size=20)))
def test_what_is_kept_is_always_the_end(limit: int, pieces: list[str]) -> None:
    found = tail(limit, *(piece.encode() for piece in pieces))
    whole = "".join(pieces)
    text = found.text(whole=True)

    assert whole.endswith(text)
    assert len(text.encode()) <= limit
    assert found.truncated == (text != whole)
    # Not one character more would have fitted.
    longer = whole[len(whole) - len(text) - 1 :]
    assert text == whole or len(longer.encode()) > limit


def test_memory_stays_bounded_however_much_is_said() -> None:
    found = tail(1000, *[b"x" * 500] * 1000)

    assert len(found.text(whole=True)) == 1000
    assert found.total == 500_000
