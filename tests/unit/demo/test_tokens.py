"""Lines, tokens and variables of fake-agent scripts."""

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.demo.tokens import ScriptError, Token, read_lines


def one(text: str) -> tuple[list[Token], Mapping[str, Token]]:
    (line,) = read_lines(text, "x")
    return list(line.tokens), line.options


def text_of(written: str, **values: str) -> str:
    tokens, _ = one(f"MSG {written}")
    return tokens[1].text(lambda name: values.get(name, ""))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("plain", "plain"),
        ('"two words"', "two words"),
        ("'he said \"no\"'", 'he said "no"'),
        (r'"a\tb\n\u20ac\xe9\0\e"', "a\tb\n€é\0\x1b"),
        (r'"\d+ \"q\" \\ \$A"', r'\d+ "q" \ $A'),
        ('status:"Look around"', "status:Look around"),
        ("${A}-${B}", "1-"),
        ('"${A} and ${B:-two}"', "1 and two"),
        (r'"\${A}"', "${A}"),
        ("'$5 for $PROMPT'", "$5 for hi"),
        ('""', ""),
    ],
)
def test_texts(written: str, text: str) -> None:
    assert text_of(written, A="1", PROMPT="hi") == text


def test_a_byte_escape_is_one_byte_where_bytes_are_meant() -> None:
    tokens, _ = one(r'RAW "\xe9\xff€"')
    assert tokens[1].raw(str) == b"\xe9\xff\xe2\x82\xac"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("7", 7),
        ('"7"', "7"),
        ("null", None),
        ("true", True),
        ("word", "word"),
        ("${#N}", 3),
        ("${#NOTHING}", 0),
        (
            '{"a": "${#N}", "b": ["${N}", "x${N}", 1.5, null]}',
            {"a": 3, "b": ["3", "x3", 1.5, None]},
        ),
    ],
)
def test_values(written: str, value: object) -> None:
    tokens, _ = one(f"ANSWER {written}")
    assert tokens[1].value({"N": "3"}.get) == value  # type: ignore[arg-type]  # no name is missing


def test_options_and_arguments_stand_in_any_order_and_json_goes_over_lines() -> None:
    tokens, options = one('CALL c1 title="A b" rawInput={\n  "x": "}"\n} pending  # ignored')
    assert [token.plain() for token in tokens] == ["CALL", "c1", "pending"]
    assert options["title"].plain() == "A b"
    assert options["rawInput"].json == {"x": "}"}


def test_comments_blank_lines_and_indents() -> None:
    lines = list(read_lines("# c\n\nON prompt\n    MSG #x\r\n  # d\n", "x"))
    assert [(line.number, line.indent, len(line.tokens)) for line in lines] == [
        (3, 0, 2),
        (4, 4, 1),
    ]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('MSG "open', 'x:1: a text is not closed with "'),
        ("\nSEND {", "x:2: a JSON value is not closed"),
        ("SEND {1}", "x:1: not JSON"),
        ("\tMSG a", "x:1: indent with spaces, not with tabs"),
        (r'MSG "\xzz"', r"x:1: \xzz is not an escape"),
        (r'MSG "\ud800"', "x:1: half a surrogate pair"),
        ("UPD a b=1 b=2", "x:1: b= is given twice"),
    ],
)
def test_mistakes_name_the_line(script: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        list(read_lines(script, "x"))
    assert str(caught.value).startswith(message)


@given(st.text())
def test_any_text_is_read_or_refused_as_a_script_error(text: str) -> None:
    with suppress(ScriptError):
        list(read_lines(text, "x"))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="$\n\r")))
def test_a_quoted_text_comes_out_as_it_went_in(text: str) -> None:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    assert text_of(f'"{escaped}"') == text
