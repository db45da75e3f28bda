"""The past of a session as few updates: chunks joined, each tool call as it ended (guide 10.4).

Held back is only what one run said; its end lets go of it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw

from acphost.frontdoor.members import Members, members, raw, text
from acphost.frontdoor.updates import encoded, merged_call

_CHUNKS = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
_TOOLS = frozenset({"tool_call", "tool_call_update"})
#: Of these only the last one says how things stand.
_LATEST = frozenset({"plan", "usage_update", "available_commands_update"})


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    """A text and nothing else: the only content that can be joined without losing anything."""

    type: str
    text: str


class _Chunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    session_update: str
    content: _Plain
    message_id: str | None = None


class _Joined(NamedTuple):
    kind: str
    message_id: str | None
    pieces: list[str]


class _Call(NamedTuple):
    call_id: str
    said: Members


class History:
    """Takes updates in their order, gives fewer that say the same."""

    def __init__(self) -> None:
        self._items: list[_Joined | _Call | Raw] = []
        self._calls: dict[str, int] = {}
        self._latest: dict[str, Raw] = {}

    def add(self, update: Raw) -> None:
        """Take the next one."""
        tag = text(members(update).get("sessionUpdate")) or ""
        if tag in _CHUNKS:
            self._add_chunk(update)
        elif tag in _TOOLS:
            self._add_call(update)
        elif tag in _LATEST:
            self._latest[tag] = update
        else:
            self._items.append(update)

    def taken(self) -> Iterator[Raw]:
        """What was added since the last time, in order; a run has ended."""
        for item in self._items:
            match item:
                case _Joined(kind, message_id, pieces):
                    yield _chunk(kind, message_id, "".join(pieces))
                case _Call(call_id, said):
                    yield _complete(call_id, said)
                case _:
                    yield item
        self._items.clear()
        self._calls.clear()

    def latest(self) -> Iterator[Raw]:
        """How plan, usage and commands stand at the end."""
        yield from self._latest.values()
        self._latest.clear()

    def _add_chunk(self, update: Raw) -> None:
        try:
            chunk = msgspec.json.decode(update, type=_Chunk)
        except msgspec.DecodeError:
            self._items.append(_kept(update))
            return
        last = self._items[-1] if self._items else None
        if (
            isinstance(last, _Joined)
            and last.kind == chunk.session_update
            and last.message_id == chunk.message_id
            and chunk.content.type == "text"
            and chunk.session_update != "user_message_chunk"
        ):
            last.pieces.append(chunk.content.text)
        elif chunk.content.type == "text":
            self._items.append(
                _Joined(chunk.session_update, chunk.message_id, [chunk.content.text])
            )
        else:
            self._items.append(_kept(update))

    def _add_call(self, update: Raw) -> None:
        said = members(bytes(update))
        call_id = text(said.get("toolCallId")) or ""
        place = self._calls.get(call_id)
        if place is None:
            self._calls[call_id] = len(self._items)
            self._items.append(_Call(call_id, merged_call({}, said)))
            return
        known = self._items[place]
        assert isinstance(known, _Call), "a place in `_calls` is that of a call"
        is_new = text(said.get("sessionUpdate")) == "tool_call" and text(
            known.said.get("status")
        ) in {"completed", "failed"}
        if is_new:
            # Some agents use an id again for the next call.
            self._calls[call_id] = len(self._items)
            self._items.append(_Call(call_id, merged_call({}, said)))
        else:
            self._items[place] = _Call(call_id, merged_call(known.said, said))


def _kept(update: Raw) -> Raw:
    """A copy: the original is a view of a whole batch."""
    return Raw(bytes(update))


def _chunk(kind: str, message_id: str | None, words: str) -> Raw:
    chunk: dict[str, object] = {
        "sessionUpdate": kind,
        "content": {"type": "text", "text": words},
    }
    if message_id is not None:
        chunk["messageId"] = message_id
    return raw(chunk)


def _complete(call_id: str, said: Members) -> Raw:
    """One `tool_call` with all that became known; an update that had none is made one."""
    title = said.get("title", raw(call_id))
    return encoded({**said, "sessionUpdate": raw("tool_call"), "title": title})
