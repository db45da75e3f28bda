"""What an agent's update means in the words of the journal. Pure; called for every update."""

from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec import Raw

from acphost.wire.acp import MessageChunk, ToolCall, lenient
from acphost.wire.base import AcpStruct
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
    tool: ToolCall | None = None


class _Content(AcpStruct, frozen=True):
    content: Raw = Raw(b"")


_CONTENT = msgspec.json.Decoder(_Content)
_CHUNK = msgspec.json.Decoder(MessageChunk)

_MESSAGE = Meaning(Kind.MESSAGE_DELTA, Matter.CONTENT)
_THOUGHT = Meaning(Kind.THOUGHT_DELTA, Matter.CONTENT)
_ECHO = Meaning(Kind.EVIDENCE, Matter.CONTENT, b'{"echo":true}')
_MALFORMED = Meaning(Kind.EVIDENCE, Matter.EVIDENCE, b'{"evidence":"malformed"}')
_UNKNOWN = Meaning(Kind.EVIDENCE, Matter.EVIDENCE, b'{"evidence":"unknown"}')

_CHUNKS = {
    "agent_message_chunk": _MESSAGE,
    "agent_thought_chunk": _THOUGHT,
    "user_message_chunk": _ECHO,
}
_WHOLE = {
    "plan": Meaning(Kind.PLAN_UPDATED, Matter.CONTENT),
    "plan_update": Meaning(Kind.PLAN_UPDATED, Matter.CONTENT),
    "plan_removed": Meaning(Kind.PLAN_UPDATED, Matter.CONTENT),
    "usage_update": Meaning(Kind.USAGE_UPDATED, Matter.SESSION),
    "available_commands_update": Meaning(Kind.SESSION_COMMANDS_UPDATED, Matter.SESSION),
    "current_mode_update": Meaning(Kind.SESSION_MODE_UPDATED, Matter.SESSION),
    "config_option_update": Meaning(Kind.SESSION_CONFIG_UPDATED, Matter.SESSION),
    "session_info_update": Meaning(Kind.SESSION_INFO_UPDATED, Matter.SESSION),
}
_TOOLS = frozenset({"tool_call", "tool_call_update"})
_BY_STATUS = {"completed": Kind.TOOL_COMPLETED, "failed": Kind.TOOL_FAILED}


def read(tag: str, update: Raw) -> Meaning:
    """Tell what an update means; what nobody knows or can read is evidence, never an error."""
    chunk = _CHUNKS.get(tag)
    if chunk is not None:
        # A content block is an object; anything else in its place damages only this update.
        return chunk if bytes(_CONTENT.decode(update).content)[:1] == b"{" else _MALFORMED
    if tag in _TOOLS:
        return _read_tool(tag, update)
    return _WHOLE.get(tag, _UNKNOWN)


def _read_tool(tag: str, update: Raw) -> Meaning:
    try:
        tool = lenient(ToolCall, update)
    except msgspec.DecodeError:
        return _MALFORMED
    if not tool.tool_call_id:
        return _MALFORMED
    started = Kind.TOOL_STARTED if tag == "tool_call" else Kind.TOOL_UPDATED
    return Meaning(_BY_STATUS.get(tool.status or "", started), Matter.TOOL, tool=tool)


def text_of(update: Raw) -> str:
    """The text of a message chunk, empty if it has none."""
    try:
        return _CHUNK.decode(update).content.text
    except msgspec.DecodeError:
        return ""
