"""An event of the journal as the updates an editor is shown. Pure.

What an agent said is passed on byte for byte. What this editor did not say it understands is
brought into a form it does, or left out: the official parsers throw away a whole notification for
one variant they do not know (guide rule 50).
"""

from collections.abc import Callable, Iterator

import msgspec
from msgspec import UNSET, Raw

from acphost.frontdoor.members import Members, is_given, items, members, raw, text
from acphost.rpc.codec import encode_notification
from acphost.wire.acp_agent import EditorCapabilities
from acphost.wire.event import HOST, Event, Kind
from acphost.wire.host import RunStatus

#: Members of the `_meta` that we add ourselves.
TURN = "acphost/turn"
RUN_ID = "acphost/runId"

_ENDED = {
    Kind.RUN_COMPLETED: RunStatus.COMPLETED,
    Kind.RUN_FAILED: RunStatus.FAILED,
    Kind.RUN_CANCELLED: RunStatus.CANCELLED,
    Kind.RUN_INTERRUPTED: RunStatus.INTERRUPTED,
}


class Projector:
    """Knows what one editor can show."""

    def __init__(self, editor: EditorCapabilities) -> None:
        self._editor = editor
        self._by_kind: dict[str, Callable[[Event], Iterator[Raw]]] = {
            Kind.MESSAGE_USER: user_message,
            Kind.MESSAGE_DELTA: _as_it_is,
            Kind.THOUGHT_DELTA: _as_it_is,
            Kind.PLAN_UPDATED: self._plan,
            Kind.USAGE_UPDATED: _only("usage_update"),
            Kind.TOOL_STARTED: _tool,
            Kind.TOOL_UPDATED: _tool,
            Kind.TOOL_COMPLETED: _tool,
            Kind.TOOL_FAILED: _tool,
            Kind.SESSION_INFO_UPDATED: _only("session_info_update"),
            Kind.SESSION_COMMANDS_UPDATED: _only("available_commands_update"),
            Kind.SESSION_RENAMED: _renamed,
            Kind.NOTICE: self._newer,
            Kind.COMPACTION_UPDATED: self._newer,
        }

    def updates(self, event: Event) -> Iterator[Raw]:
        """What the editor is shown of an event; nothing for most that the host says."""
        project = self._by_kind.get(event.kind)
        return iter(()) if project is None else project(event)

    def _plan(self, event: Event) -> Iterator[Raw]:
        """One of several plans is the plan, for an editor that knows only one."""
        said = members(event.payload)
        tag = text(said.get("sessionUpdate"))
        if tag == "plan" or (tag in {"plan_update", "plan_removed"} and self._editor.shows_plans):
            yield event.payload
        elif tag == "plan_removed":
            yield raw({"sessionUpdate": "plan", "entries": []})
        elif tag == "plan_update":
            plan = members(said.get("plan", Raw(b"{}")))
            if text(plan.get("type")) == "items":
                yield raw({"sessionUpdate": "plan", "entries": items(plan.get("entries"))})

    def _newer(self, event: Event) -> Iterator[Raw]:
        """Newer variants, for editors that said they show them."""
        tag = text(members(event.payload).get("sessionUpdate")) or ""
        is_shown = tag == "notice" and self._editor.shows_notices
        is_shown |= tag.startswith("compaction_") and self._editor.shows_compaction
        if is_shown:
            yield event.payload


def user_message(event: Event) -> Iterator[Raw]:
    """What somebody asked, one chunk for each block; its id is that of the run."""
    for block in items(members(event.payload).get("content")):
        chunk: dict[str, object] = {"sessionUpdate": "user_message_chunk", "content": block}
        if event.host_run_id is not None:
            chunk["messageId"] = event.host_run_id
        yield raw(chunk)


def host_message(words: str) -> Raw:
    """What the host has to say to the person, in the agent's place."""
    content = {"type": "text", "text": words}
    return raw({"sessionUpdate": "agent_message_chunk", "content": content})


def turn_ended(event: Event) -> Raw:
    """For those who watch somebody else's turn: the protocol has no word for its end."""
    said = members(event.payload)
    turn = {
        "runId": event.host_run_id,
        "status": _ENDED[Kind(event.kind)],
        "stopReason": text(said.get("stopReason")),
    }
    return raw(
        {
            "sessionUpdate": "session_info_update",
            "updatedAt": event.created_at,
            "_meta": {TURN: turn},
        }
    )


def extension(event: Event, session_id: str) -> bytes | None:
    """An agent's own notification as a line for the editor, under our name of the session.

    Names that begin with `_` are for such (guide rule 48); other unknown ones are the protocol's.
    """
    if event.host is UNSET or text(members(event.host).get("evidence")) != "extension":
        return None
    said = members(event.payload)
    method = text(said.get("method"))
    if method is None or not method.startswith("_"):
        return None
    params = said.get("params", Raw(b"{}"))
    own = members(params)
    if "sessionId" in own:
        params = encoded({**own, "sessionId": raw(session_id)})
    return encode_notification(method, params)


def _as_it_is(event: Event) -> Iterator[Raw]:
    yield event.payload


def _only(tag: str) -> Callable[[Event], Iterator[Raw]]:
    """Some kinds hold what agents say beside the protocol as well."""

    def project(event: Event) -> Iterator[Raw]:
        if text(members(event.payload).get("sessionUpdate")) == tag:
            yield event.payload

    return project


def _tool(event: Event) -> Iterator[Raw]:
    if event.source == HOST:
        # A call that the host closed because nobody will say how it ended.
        yield raw({"sessionUpdate": "tool_call_update", **members(event.payload)})
    elif b'"terminal"' in bytes(event.payload):
        yield _without_terminals(event.payload)
    else:
        yield event.payload


def _without_terminals(payload: Raw) -> Raw:
    """The terminals are the daemon's: an editor could not show one it did not start."""
    said = members(payload)
    content = items(said.get("content"))
    shown = [_shown_content(item) for item in content]
    if shown == content:
        return payload
    return raw({**said, "content": shown})


def _shown_content(item: Raw) -> Raw:
    said = members(item)
    if text(said.get("type")) != "terminal":
        return item
    words = {"type": "text", "text": f"terminal {text(said.get('terminalId')) or ''}".rstrip()}
    return raw({"type": "content", "content": words})


def _renamed(event: Event) -> Iterator[Raw]:
    title = members(event.payload).get("title")
    if title is not None:
        yield raw({"sessionUpdate": "session_info_update", "title": title})


#: What these members are where an agent keeps to the protocol.
_WORDS = frozenset({"title", "kind", "status", "name"})
_LISTS = {"content": "type", "locations": "path"}


def merged_call(call: Members, update: Members) -> Members:
    """A tool call after an update: what is absent or null stays, the rest replaces (rule 31).

    What is malformed is as good as absent; of a list only the bad items are (rule 32).
    """
    sound = {name: _sound(name, value) for name, value in update.items() if is_given(value)}
    return {**call, **{name: value for name, value in sound.items() if value is not None}}


def _sound(name: str, value: Raw) -> Raw | None:
    if name in _WORDS:
        return value if text(value) is not None else None
    if name not in _LISTS:
        return value
    if not bytes(value).startswith(b"["):
        return None
    given = items(value)
    good = [item for item in given if text(members(item).get(_LISTS[name])) is not None]
    return value if len(good) == len(given) else raw(good)


def encoded(update: Members) -> Raw:
    """An object of members that came from elsewhere."""
    return Raw(msgspec.json.encode(update))
