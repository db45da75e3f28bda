"""Reasonix 1.x (Go) and 0.x (TypeScript): what they really do (agents/reasonix NOTES)."""

from typing import ClassVar

import msgspec

from acphost.errors import AcpHostError, RemoteError
from acphost.provider.traits import (
    INVALID_PARAMS,
    LoadStatus,
    ProcessModel,
    Traits,
    TurnFacts,
    Verdict,
)
from acphost.wire.acp import MessageChunk, lenient
from acphost.wire.event import Source

#: The agent's own preamble, replayed as if the user had said it (section 3, load).
_PREAMBLE = "<session-context"


class Reasonix(Traits):
    """One process per session keeps its ownership lock simple and its memory small."""

    runtime = "reasonix"
    provider = "acp_reasonix"
    provider_kind = "reasonix-acp"
    source: ClassVar[Source] = "reasonix"
    process: ClassVar[ProcessModel] = "per_session"

    def judge_load_error(self, error: AcpHostError) -> LoadStatus:
        """An unknown session, or one that another process holds, is "invalid params" here."""
        if isinstance(error, RemoteError) and error.remote_code == INVALID_PARAMS:
            return LoadStatus.NOT_FOUND
        return super().judge_load_error(error)

    def judge_turn(self, facts: TurnFacts) -> Verdict:
        """The 0.x line ends failed turns with a stop reason that ACP does not have."""
        if facts.error is None and facts.stop_reason == "error":
            return Verdict("failed", "agent_error", "the agent reported an error without a text")
        return super().judge_turn(facts)

    def is_replay_noise(self, tag: str, update: msgspec.Raw) -> bool:
        """The replayed preamble is the agent's, not the user's."""
        if tag != "user_message_chunk":
            return False
        try:
            return lenient(MessageChunk, update).content.text.startswith(_PREAMBLE)
        except msgspec.DecodeError:
            return False
