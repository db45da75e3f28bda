"""The past in fewer updates: nothing is lost, nothing is told twice."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from acphost.frontdoor.history import History


def told(*updates: Mapping[str, object]) -> list[dict[str, object]]:
    history = History()
    for update in updates:
        history.add(Raw(msgspec.json.encode(update)))
    return [json.loads(bytes(each)) for each in (*history.taken(), *history.latest())]


def chunk(text: str, kind: str = "agent_message_chunk", **more: object) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}


def test_pieces_of_one_message_are_joined() -> None:
    assert told(chunk("a"), chunk("b"), chunk("c", "agent_thought_chunk"), chunk("d")) == [
        chunk("ab"),
        chunk("c", "agent_thought_chunk"),
        chunk("d"),
    ]


def test_messages_with_ids_of_their_own_stay_apart() -> None:
    assert told(
        chunk("a", messageId="1"), chunk("b", messageId="1"), chunk("c", messageId="2")
    ) == [
        chunk("ab", messageId="1"),
        chunk("c", messageId="2"),
    ]


def test_what_says_more_than_its_text_is_told_as_it_was() -> None:
    special = chunk("b", _meta={"x": 1})
    image = {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AA"}}
    assert told(chunk("a"), special, image, chunk("c")) == [chunk("a"), special, image, chunk("c")]


def test_two_prompts_in_a_row_are_two() -> None:
    kind = "user_message_chunk"
    assert told(chunk("a", kind), chunk("b", kind)) == [chunk("a", kind), chunk("b", kind)]


def test_a_call_is_told_once_as_it_ended() -> None:
    begun: dict[str, Any] = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T"}
    begun |= {"content": [{"type": "content", "x": 1}], "x": 1}
    more: dict[str, Any] = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "status": "completed",
    }
    more |= {"title": None, "content": [{"type": "diff"}]}
    assert told(begun, chunk("a"), more) == [
        {**begun, "content": [{"type": "diff"}], "status": "completed"},
        chunk("a"),
    ]


def test_what_is_malformed_in_a_call_changes_nothing() -> None:
    good = {"type": "content", "content": {"type": "text", "text": "a"}}
    begun = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "content": [good]}
    bad = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": 7, "content": "x"}
    some = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [3, good, {}]}
    some |= {"locations": [{"line": 1}, {"path": "/a"}], "rawOutput": "any"}
    assert told(begun, bad) == [begun]
    assert told(begun, bad, some) == [{**begun, "locations": [{"path": "/a"}], "rawOutput": "any"}]
    assert told({**begun, "content": []}, {**some, "content": []})[0]["content"] == []


def test_an_update_of_a_call_that_nobody_announced_announces_it() -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"}
    assert told(update) == [{**update, "sessionUpdate": "tool_call", "title": "c"}]


def test_an_id_that_is_used_again_is_another_call() -> None:
    begun = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "status": "pending"}
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}
    assert [each["status"] for each in told(begun, done, begun)] == ["completed", "pending"]


def test_of_plan_usage_and_commands_the_last_word_counts() -> None:
    first = {"sessionUpdate": "plan", "entries": [1]}
    last = {"sessionUpdate": "plan", "entries": [2]}
    assert told(first, chunk("a"), last) == [chunk("a"), last]
