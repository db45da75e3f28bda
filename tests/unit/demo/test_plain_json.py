"""The fake agent's JSON says and refuses what the host's own does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.demo import plain_json

_TEXTS = [
    b'{"a":1,"a":2}', b' {"a": [true,null]} ', b"-0", b"1.0", b"1E5", b"12345678901234567890123",
    b'"\\ud83d\\ude00"', b'"\\/"', b'"\\u0000"',
]  # fmt: skip
_NO_JSON = [
    b"", b"{} x", b"[1,]", b"01", b"NaN", b'{"a":NaN}', b"-Infinity", b"1e400", b'"\xff"',
    b'\xff\xfe{\x00', b'"\\ud800"', b'"\\uD800x"', b'"a\x01b"', b"\xef\xbb\xbf{}",
]  # fmt: skip
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("text", _TEXTS)
def test_it_reads_what_the_host_reads(text: bytes) -> None:
    assert plain_json.decode(text) == msgspec.json.decode(text)


@pytest.mark.parametrize("text", _NO_JSON)
def test_it_refuses_what_the_host_refuses(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(text)
    with pytest.raises(ValueError):  # noqa: PT011  whichever: of JSON, or of UTF-8
        plain_json.decode(text)


@given(_VALUES)
def test_it_writes_what_the_host_writes(value: object) -> None:
    assert plain_json.encode(value) == msgspec.json.encode(value)
    assert plain_json.decode(plain_json.encode(value)) == value


@pytest.mark.parametrize("value", [float("nan"), "\ud800"])
def test_it_writes_nothing_that_is_no_json(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whichever: of JSON, or of UTF-8
        plain_json.encode(value)
