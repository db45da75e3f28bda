"""What an agent process says, routed to the conversations it concerns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import msgspec

from acphost.errors import AcpHostError
from acphost.provider.connection import AgentConnection, AgentGoneError, method_not_found
from acphost.rpc.codec import verbatim_member
from acphost.wire.acp import SessionScoped, SessionUpdate
from acphost.wire.acp_elicitation import CancelRequest, ElicitationRequest
from acphost.wire.jsonrpc import RequestId

_UPDATE = msgspec.json.Decoder(SessionUpdate)
_SCOPED = msgspec.json.Decoder(SessionScoped)
_CANCEL = msgspec.json.Decoder(CancelRequest)
_ELICITATION = msgspec.json.Decoder(ElicitationRequest)
#: Requests that people answer.
_ASKING = frozenset({"session/request_permission", "elicitation/create"})
_SESSION_ID = attrgetter("session_id")

#: Updates kept for a session whose id we have not been told yet (guide rule 10), their bytes, and
#: for how many such ids: an agent that speaks of sessions that never come must not fill the memory.
MAX_EARLY = 1000
MAX_EARLY_BYTES = 1 << 20
MAX_EARLY_SESSIONS = 8
#: So many words that are nobody's are kept of one process, each cut to so many bytes; the others
#: are only counted.
MAX_STRAYS = 100
STRAY_BYTES = 4096


class _Early:
    """What came for a session before its id was known."""

    __slots__ = ("rows", "size", "updates")

    def __init__(self) -> None:
        #: Updates that came in a row, when that was, and their exact bytes where they were mended.
        self.rows: list[tuple[list[msgspec.Raw], int, list[bytes] | None]] = []
        self.updates = self.size = 0


class SessionIdTakenError(AcpHostError):
    """The agent uses one session id for two conversations: nobody could tell them apart."""


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

    def on_stray(self, what: str, payload: bytes, at: int) -> None:
        """Something of the process that belongs to no session, to be kept as evidence."""

    @property
    def awaits_people(self) -> bool:
        """Whether the agent waits for a person: that is no silence."""

    def on_withdrawn(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """The agent takes a request back; whether it was one of this session's, and open."""

    def on_gone(self, gone: AgentGoneError) -> None:
        """The process ended. Open requests were failed before."""


