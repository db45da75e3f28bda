"""Lines to messages and back."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.errors import InvalidRequestError, ParseError
from acphost.rpc.codec import (
    Repaired,
    decode_message,
    deserves_answer,
    encode_failure,
    encode_notification,
    encode_request,
    encode_success,
    verbatim_member,
)
from acphost.wire.jsonrpc import ErrorObject, Failure, Notification, Request, Success

Raw = msgspec.Raw
NO_PARAMS = Raw(b"{}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"jsonrpc":"2.0","method":"m"}', Notification("m", NO_PARAMS)),
        (b'{"method":"m","params":{"a":1}}', Notification("m", Raw(b'{"a":1}'))),
        (b'{"jsonrpc":"1.0","method":"m","params":null}', Notification("m", NO_PARAMS)),
        (b'{"id":null,"method":"m"}', Request(None, "m", NO_PARAMS)),
        (b'{"id":0,"method":"m","params":null}', Request(0, "m", NO_PARAMS)),
        (b'{"id":"0","method":"m","params":[]}', Request("0", "m", Raw(b"[]"))),
        (b'{"id":-9223372036854775808,"method":"m"}', Request(-(2**63), "m", NO_PARAMS)),
        (b'{"id":9223372036854775807,"method":"m"}', Request(2**63 - 1, "m", NO_PARAMS)),
        (b'{"id":%d,"method":"m"}' % 10**40, Request(10**40, "m", NO_PARAMS)),
        (b'{"id":1,"result":null}', Success(1, Raw(b"null"))),
        (b'{"id":1,"result":{"a": 1},"error":null}', Success(1, Raw(b'{"a": 1}'))),
        (b'{"id":1,"method":null,"result":[]}', Success(1, Raw(b"[]"))),
        (
            b'{"id":null,"error":{"code":-32700,"message":"p"}}',
            Failure(None, ErrorObject(-32700, "p")),
        ),
        (
            b'{"id":1,"result":null,"error":{"code":1,"message":"x","data":[ 1 ]}}',
            Failure(1, ErrorObject(1, "x", Raw(b"[ 1 ]"))),
        ),
        (b'{"id":2,"method":"m","x":{"y":[1]}} \r', Request(2, "m", NO_PARAMS)),
    ],
)
def test_a_line_is_read_as_what_it_is(line: bytes, message: object) -> None:
    assert decode_message(line) == message


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'[{"id":1,"method":"m"}]',
        b"42",
        b"null",
        b'"text"',
        b"{}",
        b'{"id":1}',
        b'{"id":1,"error":null}',
        b'{"result":{}}',
        b'{"id":true,"method":"m"}',
        b'{"id":1.0,"method":"m"}',
        b'{"id":1e2,"method":"m"}',
        b'{"id":{},"method":"m"}',
        b'{"id":' + b"9" * 5000 + b',"method":"m"}',
        b'{"method":7}',
    ],
)
def test_json_that_is_no_message_is_refused_as_such(line: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        decode_message(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"Loaded cached credentials.",
        b"\xff\xfe",
        b"\x1b[2K",
        b'{"method":"m"',
        b'{"method":"m"}{"method":"m"}',
        b'{"method":"m"} trailing',
        b'{"method":"m","params":}',
        b'{"method":"m","params":{"a":01}}',
        b'{"method":"m","params":{"a":"\\x"}}',
        b'{"method":"m","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"method":"m","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_what_is_not_json_is_refused_as_such(line: bytes) -> None:
    with pytest.raises((ParseError, InvalidRequestError)) as caught:
        decode_message(line)
    assert isinstance(caught.value, ParseError) or line.startswith(b"[")


@pytest.mark.parametrize(
    ("params", "repaired"),
    [
        (b'{"a":"caf\xe9"}', '{"a":"caf\ufffd"}'),
        (b'{"\xff":"\xe2\x82"}', '{"\ufffd":"\ufffd"}'),
        (b'{"a":"\xed\xa0\xbd"}', '{"a":"\ufffd\ufffd\ufffd"}'),
        (rb'{"a":"\ud83d"}', r'{"a":"\ufffd"}'),
        (rb'{"a":"\ude00 b"}', r'{"a":"\ufffd b"}'),
        (rb'{"a":"\ud83d\ud83d\ude00"}', r'{"a":"\ufffd\ud83d\ude00"}'),
        (rb'{"a":"\ude00\ude00"}', r'{"a":"\ufffd\ufffd"}'),
        (rb'{"a":"\\ud83d\ude00"}', r'{"a":"\\ud83d\ufffd"}'),
        (rb'{"a":"\\\ud83d"}', r'{"a":"\\\ufffd"}'),
        (b'{"a":"x\x00y\tz"}', r'{"a":"x\u0000y\u0009z"}'),
        (b'{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN"}', '{"a":null,"b":[null,null],"c":"NaN"}'),
    ],
)
def test_damage_inside_a_message_is_mended_and_told(params: bytes, repaired: str) -> None:
    line = b'{"jsonrpc":"2.0","method":"m","params":' + params + b"}"

    result = decode_message(line)

    assert result == Repaired(Notification("m", Raw(repaired.encode())), line, lossy=True)
    assert verbatim_member(line, "params") == params
    json.loads(repaired)


def test_valid_escapes_are_left_alone_beside_the_damage() -> None:
    kept = rb'"\ud83d\ude00","\u0000","\\u","\""'
    result = decode_message(b'{"method":"m","params":[' + kept + rb',"\ud83d"]}')
    assert isinstance(result, Repaired)
    assert isinstance(result.message, Notification)
    assert bytes(result.message.params) == b"[" + kept + rb',"\ufffd"]'


@pytest.mark.parametrize(
    "noise",
    [
        b"\x1b]0;title\x07",
        b"\x1b]0;title\x1b\\",
        b"\x1b[2K\r",
        b"\x1b[1;31m\x1b[0m",
        b"\x1b[?25l \x1b(B\x1b7",
        b"\x1bP1$r0m\x1b\\",
        b"\xef\xbb\xbf",
        b"\x00\x08",
    ],
)
def test_terminal_escapes_in_front_are_taken_off(noise: bytes) -> None:
    line = b'{"id":1,"result":{}}'
    assert decode_message(noise + line) == Repaired(Success(1, Raw(b"{}")), line, lossy=False)


def test_an_error_of_the_wrong_shape_still_answers_the_request() -> None:
    for error in (b'"no"', b'{"code":"E","message":"x"}', b'{"code":1.5}', b"17"):
        answer = decode_message(b'{"id":1,"error":' + error + b"}")
        assert isinstance(answer, Failure)
        assert answer.id == 1
        assert answer.error.data == Raw(error)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"noise", True),
        (b"[1]", True),
        (b'{"id":1.5,"method":"m"}', True),
        (b'{"id":1.5,"method":"m","result":1}', True),
        (b'{"id":1.5,"result":{}}', False),
        (b'{"id":[],"result":"\\ud800"}', False),
        (b'{"id":1.5,"error":{}}', False),
        (b'{"id":1}', True),
    ],
)
def test_garbage_in_the_shape_of_a_response_deserves_no_answer(line: bytes, expected: bool) -> None:
    assert deserves_answer(line) is expected


def test_a_member_is_found_in_its_exact_bytes() -> None:
    line = (
        b'{"x":{"update":1}, "params" : {"update": 0, "s":"}\\"{", "p":[{"update":2}], "update" : '
        b'{"t":"\xff\\ud800", "n":[1, {"a":NaN}]} , "z":1}}'
    )
    expected = b'{"t":"\xff\\ud800", "n":[1, {"a":NaN}]}'
    assert verbatim_member(line, "params", "update") == expected
    assert verbatim_member(line, "params", "missing") is None
    assert verbatim_member(line, "params", "s", "deeper") is None
    assert verbatim_member(rb'{"p\u0061r":[1]}', "par") == b"[1]"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(), json_values, max_size=4), ascii_only=st.booleans())
def test_every_member_of_any_object_is_found(value: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    for name, expected in value.items():
        found = verbatim_member(text, name)
        assert found is not None
        assert json.loads(found) == expected


pieces = st.sampled_from(
    [
        b'{"jsonrpc":"2.0",',
        b'"method":"m"',
        b'"id":',
        b'"params":',
        b'"result":',
        b'"error":',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"\\ud83d",
        b"\\ude00",
        b"NaN",
        b"-Infinity",
        b"1",
        b"1e999",
        b"null",
        b"\x1b[0m",
        b"\x1b]0;",
        b"\x00",
        b"\xe2\x80",
        b"\xa8",
        b" ",
        b"true",
    ]
)


@given(line=st.binary() | st.lists(pieces).map(b"".join))
def test_no_line_raises_anything_but_our_errors(line: bytes) -> None:
    deserves_answer(line)
    verbatim_member(line, "params", "update")
    try:
        result = decode_message(line)
    except (ParseError, InvalidRequestError):
        return
    message = result.message if isinstance(result, Repaired) else result
    for raw in (getattr(message, "params", None), getattr(message, "result", None)):
        if raw is not None:
            bytes(raw).decode()
            msgspec.json.decode(raw)


@pytest.mark.parametrize(
    "unit",
    [b'"\\', b'\\"', b'"', b"\\ud800", b"\x1b]", b"\x1bP", b"\x01", b"NaN,", b"-", b"\\", b"\xff"],
)
def test_a_hostile_line_takes_time_in_proportion_to_its_length(unit: bytes) -> None:
    """With one pass missing this would run for hours, and the timeout of the test would end it."""
    line = b'{"method":"' + unit * (500_000 // len(unit))
    for text in (line, line[len(b'{"method":"') :]):
        with pytest.raises((ParseError, InvalidRequestError)):
            decode_message(text)
        verbatim_member(text, "method")


@given(
    text=st.text(alphabet=st.characters(codec=None) | st.sampled_from("\u2028\u2029\x85\x1c\n\r\0"))
)
def test_whatever_is_sent_is_one_line_that_reads_back(text: str) -> None:
    lines = [
        encode_request(1, text, {"t": text}),
        encode_notification(text, [text]),
        encode_success(text, {"t": {"u": [text]}}),
        encode_failure(None, ErrorObject(1, text)),
    ]
    for line in lines:
        assert line.endswith(b"\n")
        assert line.decode().splitlines(keepends=True) == [line.decode()]
        assert json.loads(line)["jsonrpc"] == "2.0"
    read = decode_message(lines[3])
    assert isinstance(read, Failure)
    assert read.error.message == text.encode(errors="replace").decode()


def test_raw_json_is_sent_as_it_is_but_on_one_line_of_utf8() -> None:
    raw = Raw(b'{\n  "a": "\xff\xe2\x80\xa8",\r\n "b": 1.50}')
    line = encode_success(7, raw)
    assert (
        line == b'{"jsonrpc":"2.0","id":7,"result":{   "a": "\xef\xbf\xbd\\u2028",\r  "b": 1.50}}\n'
    )


def test_messages_are_written_with_params_and_ids_as_given() -> None:
    assert encode_request(0, "m") == b'{"jsonrpc":"2.0","id":0,"method":"m","params":{}}\n'
    assert encode_notification("n") == b'{"jsonrpc":"2.0","method":"n","params":{}}\n'
    assert encode_success("0", None) == b'{"jsonrpc":"2.0","id":"0","result":null}\n'
    assert (
        encode_failure(None, ErrorObject(-32700, "x", Raw(b"1")))
        == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x","data":1}}\n'
    )


def test_a_file_name_that_is_not_unicode_can_be_told() -> None:
    """`os.fsdecode` makes lone surrogates of bytes that are not UTF-8."""
    error = ErrorObject(1, "no \udce9", Raw(b'{"raw":1}'))
    assert b'"message":"no ?"' in encode_failure(1, error)
    assert encode_success(1, {"path": "\udce9", "raw": Raw(b"[1]"), "n": 1.5}) == (
        b'{"jsonrpc":"2.0","id":1,"result":{"path":"?","raw":[1],"n":1.5}}\n'
    )
