"""Which tool calls are open, and how they are told apart."""

import json

from msgspec import Raw

from acphost.session.calls import FRESH, REMEMBERED, CallBook
from acphost.wire.acp import ToolReport
from acphost.wire.event import Kind


def test_a_call_is_open_from_its_first_mention_to_its_end() -> None:
    calls = CallBook("run_1")
    calls.follow(Kind.TOOL_STARTED, "a")
    calls.follow(Kind.TOOL_UPDATED, "b")
    assert [call.id for call in calls] == ["a", "b"]
    calls.follow(Kind.TOOL_COMPLETED, "a")
    calls.follow(Kind.TOOL_FAILED, "b")
    assert list(calls) == []


def test_an_ended_call_stays_ended_until_it_is_announced_again() -> None:
    calls = CallBook("run_1")
    calls.follow(Kind.TOOL_COMPLETED, "a")
    calls.follow(Kind.TOOL_UPDATED, "a")
    assert len(calls) == 0
    calls.follow(Kind.TOOL_STARTED, "a")
    assert [call.id for call in calls] == ["a"]


def test_announced_twice_it_is_one_call() -> None:
    calls = CallBook("run_1")
    calls.follow(Kind.TOOL_STARTED, "a")
    calls.follow(Kind.TOOL_STARTED, "a")
    assert len(calls) == 1


def test_an_id_that_is_used_again_is_another_occurrence() -> None:
    calls = CallBook("run_1")
    first = calls.follow(Kind.TOOL_STARTED, "a", ToolReport(tool_call_id="a", title="one"))
    calls.follow(Kind.TOOL_COMPLETED, "a")
    second = calls.follow(Kind.TOOL_STARTED, "a", ToolReport(tool_call_id="a", title="two"))
    assert json.loads(first.host) == {"toolCallKey": "run_1/a/1"}
    assert json.loads(second.host) == {"toolCallKey": "run_1/a/2", "occurrence": 2}


def test_what_comes_after_the_end_opens_nothing_again_and_is_marked() -> None:
    """A status that goes back, and an announcement that only adds to the call."""
    calls = CallBook("run_1")
    calls.follow(Kind.TOOL_COMPLETED, "a")
    back = calls.follow(Kind.TOOL_UPDATED, "a", ToolReport(tool_call_id="a"))
    more = calls.follow(Kind.TOOL_STARTED, "a", ToolReport(tool_call_id="a"))
    assert len(calls) == 0
    assert (back.kind, more.kind) == (Kind.TOOL_UPDATED, Kind.TOOL_UPDATED)
    assert json.loads(more.host) == {"toolCallKey": "run_1/a/1", "afterEnd": True}


def test_what_is_left_out_or_null_stays() -> None:
    calls = CallBook("run_1")
    told = ToolReport(tool_call_id="a", title="Edit", kind="edit", raw_input=Raw(b'{"path":"x"}'))
    calls.follow(Kind.TOOL_STARTED, "a", told)
    partial = ToolReport(tool_call_id="a", title=None, raw_input=Raw(b"null"))
    calls.follow(Kind.TOOL_UPDATED, "a", partial)
    call = calls.find("a")
    assert call is not None
    assert (call.title, call.kind) == ("Edit", "edit")
    assert bytes(call.raw_input or b"") == b'{"path":"x"}'


def test_a_very_long_input_is_not_kept_and_known_to_be_missing() -> None:
    calls = CallBook("run_1")
    long = Raw(b'"%b"' % (b"x" * REMEMBERED))
    calls.follow(Kind.TOOL_STARTED, "a", ToolReport(tool_call_id="a", title="t", raw_input=long))
    call = calls.find("a")
    assert call is not None
    assert call.raw_input is None
    assert not call.is_known_whole


def test_the_same_object_as_long_as_nothing_changes() -> None:
    """The journal keeps what is alike together by identity."""
    calls = CallBook("run_1")
    first = calls.follow(Kind.TOOL_STARTED, "a", ToolReport(tool_call_id="a", title="t"))
    second = calls.follow(Kind.TOOL_UPDATED, "a")
    assert first.host is second.host


def test_of_very_many_calls_the_older_ones_fade() -> None:
    """Each is still open and has its key; what it was about is not remembered without end."""
    book = CallBook("t")
    for number in range(FRESH + 5):
        report = ToolReport(tool_call_id=f"c{number}", title="T", raw_input=Raw(b'{"command":"x"}'))
        book.follow(Kind.TOOL_STARTED, report.tool_call_id, report)

    first, last = book.find("c0"), book.find(f"c{FRESH + 4}")
    assert first is not None
    assert last is not None
    assert len(book) == FRESH + 5
    assert (first.raw_input, first.is_known_whole, first.title) == (None, False, "T")
    assert (last.raw_input, last.is_known_whole) == (Raw(b'{"command":"x"}'), True)
