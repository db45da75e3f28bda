"""Events as a person reads them."""

from io import StringIO

import msgspec
import pytest

from acphost.cli.render import Renderer, how_to_answer, question_of
from acphost.cli.screen import Pen
from acphost.wire.event import Event, Kind


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def event(kind: str, payload: object = None) -> Event:
    return Event(
        schema="mnote.ai_run_event.v1",
        offset="0",
        session_id="s",
        seq="0",
        host_run_id="r",
        kind=kind,
        source="acp",
        created_at="2026-01-01T00:00:00.000Z",
        payload=msgspec.Raw(msgspec.json.encode({} if payload is None else payload)),
    )


def text(kind: str, words: str) -> Event:
    return event(kind, {"content": {"type": "text", "text": words}})


def shown(*events: Event) -> tuple[str, str]:
    """What is written for `events` to two pipes: the answer, and all else."""
    answer, aside = StringIO(), StringIO()
    renderer = Renderer(Pen(answer, {}), Pen(aside, {}))
    for each in events:
        renderer.show(each)
    renderer.finish()
    return answer.getvalue(), aside.getvalue()


def test_a_piped_answer_holds_the_agents_words_and_nothing_else() -> None:
    assert shown(
        event("run.started"),
        event("message.user", {"content": [{"type": "text", "text": "hi"}]}),
        text("thought.delta", "let me "),
        text("thought.delta", "think"),
        text("message.delta", "Hel"),
        text("message.delta", "lo"),
        event("run.completed", {"stopReason": "end_turn"}),
    ) == ("Hello\n", "> hi\nthought: let me think\n")


def test_a_plan_is_shown_once_and_then_by_what_moved() -> None:
    def plan(first: str, second: str) -> Event:
        return event(
            "plan.updated",
            {
                "entries": [
                    {"content": "one", "status": first},
                    {"content": "two", "status": second},
                ]
            },
        )

    assert shown(
        plan("in_progress", "pending"), plan("completed", "pending"), plan("completed", "completed")
    ) == ("", "  ▸ one\n  · two\n  ✓ one\n  ✓ two\n")


def test_a_tool_call_is_one_line_with_the_title_it_had_last() -> None:
    assert shown(
        event("tool.started", {"toolCallId": "a", "title": "Read x", "kind": "read"}),
        event("tool.updated", {"toolCallId": "a", "title": "Read x.md"}),
        event("tool.completed", {"toolCallId": "a", "status": "completed"}),
        event("tool.failed", {"toolCallId": "b", "kind": "execute"}),
    ) == ("", "  ✓ Read x.md\n  ✗ execute\n")


def test_a_call_that_was_left_open_is_not_said_to_have_failed() -> None:
    left = msgspec.structs.replace(
        event("tool.failed", {"toolCallId": "c", "status": "failed"}),
        host=msgspec.Raw(b'{"outcome":"unknown"}'),
    )

    _, aside = shown(event("tool.started", {"toolCallId": "c", "title": "Edit"}), left)
    assert aside == "  ? Edit\n"


def test_on_a_terminal_the_line_of_a_call_is_replaced_when_it_ends() -> None:
    stream = Terminal()
    pen = Pen(stream, {"NO_COLOR": "1"})
    renderer = Renderer(pen, pen)
    renderer.show(event("tool.started", {"toolCallId": "a", "title": "Read"}))
    renderer.show(event("tool.completed", {"toolCallId": "a"}))
    assert stream.getvalue() == "  ▸ Read\n\x1b[1A\x1b[2K  ✓ Read\n"


def test_a_call_with_text_below_it_is_not_replaced() -> None:
    stream = Terminal()
    pen = Pen(stream, {"NO_COLOR": "1"})
    renderer = Renderer(pen, pen)
    renderer.show(event("tool.started", {"toolCallId": "a", "title": "Read"}))
    renderer.show(text("message.delta", "meanwhile"))
    renderer.show(event("tool.completed", {"toolCallId": "a"}))
    assert stream.getvalue() == "  ▸ Read\nmeanwhile\n  ✓ Read\n"


ERROR = {"error": "no model", "errorCode": "agent_error"}
RESTARTED = {"errorCode": "host_restarted"}
ANSWERED = {"optionId": "a", "by": {"clientName": "nvim"}}
COLD = {"mode": "cold_resumed"}
ANEW = "the agent starts anew, with the history of this session as a text"


@pytest.mark.parametrize(
    ("kind", "payload", "line"),
    [
        ("run.queued", {"position": 2}, "queued behind 2"),
        ("run.failed", ERROR, "failed: no model · agent_error"),
        ("run.cancelled", {"errorCode": None}, "cancelled"),
        ("run.interrupted", RESTARTED, "interrupted: host_restarted"),
        ("run.completed", {"stopReason": "max_tokens"}, "the agent stopped: max_tokens"),
        ("permission.resolved", ANSWERED, "answered by nvim: a"),
        ("binding.cold_resumed", COLD, ANEW),
    ],
)
def test_what_happens_to_a_run_is_said_in_a_line(kind: str, payload: object, line: str) -> None:
    assert shown(event(kind, payload)) == ("", f"  {line}\n")


@pytest.mark.parametrize(
    "quiet",
    [
        event("run.queued", {"position": 0}),
        event("run.created"),
        event("usage.updated"),
        event("evidence", [1]),
        event("binding.started", {"mode": "new_session"}),
        event("from.the.future", {"x": 1}),
        event("plan.updated", {"entries": None}),
        event("message.delta", {"content": None}),
        event("message.delta", "text"),
    ],
)
def test_what_says_nothing_to_a_person_is_passed_over(quiet: Event) -> None:
    assert shown(quiet) == ("", "")


def test_content_that_is_no_text_is_named() -> None:
    link = {"content": {"type": "resource_link", "name": "notes.md", "uri": "file:///n"}}
    image = {"content": {"type": "image", "mimeType": "image/png", "data": "…"}}
    assert shown(event("message.delta", link), event("message.delta", image)) == (
        "[resource_link notes.md][image image/png]\n",
        "",
    )


def test_a_question_says_what_is_asked_and_how_to_answer_it() -> None:
    payload = {
        "permissionId": "perm_0001aaaabbbbcccc",
        "kind": "permission",
        "toolCall": {"title": "Write notes.md"},
        "options": [{"optionId": "yes"}, {"optionId": "no"}],
    }
    assert question_of(payload) == "Write notes.md"
    assert how_to_answer(payload) == "acphost permit bbbbcccc yes|no"


#: What agents put where something else belongs.
ODD: list[object] = [
    None, True, 0, -1.5, "", "x", [], [None], [[]], [{}], {}, {"type": 5}, {"a": None}, "\x1b[2J"
]  # fmt: skip
MEMBERS = [
    "content", "toolCallId", "title", "kind", "status", "entries", "changedFiles", "message",
    "description", "severity", "host", "by", "rule", "optionId", "outcome", "reason", "position",
    "stopReason", "errorCode", "error", "empty", "mode", "elicitationId", "action", "path",
]  # fmt: skip


@pytest.mark.parametrize("kind", [str(kind) for kind in Kind])
def test_whatever_stands_in_an_event_is_shown_or_passed_over(kind: str) -> None:
    """Members of any type in any place: nothing breaks, and nothing reaches the terminal as is."""
    for member in MEMBERS:
        for odd in ODD:
            answer, aside = shown(
                event(kind, {member: odd}), event(kind, {member: [{member: odd}]})
            )
            assert "\x1b[2J" not in answer + aside
    shown(*(event(kind, odd) for odd in ODD))
