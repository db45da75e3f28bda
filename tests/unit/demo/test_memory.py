"""What a fake agent remembers."""

from acphost.demo.expectations import mcp_fault
from acphost.demo.flow import merge
from acphost.demo.memory import Conversation, NoStore, prompt_text, text_chunk
from acphost.demo.tokens import JsonObject

MSG = "agent_message_chunk"


def test_chunks_of_one_kind_are_joined_and_what_is_no_history_is_left_out() -> None:
    talk = Conversation()
    talk.hear("hi")
    updates: list[JsonObject] = [
        text_chunk(MSG, "a"),
        text_chunk(MSG, "b"),
        {"sessionUpdate": "usage_update", "used": 1, "size": 2},
        text_chunk("agent_thought_chunk", "c"),
        {"sessionUpdate": "plan", "entries": []},
        text_chunk(MSG, "d"),
        {"sessionUpdate": MSG, "content": {"type": "image"}},
    ]
    for update in updates:
        talk.say(update)
    assert talk.prompts == ["hi"]
    assert talk.updates == [
        text_chunk("user_message_chunk", "hi"),
        text_chunk(MSG, "ab"),
        text_chunk("agent_thought_chunk", "c"),
        {"sessionUpdate": "plan", "entries": []},
        text_chunk(MSG, "d"),
        {"sessionUpdate": MSG, "content": {"type": "image"}},
    ]


def test_what_is_saved_is_neither_joined_to_nor_forgotten() -> None:
    talk = Conversation()
    talk.hear("hi")
    talk.say(text_chunk(MSG, "a"))
    NoStore().save("s", talk)
    talk.say(text_chunk(MSG, "b"))
    talk.forget()
    talk.say(text_chunk(MSG, "c"))
    texts = [update["content"] for update in talk.updates]
    assert texts == [{"type": "text", "text": text} for text in ("hi", "a", "c")]


def test_the_text_of_a_prompt_is_that_of_its_text_blocks() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image"}, 7, {"type": "text", "text": "b"}]
    assert prompt_text({"prompt": blocks}) == "ab"
    assert prompt_text({"prompt": "x"}) == ""


def test_objects_are_merged_in_depth_and_null_takes_away() -> None:
    base = {"a": {"b": 1, "c": {"d": 2}}, "e": 3, "f": 4}
    assert merge(base, {"a": {"c": {"d": 5}}, "e": None, "f": {"g": 6}}) == {
        "a": {"b": 1, "c": {"d": 5}},
        "f": {"g": 6},
    }
    assert base["e"] == 3


def test_the_place_of_a_fault_in_mcp_servers_is_named() -> None:
    good = {"name": "m", "command": "/m", "args": [], "env": [{"name": "A", "value": "b"}]}
    assert mcp_fault({"mcpServers": [good]}) is None
    assert mcp_fault({"mcpServers": [good, good | {"args": "x"}]}) == (
        "mcpServers[1].args: expected an array"
    )
    assert mcp_fault({"mcpServers": [good | {"env": [{"name": "A"}]}]}) == (
        "mcpServers[0].env: expected objects of name and value"
    )
