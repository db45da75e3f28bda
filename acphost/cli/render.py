"""Events as a person reads them: the answer on one stream, all that goes with it on the other.

With both streams on a terminal it is one conversation; with the answer in a file or a pipe it holds
the agent's words and nothing else.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from acphost.cli import forms
from acphost.cli.screen import Pen, age, one_line, short
from acphost.cli.tools import ToolLines
from acphost.wire.event import Event, Kind
from acphost.wire.host import Decision

_MARKS = {"completed": "✓", "in_progress": "▸"}
_MEMORY = {
    "resumed": "the agent took the session up again",
    "loaded": "the agent loaded the session",
    "replay_seen": "the agent loaded the session",
    "cold_resumed": "the agent starts anew, with the history of this session as a text",
    "load_failed_new": "the agent could not load the session and remembers nothing of it",
}

Payload = dict[str, Any]


def payload_of(event: Event) -> Payload:
    """The payload as a dict; empty for anything else, agents send what they like.

    A number that nobody can hold makes only its own member unreadable.
    """
    try:
        value = msgspec.json.decode(event.payload)
    except msgspec.DecodeError:
        value = _what_can_be_read(event.payload)
    return value if isinstance(value, dict) else {}


def _what_can_be_read(payload: msgspec.Raw) -> Payload:
    try:
        members = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return {}
    readable: Payload = {}
    for name, raw in members.items():
        with suppress(msgspec.DecodeError):
            readable[name] = msgspec.json.decode(raw)
    return readable


class Renderer:
    """Shows one session's events in their order."""

    def __init__(self, answer: Pen, aside: Pen, *, shows_user: bool = True) -> None:
        self._answer = answer
        self._aside = aside
        self._shows_user = shows_user
        self._tools = ToolLines(aside)
        self._plan: list[tuple[str, str]] = []
        self._mood: str | None = None  # what the line that is being written consists of
        self._shows: dict[str, Callable[[Payload], None]] = {
            Kind.MESSAGE_USER: self._user,
            Kind.MESSAGE_DELTA: self._message,
            Kind.THOUGHT_DELTA: self._thought,
            Kind.PLAN_UPDATED: self._show_plan,
            Kind.PERMISSION_RESOLVED: self._resolved,
            Kind.PERMISSION_EXPIRED: self._expired,
            Kind.ELICITATION_REQUESTED: self._form,
            Kind.ELICITATION_RESOLVED: self._form_closed,
            Kind.ELICITATION_EXPIRED: self._expired,
            Kind.NOTICE: self._notice,
            Kind.COMPACTION_UPDATED: self._compaction,
            Kind.RUN_QUEUED: self._queued,
            Kind.RUN_STARTED: self._started,
            Kind.RUN_CANCEL_REQUESTED: lambda _: self._note("asked to stop"),
            Kind.RUN_COMPLETED: self._completed,
            Kind.RUN_FAILED: lambda p: self._ended("failed", p, "red"),
            Kind.RUN_CANCELLED: lambda p: self._ended("cancelled", p, "yellow"),
            Kind.RUN_INTERRUPTED: lambda p: self._ended("interrupted", p, "red"),
            Kind.BINDING_RESUMED: self._bound,
            Kind.BINDING_LOADED: self._bound,
            Kind.BINDING_COLD_RESUMED: self._bound,
            Kind.BINDING_STARTED: self._bound,
            Kind.BINDING_LOST: lambda p: self._note(f"lost the agent: {p.get('reason')}", "yellow"),
            Kind.QUEUE_HELD: lambda p: self._note(
                f"the queue is held: {p.get('reason')}", "yellow"
            ),
            Kind.QUEUE_RELEASED: lambda _: self._note("the queue goes on"),
            Kind.CHANGED_FILES: self._changed,
            Kind.ERROR: lambda p: self._note(f"error: {p.get('message')}", "red"),
        }

    def show(self, event: Event) -> None:
        """Show one event; kinds that say nothing to a person are passed over."""
        if event.kind.startswith("tool."):
            self._break()
            self._tools.show(event.kind, payload_of(event), is_known=not _is_unknown(event))
        elif (show := self._shows.get(event.kind)) is not None:
            show(payload_of(event))

    def finish(self) -> None:
        """End the line that was begun."""
        self._break()

    # -- the conversation -------------------------------------------------------------------------

    def _user(self, payload: Payload) -> None:
        if self._shows_user:
            self._break()
            text = "".join(map(_text, _items(payload.get("content"))))
            for line in self._aside.safe(text).splitlines() or [""]:
                self._aside.line(f"> {line}", "bold")

    def _message(self, payload: Payload) -> None:
        self._turn_to("message")
        self._answer.write(self._answer.safe(_text(payload.get("content"))))

    def _thought(self, payload: Payload) -> None:
        self._turn_to("thought")
        text = self._aside.safe(_text(payload.get("content")))
        if self._aside.at_start and not self._aside.is_terminal:
            self._aside.write("thought: ")
        self._aside.write(text, "dim")

    def _show_plan(self, payload: Payload) -> None:
        entries = [
            (str(entry.get("content", "")), str(entry.get("status", "pending")))
            for entry in _items(payload.get("entries"))
        ]
        # The whole plan once, then only what moved: agents send all of it with every step.
        news = [entry for entry in entries if entry not in self._plan]
        self._plan = entries
        for content, status in news:
            self._note(f"{_MARKS.get(status, '·')} {content}", "cyan")

    # -- decisions --------------------------------------------------------------------------------

    def _resolved(self, payload: Payload) -> None:
        who = _answered_by(payload.get("by"), payload.get("rule"))
        self._note(f"answered{who}: {payload.get('optionId') or payload.get('outcome')}", "green")

    def _expired(self, payload: Payload) -> None:
        self._note(f"the question was withdrawn: {payload.get('reason')}", "yellow")

    def _notice(self, payload: Payload) -> None:
        colour = {"error": "red", "warning": "yellow"}.get(str(payload.get("severity")), "dim")
        said = [str(payload[key]) for key in ("title", "description") if payload.get(key)]
        self._note(": ".join(said), colour)

    def _compaction(self, payload: Payload) -> None:
        if payload.get("status"):
            self._note(f"the agent shortens what it remembers: {payload['status']}")

    def _form(self, payload: Payload) -> None:
        where = f" (at {payload['host']})" if payload.get("host") else ""
        self._note(f"the agent asks: {payload.get('message')}{where}", "bold")
        self._note(f"answer with: {forms.how_to_answer(payload)}")

    def _form_closed(self, payload: Payload) -> None:
        by = payload.get("by")
        who = f" by {by.get('clientName')}" if isinstance(by, dict) else ""
        self._note(f"answered{who}: {payload.get('action')}", "green")

    # -- the run ----------------------------------------------------------------------------------

    def _queued(self, payload: Payload) -> None:
        position = payload.get("position")
        if isinstance(position, int) and position > 0:
            self._note(f"queued behind {position}")

    def _started(self, _: Payload) -> None:
        self._plan = []
        self._break()

    def _completed(self, payload: Payload) -> None:
        self._break()
        reason = payload.get("stopReason")
        if reason not in (None, "end_turn"):
            self._note(f"the agent stopped: {reason}", "yellow")
        elif payload.get("errorCode"):
            self._note(f"this may be no answer: {payload['errorCode']}", "yellow")
        elif payload.get("empty"):
            self._note("the agent ended the turn without a word", "yellow")

    def _ended(self, word: str, payload: Payload, colour: str) -> None:
        said = [str(payload[key]) for key in ("error", "errorCode") if payload.get(key)]
        self._note(f"{word}: {' · '.join(said)}" if said else word, colour)

    def _bound(self, payload: Payload) -> None:
        told = _MEMORY.get(str(payload.get("mode")))
        if told is not None:
            reason = payload.get("reason")
            self._note(f"{told} ({reason})" if reason else told)

    def _changed(self, payload: Payload) -> None:
        files = _items(payload.get("changedFiles"))
        for said, certain in (("changed", True), ("changed meanwhile", False)):
            paths = [str(one.get("path")) for one in files if bool(one.get("certain")) is certain]
            if paths:
                self._note(f"{said}: {', '.join(paths)}")

    # -- lines ------------------------------------------------------------------------------------

    def _turn_to(self, mood: str) -> None:
        if self._mood != mood:
            self._break()
            self._mood = mood
        self._tools.pass_by()

    def _break(self) -> None:
        """What follows is something else: it starts on a line of its own on either stream."""
        self._answer.fresh()
        self._aside.fresh()
        self._mood = None

    def _note(self, text: str, colour: str = "dim") -> None:
        self._break()
        self._tools.pass_by()
        self._aside.line(f"  {one_line(text, self._aside.columns - 2)}", colour)


