"""The id of a tool call is found also where a strict reader finds nothing."""

import pytest

from acphost.journal.tool_calls import tool_call_id


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b'{"toolCallId":"t","status":"completed"}', "t"),
        (b'{"toolCallId":"t","rawInput":{"v":NaN}}', "t"),
        (b'{"toolCallId":"t","rawInput":{"\\ud800":1}}', "t"),
        (b'{"toolCallId":"t","title":"\xe9"}', "t"),
        (b'{"rawInput":1}', ""),
        (b"nothing", ""),
    ],
)
def test_the_call_is_found(payload: bytes, expected: str) -> None:
    assert tool_call_id(payload) == expected
