"""Which tool call a stored event is about."""

import msgspec

from acphost.journal.strict import repaired
from acphost.wire.acp import ToolCall, lenient


def tool_call_id(payload: bytes) -> str:
    """The agent's id of the call, also from a payload that no strict reader takes; "" for none."""
    for as_it_is_or_mended in (bytes, repaired):
        try:
            return lenient(ToolCall, as_it_is_or_mended(payload)).tool_call_id
        except msgspec.DecodeError:
            continue
    return ""
