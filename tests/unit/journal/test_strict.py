"""`classify` against a strict reader built from the standard library."""

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from acphost.journal.strict import LOSSY, classify, repaired

characters = st.characters(exclude_categories=())
fragments = st.sampled_from(
    ("NaN", "Infinity", "\\", '"', "\\u", "\ud800", "\udc00", "\U0001f600", "I", "N")
)
texts = st.lists(fragments | characters, max_size=6).map("".join)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def refuse(constant: str) -> None:
    raise ValueError(constant)


def is_strict(payload: bytes) -> bool:
    """Whether a reader that follows the letter of the standards takes it."""
    try:
        value = json.loads(payload.decode(), parse_constant=refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:  # and with it the errors of Unicode
        return False
    return True


def is_tolerable(payload: bytes) -> bool:
    """Whether it is one JSON value at all, by the measure of the most lenient reader."""
    try:
        json.loads(payload.decode("utf-8", "surrogateescape"))
    except ValueError:
        return False
    return True


@given(documents, st.booleans())
def test_it_finds_what_a_strict_reader_refuses(document: object, ascii_only: bool) -> None:
    payload = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    assert classify(payload) == (0 if is_strict(payload) else LOSSY)


@given(st.text(max_size=8), st.binary(min_size=1, max_size=3), st.text(max_size=8))
@example("", b"\xc0\x80", "")
@example("", b"\xf5\x80\x80\x80", "")
def test_it_finds_broken_bytes_inside_strings(before: str, broken: bytes, after: str) -> None:
    payload = b'{"text":"%b"}' % (before.encode() + broken + after.encode())
    assume(is_tolerable(payload))

    assert classify(payload) == (0 if is_strict(payload) else LOSSY)


@pytest.mark.parametrize(
    ("payload", "flags"),
    [
        (b'"\\ud83d\\ude00"', 0),
        (b'"\\uD83D\\uDE00"', 0),
        (b'"\\\\ud800"', 0),
        (b'"\\\\\\ud800"', LOSSY),
        (b'"\\ud800\\ud800\\udc00"', LOSSY),
        (b'"\\udc00\\ud800"', LOSSY),
        (b'"\\u0000\\uffff"', 0),
        (b'"NaN Infinity \\" NaN"', 0),
        (b'{"NaN":NaN}', LOSSY),
        (b"[-Infinity]", LOSSY),
        (b"1e999", 0),
        ('"\u2028"'.encode(), 0),
        (b'"\xed\xa0\x80"', LOSSY),
    ],
)
def test_it_tells_look_alikes_apart(payload: bytes, flags: int) -> None:
    assert classify(payload) == flags


@given(documents, st.booleans())
def test_a_repaired_copy_is_strict(document: object, ascii_only: bool) -> None:
    payload = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    assert is_strict(repaired(payload))


@given(st.binary())
def test_anything_at_all_can_be_repaired(payload: bytes) -> None:
    assert is_strict(repaired(payload))


def test_a_long_string_is_looked_at_in_linear_time() -> None:
    payload = b'"' + b"\\u0041\\\\" * 500_000 + b'"'

    assert classify(payload) == 0
