"""What comes in is never nested deeper than every reader can follow."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.errors import ParseError
from acphost.rpc.codec import Repaired, decode_message
from acphost.rpc.nesting import MAX_DEPTH, UNLIMITED, is_too_deep

#: Brackets that are text, one of them behind an escaped quotation mark.
TEXT = json.dumps('[{"' + "[{" * MAX_DEPTH + '\\"').encode()


def nested(levels: int, inner: bytes = b"1") -> bytes:
    """A line of so many levels."""
    return b'{"method":"m","params":' + b"[" * (levels - 1) + inner + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize("inner", [b"1", TEXT, b"[],{}," * 2000 + b"1"])
def test_the_limit_is_exact_whatever_stands_in_texts_and_beside(inner: bytes) -> None:
    most = MAX_DEPTH - 1 if b"{}" in inner else MAX_DEPTH
    assert not is_too_deep(nested(most, inner))
    assert is_too_deep(nested(most + 1, inner))


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 900, 1500, 5_000, 9_000, 100_000])
@pytest.mark.parametrize("damage", [b"", b"\xff"])
def test_a_line_that_is_too_deep_is_refused_on_every_python(levels: int, damage: bytes) -> None:
    """Some could read it and some could not: it is taken nowhere, so that all see the same."""
    with pytest.raises(ParseError, match="nested too deeply"):
        decode_message(nested(levels, b'"' + damage + b'"'))


def test_what_is_just_deep_enough_can_be_told_to_clients() -> None:
    """An event stands in a frame, some levels deeper than it came in."""
    assert not isinstance(decode_message(nested(MAX_DEPTH)), Repaired)
    frame = nested(MAX_DEPTH).replace(b'{"method"', b'{"x":' * 5 + b'{"method"') + b"}" * 5
    decode_message(b'{"method":"m","params":' + frame + b"}", UNLIMITED)
    json.loads(frame)


VALUES = st.recursive(
    st.text('[]{}\\"a') | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\'), inner, max_size=3)
    ),
)


def depth(value: object) -> int:
    """The slow and obvious way."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(depth, inner), default=0) + isinstance(value, dict | list)


@given(VALUES, st.integers(1, 6))
def test_levels_are_counted_as_a_reader_would(value: object, most: int) -> None:
    line = json.dumps(value).encode()
    assert is_too_deep(b" " * 20 + line, most) == (depth(value) > most)
