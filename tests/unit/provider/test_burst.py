"""Lines read together mean what they mean one by one, or are not read together."""

import json
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.errors import InvalidRequestError, ParseError
from acphost.provider.burst import read_updates
from acphost.rpc.codec import decode_message
from acphost.wire.acp import SessionUpdate
from acphost.wire.jsonrpc import Notification


def line(**changes: object) -> bytes:
    """An update, or what `changes` make of it."""
    params = {"sessionId": "s", "update": {"sessionUpdate": "plan", "text": "é\\u2028 a\nb"}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params} | changes
    return json.dumps(message, ensure_ascii=False).encode()


GOOD = line()
DEEP = GOOD.replace(b'"plan"', b"[" * 5000 + b"]" * 5000)


def told(updates: Sequence[SessionUpdate] | None) -> list[tuple[str, bytes]] | None:
    """As plain values."""
    if updates is None:
        return None
    return [(update.session_id, bytes(update.update)) for update in updates]


def one_by_one(lines: Sequence[bytes]) -> list[tuple[str, bytes]] | None:
    """The same by the general way; None if any of them is something else."""
    found = []
    for each in lines:
        try:
            message = decode_message(each)
            assert isinstance(message, Notification)
            assert message.method == "session/update"
            update = msgspec.json.decode(message.params, type=SessionUpdate)
        except (ParseError, InvalidRequestError, AssertionError, msgspec.DecodeError):
            return None
        found.append((update.session_id, bytes(update.update)))
    return found


def test_updates_are_read_together() -> None:
    other = line(params={"sessionId": "t", "update": [1, 2]}, _meta={"a": 1})

    assert told(read_updates([GOOD, other])) == [
        ("s", json.dumps(json.loads(GOOD)["params"]["update"], ensure_ascii=False).encode()),
        ("t", b"[1, 2]"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        line(id=1),
        line(id=None),
        line(method="session/updates"),
        line(method=None),
        line(params=None),
        line(params={"sessionId": 5, "update": {}}),
        line(params={"sessionId": "s"}),
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b"log: {}",
        b"[" + GOOD + b"]",
        GOOD + GOOD,
        GOOD[:-1],
        b"\xef\xbb\xbf" + GOOD,
        b"\x1b[2J" + GOOD,
        GOOD.replace("é".encode(), b"\xe9"),
        GOOD.replace("é".encode(), b"\\ud83d"),
        GOOD.replace(b'"plan"', b"NaN"),
        DEEP,
    ],
)
def test_with_anything_else_among_them_they_are_not(other: bytes) -> None:
    assert read_updates([other]) is None
    assert read_updates([GOOD, other, GOOD]) is None


def test_no_value_reaches_over_a_line() -> None:
    """White space between tokens may be a newline in JSON, but here it ends a message."""
    at = GOOD.index(b',"') if b',"' in GOOD else GOOD.index(b', "')
    halves = [GOOD[: at + 1], GOOD[at + 1 :]]

    assert read_updates(halves) is None
    assert read_updates([GOOD + GOOD, *halves]) is None


_PIECES = st.sampled_from([GOOD, line(id=1), b"{", b"}", b"{}", b"noise", GOOD + b" ", b" " + GOOD])


@given(st.lists(_PIECES | st.binary(max_size=4), max_size=6))
def test_what_is_read_together_is_what_is_read_one_by_one(pieces: list[bytes]) -> None:
    lines = [piece.replace(b"\n", b"") for piece in pieces]

    found = told(read_updates(lines))

    assert found is None or found == one_by_one(lines)
