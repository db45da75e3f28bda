"""Lines of a chat endpoint's stream, in all the ways that servers write them."""

import pytest

from acphost.chat.stream import Delta, Finish, Refusal, Text, Thought, Usage, error_text, read_line


@pytest.mark.parametrize(
    ("line", "deltas"),
    [
        ('data: {"choices":[{"delta":{"content":"a"}}]}', [Text("a")]),
        ('data:{"choices":[{"delta":{"content":"a"}}]}', [Text("a")]),
        ('data: {"choices":[{"delta":{"reasoning_content":"b"}}]}', [Thought("b")]),
        (
            'data: {"choices":[{"delta":{"reasoning":"b","content":"c"}}]}',
            [Thought("b"), Text("c")],
        ),
        ('data: {"choices":[{"delta":{},"finish_reason":"length"}]}', [Finish("length")]),
        ('data: {"choices":[],"usage":{"prompt_tokens":3}}', [Usage(prompt_tokens=3)]),
        ('data: {"choices":[{"delta":{"content":""}}],"usage":null,"error":null}', []),
        ('data: {"error":{"message":"too hot"}}', [Refusal("too hot")]),
        ("data: [DONE]", []),
        (": keep-alive", []),
        ("event: ping", []),
        ("", []),
        ("data: not json", []),
    ],
)
def test_a_line_says_what_it_says(line: str, deltas: list[Delta]) -> None:
    assert list(read_line(line)) == deltas


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":{"message":"no such model"}}', "no such model"),
        (b'{"error":"plain words"}', '{"error":"plain words"}'),
        (b'{"message":"at the top"}', "at the top"),
        (b"<html>\n  Bad   Gateway</html>", "<html> Bad Gateway</html>"),
        (b"\xff" * 1000, "\N{REPLACEMENT CHARACTER}" * 300),
    ],
)
def test_an_error_body_is_told_shortly(body: bytes, text: str) -> None:
    assert error_text(body) == text