def question_of(payload: Payload) -> str:
    """What an agent asks, in one line."""
    call = payload.get("toolCall")
    title = call.get("title") if isinstance(call, dict) else None
    return str(title or payload.get("kind") or "a permission")


def how_decided(decision: Decision) -> str:
    """Who answered what, and when; or that nobody has."""
    if decision.status == "pending":
        return "open"
    when = age(decision.resolved_at) if decision.resolved_at is not None else ""
    if decision.status == "expired":
        return f"withdrawn, {when}"
    who = _answered_by(msgspec.json.decode(decision.by), decision.rule)
    return f"{decision.option_id or decision.outcome}{who}, {when}"


def _answered_by(by: object, rule: object) -> str:
    """A rule by its name, a person by client and actor."""
    if rule is not None:
        return f' by rule "{rule}"'
    if isinstance(by, dict):
        actor = f" ({by['actorId']})" if by.get("actorId") else ""
        return f" by {by.get('clientName')}{actor}"
    return ""


def how_to_answer(payload: Payload) -> str:
    """The command that answers a question from another terminal."""
    options = [str(option.get("optionId")) for option in payload.get("options") or []]
    command = f"acphost permit {short(str(payload.get('permissionId')))}"
    return f"{command} {'|'.join(options)}"


def _is_unknown(event: Event) -> bool:
    """Whether a call only ended because its turn did: nobody has told how."""
    if isinstance(event.host, msgspec.UnsetType):
        return False
    facts = msgspec.json.decode(event.host)
    return isinstance(facts, dict) and facts.get("outcome") == "unknown"


def _items(value: object) -> list[Payload]:
    """The objects of a list; agents send what they like in its place."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(block: object) -> str:
    """The words of a content block, or what it is instead."""
    if not isinstance(block, dict):
        return ""
    if block.get("type", "text") == "text":
        return str(block.get("text") or "")
    name = block.get("name") or block.get("uri") or block.get("mimeType") or ""
    return f"[{block.get('type')} {name}]".replace(" ]", "]")
