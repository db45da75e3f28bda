"""Which tool calls are open."""

from acphost.session.calls import OpenCalls
from acphost.wire.event import Kind


def test_a_call_is_open_from_its_first_mention_to_its_end() -> None:
    calls = OpenCalls()
    calls.follow(Kind.TOOL_STARTED, "a")
    calls.follow(Kind.TOOL_UPDATED, "b")
    assert list(calls) == ["a", "b"]
    calls.follow(Kind.TOOL_COMPLETED, "a")
    calls.follow(Kind.TOOL_FAILED, "b")
    assert list(calls) == []


def test_an_ended_call_stays_ended_until_it_is_announced_again() -> None:
    calls = OpenCalls()
    calls.follow(Kind.TOOL_COMPLETED, "a")
    calls.follow(Kind.TOOL_UPDATED, "a")
    assert len(calls) == 0
    calls.follow(Kind.TOOL_STARTED, "a")
    assert list(calls) == ["a"]


def test_announced_twice_it_is_one_call() -> None:
    calls = OpenCalls()
    calls.follow(Kind.TOOL_STARTED, "a")
    calls.follow(Kind.TOOL_STARTED, "a")
    assert len(calls) == 1
