"""What an agent's update means in the words of the journal. Pure; called for every update."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

import msgspec
from msgspec import Raw

from acphost.wire.acp import MessageChunk, ToolReport, UpdateTag, lenient
from acphost.wire.event import Kind


class Matter(StrEnum):
    """What a kind of update is about, which decides how it is attributed and replayed."""

    CONTENT = "content"
    TOOL = "tool"
    SESSION = "session"
    EVIDENCE = "evidence"


class Meaning(NamedTuple):
    """An update, understood as far as the host needs."""

    kind: str
    matter: Matter
    #: What the host knows beside the payload: encoded JSON, or nothing.
    host: bytes | None = None
    tool: ToolReport | None = None


class _Block(msgspec.Struct, gc=False):
    """A content block is an object; what is in it is looked at when it matters."""


class _MessageChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_message_chunk", gc=False):
    content: _Block


class _ThoughtChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_thought_chunk", gc=False):
    content: _Block


class _UserChunk(msgspec.Struct, tag_field="sessionUpdate", tag="user_message_chunk", gc=False):
    content: _Block


_CHUNK = msgspec.json.Decoder(_MessageChunk | _ThoughtChunk | _UserChunk)
_TAG = msgspec.json.Decoder(UpdateTag)
_TEXT = msgspec.json.Decoder(MessageChunk)

_MESSAGE = Meaning(Kind.MESSAGE_DELTA, Matter.CONTENT)
_THOUGHT = Meaning(Kind.THOUGHT_DELTA, Matter.CONTENT)
_ECHO = Meaning(Kind.EVIDENCE, Matter.CONTENT, b'{"echo":true}')
_MALFORMED = Meaning(Kind.EVIDENCE, Matter.EVIDENCE, b'{"evidence":"malformed"}')
_UNKNOWN = Meaning(Kind.EVIDENCE, Matter.EVIDENCE, b'{"evidence":"unknown"}')

_CHUNKS: dict[type, tuple[str, Meaning]] = {
    _MessageChunk: ("agent_message_chunk", _MESSAGE),
    _ThoughtChunk: ("agent_thought_chunk", _THOUGHT),
    _UserChunk: ("user_message_chunk", _ECHO),
}
_CHUNK_TAGS = frozenset(tag for tag, _ in _CHUNKS.values())
_WHOLE = {
    "plan": Meaning(Kind.PLAN_UPDATED, Matter.CONTENT),
    "plan_update": Meaning(Kind.PLAN_UPDATED, Matter.CONTENT),
    "plan_removed": Meaning(Kind.PLAN_UPDATED, Matter.CONTENT),
    # Neither is part of the answer: a turn that has nothing else is empty.
    "notice": Meaning(Kind.NOTICE, Matter.EVIDENCE),
    "compaction_update": Meaning(Kind.COMPACTION_UPDATED, Matter.EVIDENCE),
    "compaction_summary_chunk": Meaning(Kind.COMPACTION_UPDATED, Matter.EVIDENCE),
    "usage_update": Meaning(Kind.USAGE_UPDATED, Matter.SESSION),
    "available_commands_update": Meaning(Kind.SESSION_COMMANDS_UPDATED, Matter.SESSION),
    "current_mode_update": Meaning(Kind.SESSION_MODE_UPDATED, Matter.SESSION),
    "config_option_update": Meaning(Kind.SESSION_CONFIG_UPDATED, Matter.SESSION),
    "session_info_update": Meaning(Kind.SESSION_INFO_UPDATED, Matter.SESSION),
}
_TOOLS = frozenset({"tool_call", "tool_call_update"})
_BY_STATUS = {"completed": Kind.TOOL_COMPLETED, "failed": Kind.TOOL_FAILED}


def read(updates: Sequence[Raw]) -> Iterator[tuple[str, Meaning, Sequence[Raw]]]:
    """Tell what updates are called and mean; those in a row that mean the same stay together.

    What nobody knows or can read is evidence, never an error.
    """
    try:
        chunks = _CHUNK.decode_lines(b"\n".join(updates))
    except (msgspec.DecodeError, RecursionError):
        if len(updates) > 1:
            # Some are no chunks; most may be all the same.
            middle = len(updates) // 2
            yield from read(updates[:middle])
            yield from read(updates[middle:])
        else:
            yield *_read_one(updates[0]), updates
        return
    end = 0
    for kind, alike in groupby(map(type, chunks)):
        start, end = end, end + len(list(alike))
        yield *_CHUNKS[kind], updates[start:end]


def _read_one(update: Raw) -> tuple[str, Meaning]:
    """An update that is no chunk, or not a good one."""
    try:
        tag = _TAG.decode(update).session_update
    except msgspec.DecodeError:
        return "", _UNKNOWN
    if tag in _CHUNK_TAGS:
        return tag, _MALFORMED
    if tag in _TOOLS:
        return tag, _read_tool(tag, update)
    return tag, _WHOLE.get(tag, _UNKNOWN)


def _read_tool(tag: str, update: Raw) -> Meaning:
    try:
        tool = lenient(ToolReport, update)
    except msgspec.DecodeError:
        return _MALFORMED
    if not tool.tool_call_id:
        return _MALFORMED
    started = Kind.TOOL_STARTED if tag == "tool_call" else Kind.TOOL_UPDATED
    return Meaning(_BY_STATUS.get(tool.status or "", started), Matter.TOOL, tool=tool)


def text_of(update: Raw) -> str:
    """The text of a message chunk, empty if it has none."""
    try:
        return _TEXT.decode(update).content.text
    except msgspec.DecodeError:
        return ""
