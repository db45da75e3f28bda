"""What an agent's update means."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from acphost.session import updates
from acphost.session.updates import Matter, text_of

TEXT = {"type": "text", "text": "a"}

MEANINGS = [
    ({"sessionUpdate": "agent_message_chunk", "content": TEXT}, "message.delta", Matter.CONTENT),
    ({"sessionUpdate": "agent_thought_chunk", "content": TEXT}, "thought.delta", Matter.CONTENT),
    ({"sessionUpdate": "user_message_chunk", "content": TEXT}, "evidence", Matter.CONTENT),
    ({"sessionUpdate": "plan", "entries": []}, "plan.updated", Matter.CONTENT),
    ({"sessionUpdate": "plan"}, "plan.updated", Matter.CONTENT),
    ({"sessionUpdate": "tool_call", "toolCallId": "c"}, "tool.started", Matter.TOOL),
    ({"sessionUpdate": "tool_call_update", "toolCallId": "c"}, "tool.updated", Matter.TOOL),
    (
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"},
        "tool.completed",
        Matter.TOOL,
    ),
    (
        {"sessionUpdate": "tool_call", "toolCallId": "c", "status": "failed"},
        "tool.failed",
        Matter.TOOL,
    ),
    ({"sessionUpdate": "usage_update", "used": 1}, "usage.updated", Matter.SESSION),
    (
        {"sessionUpdate": "available_commands_update"},
        "session.commands.updated",
        Matter.SESSION,
    ),
    ({"sessionUpdate": "current_mode_update"}, "session.mode.updated", Matter.SESSION),
    ({"sessionUpdate": "config_option_update"}, "session.config.updated", Matter.SESSION),
    ({"sessionUpdate": "session_info_update"}, "session.info.updated", Matter.SESSION),
    ({"sessionUpdate": "future_kind"}, "evidence", Matter.EVIDENCE),
    ({"sessionUpdate": "agent_message_chunk"}, "evidence", Matter.EVIDENCE),
    ({"sessionUpdate": "agent_message_chunk", "content": None}, "evidence", Matter.EVIDENCE),
    ({"sessionUpdate": "agent_message_chunk", "content": "a"}, "evidence", Matter.EVIDENCE),
    ({"sessionUpdate": "tool_call"}, "evidence", Matter.EVIDENCE),
    ({"sessionUpdate": "tool_call", "toolCallId": 5}, "evidence", Matter.EVIDENCE),
    ({"sessionUpdate": 5}, "evidence", Matter.EVIDENCE),
    ({}, "evidence", Matter.EVIDENCE),
    ("no object", "evidence", Matter.EVIDENCE),
    (None, "evidence", Matter.EVIDENCE),
    ([1], "evidence", Matter.EVIDENCE),
]


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


@pytest.mark.parametrize(("update", "kind", "matter"), MEANINGS)
def test_each_kind_has_its_meaning(update: object, kind: str, matter: Matter) -> None:
    ((_, meaning, alike),) = updates.read([raw(update)])
    assert (meaning.kind, meaning.matter) == (kind, matter)
    assert list(alike) == [raw(update)]


@given(st.lists(st.sampled_from([update for update, _, _ in MEANINGS]), min_size=1, max_size=40))
def test_read_together_they_mean_what_they_mean_alone(some: list[object]) -> None:
    """How many are read at a time changes neither their order nor what they mean."""
    together = [
        (tag, meaning, update)
        for tag, meaning, alike in updates.read([raw(each) for each in some])
        for update in alike
    ]
    alone = [
        (tag, meaning, update)
        for each in some
        for tag, meaning, alike in updates.read([raw(each)])
        for update in alike
    ]
    assert together == alone


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)
TAGS = st.sampled_from([*{u["sessionUpdate"] for u, _, _ in MEANINGS if isinstance(u, dict) and u}])
ODD = st.builds(
    lambda tag, more: {**more, "sessionUpdate": tag},
    TAGS | JSON,
    st.dictionaries(st.sampled_from(["content", "toolCallId", "status", "x"]), JSON),
)


@given(st.lists(JSON | ODD, max_size=4))
def test_nothing_is_too_odd(some: list[object]) -> None:
    """Whatever JSON stands in an update's place means something, and all of it comes back."""
    raws = [raw(value) for value in some]
    kept = [update for _, _, alike in updates.read(raws) for update in alike] if raws else []
    assert kept == raws


def test_unknown_fields_and_content_harm_nothing() -> None:
    odd = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "hologram", "depth": [1]},
        "_meta": {"x": None},
        "more": 1,
    }
    ((_, meaning, _),) = updates.read([raw(odd)])
    assert meaning.kind == "message.delta"


@pytest.mark.parametrize(
    ("update", "text"),
    [
        ({"content": TEXT}, "a"),
        ({"content": {"type": "image", "data": ""}}, ""),
        ({"content": {"type": "text", "text": 5}}, ""),
        ({}, ""),
        (5, ""),
    ],
)
def test_the_text_of_a_chunk(update: object, text: str) -> None:
    assert text_of(raw(update)) == text
