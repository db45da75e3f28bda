"""What an agent process says, routed to the conversations it concerns."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import msgspec

from acphost.provider.connection import AgentConnection, AgentGoneError, method_not_found
from acphost.rpc.codec import verbatim_member
from acphost.wire.acp import SessionScoped, SessionUpdate
from acphost.wire.jsonrpc import RequestId

_UPDATE = msgspec.json.Decoder(SessionUpdate)
_SCOPED = msgspec.json.Decoder(SessionScoped)
_SESSION_ID = attrgetter("session_id")

#: Updates kept for a session whose id we have not been told yet (guide rule 10).
MAX_EARLY = 1000

#: Updates that came in a row, when that was, and their exact bytes where they were mended.
_Early = tuple[list[msgspec.Raw], int, list[bytes] | None]


class Sink(Protocol):
    """A conversation, as the process that serves it sees it. Nothing here may block."""

    def on_updates(
        self, updates: Sequence[msgspec.Raw], at: int, exact: list[bytes] | None = None
    ) -> None:
        """The `update`s of this session that came in a row, in wire order.

        `exact`: the agent's own bytes, where what is in `updates` had to be mended to be read.
        """

    def on_extension(self, method: str, params: msgspec.Raw, at: int) -> None:
        """Another notification that names the session."""

    def on_request(self, asked: "AgentRequest", at: int) -> None:
        """A request that names the session; the sink answers or refuses it."""

    def on_gone(self, gone: AgentGoneError) -> None:
        """The process ended. Open requests were failed before."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request of the agent, answered exactly once."""

    id: RequestId
    method: str
    params: msgspec.Raw
    connection: AgentConnection

    def answer(self, result: object) -> None:
        """Send the result."""
        self.connection.answer(self.id, result)

    def refuse(self, error: Exception) -> None:
        """Send an error."""
        self.connection.refuse(self.id, error)


class Switchboard:
    """The `Inbox` of one agent process: knows which session is whose."""

    #: Set as soon as there is one; nothing is routed before.
    connection: AgentConnection

    def __init__(self) -> None:
        self.sinks: dict[str, Sink] = {}
        self._early: dict[str, list[_Early]] = {}
        self._early_count = 0

    def attach(self, session_id: str, sink: Sink) -> None:
        """Whatever comes for that session goes there, first what came before its id was known."""
        self.sinks[session_id] = sink
        for updates, at, exact in self._early.pop(session_id, ()):
            self._early_count -= len(updates)
            sink.on_updates(updates, at, exact)

    def hang_up(self) -> list[Sink]:
        """Nobody is served any more; returns who was."""
        sinks, self.sinks = self.sinks, {}
        return list(sinks.values())

    def on_updates(self, updates: Sequence[SessionUpdate], at: int) -> None:
        """Route updates to the conversations they belong to."""
        for session_id, some in groupby(updates, _SESSION_ID):
            self._deliver(session_id, [scoped.update for scoped in some], at)

    def _deliver(
        self, session_id: str, updates: list[msgspec.Raw], at: int, exact: list[bytes] | None = None
    ) -> None:
        sink = self.sinks.get(session_id)
        if sink is not None:
            sink.on_updates(updates, at, exact)
            return
        # A copy: what was read together lies in one buffer, which would be kept whole.
        kept = [update.copy() for update in updates[: MAX_EARLY - self._early_count]]
        if kept:
            self._early_count += len(kept)
            self._early.setdefault(session_id, []).append((kept, at, exact))
        self.connection.anomalies += len(updates) - len(kept)

    def on_notification(
        self, method: str, params: msgspec.Raw, at: int, exact: bytes | None = None
    ) -> None:
        """Route what else the agent says."""
        own = params if exact is None else msgspec.Raw(exact)
        if method != "session/update":
            self._on_extension(method, params, own, at)
            return
        try:
            scoped = _UPDATE.decode(params)
        except msgspec.DecodeError:
            self.connection.anomalies += 1
            sink = self._only_sink()
            if sink is not None:
                sink.on_extension(method, own, at)
            return
        update = None if exact is None else verbatim_member(exact, "update")
        self._deliver(scoped.session_id, [scoped.update], at, None if update is None else [update])

    def _on_extension(self, method: str, params: msgspec.Raw, own: msgspec.Raw, at: int) -> None:
        sink = self._sink_of(params) or self._only_sink()
        if sink is not None and not method.startswith("$/"):
            sink.on_extension(method, own, at)

    def on_request(self, request_id: RequestId, method: str, params: msgspec.Raw, at: int) -> None:
        """Hand a request to its conversation, or answer that nobody is there."""
        asked = AgentRequest(request_id, method, params, self.connection)
        sink = self._sink_of(params)
        if sink is None:
            asked.refuse(method_not_found(method))
            self.connection.anomalies += 1
            return
        sink.on_request(asked, at)

    def _sink_of(self, params: msgspec.Raw) -> Sink | None:
        try:
            return self.sinks.get(_SCOPED.decode(params).session_id)
        except msgspec.DecodeError:
            return None

    def _only_sink(self) -> Sink | None:
        """With one session in the process there is no doubt whom a stray word concerns."""
        return next(iter(self.sinks.values())) if len(self.sinks) == 1 else None