@dataclass(frozen=True, slots=True)
class Asked(ABC):
    """A question that is answered exactly once, whoever has put it."""

    id: RequestId
    method: str
    params: msgspec.Raw

    @abstractmethod
    def answer(self, result: object) -> None:
        """Give the answer."""

    @abstractmethod
    def refuse(self, error: Exception) -> None:
        """Say why there is none."""

    def is_it(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """Whether this is that request of an agent."""
        return False


@dataclass(frozen=True, slots=True)
class AgentRequest(Asked):
    """A request of the agent."""

    connection: AgentConnection

    def is_it(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """Whether this is the request of that id; a text is no number, and 1 is not true."""
        is_same = type(request_id) is type(self.id) and request_id == self.id
        return is_same and connection is self.connection

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
        self._early: dict[str, _Early] = {}
        self._strays = 0
        self._unheard: list[tuple[str, bytes, int]] = []

        #: Who waits for the answer to a request of ours, by its id, while no session is known.
        self.callers: dict[RequestId, Sink] = {}

    def attach(self, session_id: str, sink: Sink) -> None:
        """Whatever comes for that session goes there, first what came before its id was known.

        Raises SessionIdTakenError if it is that of another conversation (guide A32).
        """
        if self.sinks.get(session_id, sink) is not sink:
            raise SessionIdTakenError(
                f"session id {session_id[:100]!r} is that of another conversation in this process"
            )
        self.sinks[session_id] = sink
        unheard, self._unheard = self._unheard, []
        for stray in unheard:
            sink.on_stray(*stray)
        early = self._early.pop(session_id, None)
        for row in early.rows if early is not None else ():
            sink.on_updates(*row)

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
        self._keep_early(session_id, updates, at, exact)

    def _keep_early(
        self, session_id: str, updates: list[msgspec.Raw], at: int, exact: list[bytes] | None
    ) -> None:
        early = self._early.get(session_id)
        if early is None:
            if len(self._early) >= MAX_EARLY_SESSIONS:
                oldest = self._early.pop(next(iter(self._early)))
                self.connection.anomalies += oldest.updates
            early = self._early[session_id] = _Early()
        kept: list[msgspec.Raw] = []
        for update in updates:
            early.size += len(bytes(update))
            if early.updates >= MAX_EARLY or early.size > MAX_EARLY_BYTES:
                break
            # A copy: what was read together lies in one buffer, which would be kept whole.
            kept.append(update.copy())
            early.updates += 1
        if kept:
            early.rows.append((kept, at, exact))
        self.connection.anomalies += len(updates) - len(kept)

    def on_stray(self, what: str, said: object, at: int) -> None:
        """Keep what belongs to no session; where several are served, the first of them has it."""
        if self._strays >= MAX_STRAYS:
            return
        self._strays += 1
        hide = self.connection.secrets.masked_bytes
        if isinstance(said, bytes):
            # Hidden before it is cut: half of a secret would stay.
            shown = hide(said[: 2 * STRAY_BYTES])[:STRAY_BYTES]
            said = {"text": shown.decode(errors="replace")}
        payload = hide(msgspec.json.encode(said))
        if len(payload) > 2 * STRAY_BYTES:
            text = payload[:STRAY_BYTES].decode(errors="replace")
            payload = msgspec.json.encode({"text": text, "bytes": len(payload)})
        sink = next(iter(self.sinks.values()), None)
        if sink is None:
            self._unheard.append((what, payload, at))
        else:
            sink.on_stray(what, payload, at)

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
        if method == "$/cancel_request":
            self._on_withdrawn(params)
            return
        if method == "elicitation/complete":
            # It names neither session nor request: whoever has it open knows its id.
            for each in [*self.sinks.values(), *self.callers.values()]:
                each.on_extension(method, own, at)
            return
        sink = self._sink_of(params) or self._only_sink()
        if sink is not None and not method.startswith("$/"):
            sink.on_extension(method, own, at)

    def on_request(self, request_id: RequestId, method: str, params: msgspec.Raw, at: int) -> None:
        """Hand a request to its conversation, or answer that nobody is there."""
        asked = AgentRequest(request_id, method, params, self.connection)
        sink = self._sink_of(params)
        if sink is None and method in _ASKING:
            # A question about a request of ours, or of a session within the one there is (A54).
            sink = self._caller_of(params) or self._only_sink()
        if sink is None:
            asked.refuse(method_not_found(method))
            self.connection.anomalies += 1
            return
        try:
            sink.on_request(asked, at)
        except Exception as exc:  # border: whatever one request runs into is its answer
            asked.refuse(exc)

    def _on_withdrawn(self, params: msgspec.Raw) -> None:
        """Unknown ids were answered already: nothing to do."""
        try:
            request_id = _CANCEL.decode(params).request_id
        except msgspec.DecodeError:
            self.connection.anomalies += 1
            return
        for sink in [*self.sinks.values(), *self.callers.values()]:
            if sink.on_withdrawn(self.connection, request_id):
                return

    def _caller_of(self, params: msgspec.Raw) -> Sink | None:
        try:
            request_id = _ELICITATION.decode(params).request_id
        except msgspec.DecodeError:
            return None
        return None if request_id is msgspec.UNSET else self.callers.get(request_id)

    def _sink_of(self, params: msgspec.Raw) -> Sink | None:
        try:
            return self.sinks.get(_SCOPED.decode(params).session_id)
        except msgspec.DecodeError:
            return None

    def _only_sink(self) -> Sink | None:
        """With one session in the process there is no doubt whom a stray word concerns."""
        return next(iter(self.sinks.values())) if len(self.sinks) == 1 else None
