"""The session's ear: every word of its agent is journaled, attributed and in wire order."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.errors import OverloadedError, StorageError, StorageFullError
from acphost.journal.event import Draft, RunRef, classify
from acphost.journal.writer import Ticket, Writer
from acphost.provider.connection import AgentConnection, AgentGoneError, method_not_found
from acphost.provider.switchboard import AgentRequest, Asked
from acphost.provider.traits import Traits
from acphost.session.binding import Replay
from acphost.session.configure import Configurator
from acphost.session.continuity import Binder
from acphost.session.decisions import Deadline
from acphost.session.heritage import history
from acphost.session.scribe import Scribe, encode, note, run_ref
from acphost.session.state import MAX_QUESTIONS, SessionState
from acphost.session.updates import Matter, Meaning, read
from acphost.session.usage import read_context
from acphost.wire.base import AcpStruct
from acphost.wire.event import Kind
from acphost.wire.jsonrpc import RequestId

#: Characters of an agent's title that lists show.
MAX_TITLE = 300
LATE = b'{"late":true}'


class _Info(AcpStruct, frozen=True):
    #: Absent keeps what there is (A41).
    title: str | UnsetType | None = UNSET


class Listener:
    """The `Sink` of one session: called by the reader of its agent, in wire order."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        writer: Writer,
        traits: Traits,
        *,
        configurator: Configurator,
        deadline: Callable[[], Deadline | None],
        on_question: Callable[[str], None],
        on_decided: Callable[[Asked, str, Ticket], None],
        on_dismissed: Callable[[list[Asked], Ticket], None],
    ) -> None:
        self._state = state
        self._scribe = scribe
        self._log = scribe.log
        self._writer = writer
        self._traits = traits
        self._source = traits.source
        self._deadline = deadline
        self._on_question = on_question
        self._on_decided = on_decided
        self._on_dismissed = on_dismissed
        self.binder: Binder | None = None
        #: Told of `elicitation/complete`; unknown ids are ignored (A60).
        self.on_complete: Callable[[Raw], object] = lambda _: None
        #: Who may hold a request that its agent takes back.
        self.withdrawals: list[Callable[[AgentConnection, RequestId], bool]] = []
        #: Kinds of updates that the host acts on beyond keeping them.
        self._followers: dict[str, Callable[[Raw], None]] = {
            Kind.SESSION_INFO_UPDATED: self._take_title,
            Kind.SESSION_MODE_UPDATED: configurator.on_mode,
            Kind.SESSION_CONFIG_UPDATED: configurator.on_options,
            Kind.USAGE_UPDATED: lambda update: state.usage.update(read_context(update)),
        }
        #: What an agent may ask for, by method; everything else is refused (guide A10, A16).
        self.handlers: dict[str, Callable[[AgentRequest], object]] = {
            "session/request_permission": self.open_question
        }

    # -- updates ----------------------------------------------------------------------------------

    def on_updates(self, updates: Sequence[Raw], at: int, exact: list[bytes] | None = None) -> None:
        """Journal updates: of the turn, late, of a replay, or of the session."""
        self._state.hear(at)
        payloads = exact or list(map(bytes, updates))
        done = 0
        for tag, meaning, alike in read(updates):
            start, done = done, done + len(alike)
            self._take(tag, meaning, alike, payloads[start:done], at)

    def _take(
        self, tag: str, meaning: Meaning, updates: Sequence[Raw], payloads: list[bytes], at: int
    ) -> None:
        """Updates that mean the same, and their exact bytes."""
        replay = self.binder.replay if self.binder else None
        if replay is not None and meaning.matter is not Matter.SESSION:
            for update, payload in zip(updates, payloads, strict=True):
                self._take_replay(replay, tag, meaning, update, payload, at)
            return
        run, kind, host = self._place(meaning, updates)
        follow = self._followers.get(meaning.kind)
        if follow is not None:
            follow(updates[-1])
        # Good ones are good together, and what is wrong with one is no better among others.
        together = [payloads] if not classify(b"".join(payloads)) else [[one] for one in payloads]
        for some in together:
            self._writer.append_alike(
                self._log, kind, some, at=at, run=run, source=self._source, host=host,
                flags=classify(some[0]),
            )  # fmt: skip

    def _place(
        self, meaning: Meaning, updates: Sequence[Raw]
    ) -> tuple[RunRef | None, str, bytes | None]:
        """Which run updates belong to, as which kind, with what beside them."""
        state, turn = self._state, self._state.turn
        kind, host, tool = meaning.kind, meaning.host, meaning.tool
        if turn is not None and turn.prompt_sent:
            if meaning.matter is Matter.SESSION:
                return turn.ref if kind == Kind.USAGE_UPDATED else None, kind, host
            turn.take(meaning, updates)
            if tool is not None:
                kind, host = turn.calls.follow(kind, tool.tool_call_id, tool)
            return turn.ref, kind, host
        late = None if meaning.matter is Matter.SESSION else state.late_run()
        if late is None:
            return None, kind, host
        if tool is not None and state.last_calls is not None:
            kind, host = state.last_calls.follow(kind, tool.tool_call_id, tool)
        return run_ref(late), kind, LATE if host is None else host[:-1] + b"," + LATE[1:]

    def _take_replay(
        self, replay: Replay, tag: str, meaning: Meaning, update: Raw, payload: bytes, at: int
    ) -> None:
        """History told again is kept as evidence and counted, never shown as news.

        That of a session which began elsewhere is not told again, but for the first time here.
        """
        is_user = tag == "user_message_chunk"
        kind = Kind.MESSAGE_USER if is_user and meaning.kind == Kind.EVIDENCE else meaning.kind
        host: dict[str, object] = {"evidence": "adapter_replay", "originalKind": kind}
        draft = None
        if self._traits.is_replay_noise(tag, update):
            host["preamble"] = True
        else:
            replay.count += 1
            replay.users += is_user
            if replay.shown is not None:
                draft = history(kind, meaning, payload, self._source)
        if draft is not None:
            replay.tellable += 1
        if draft is None or replay.tellable <= (replay.shown or 0):
            draft = Draft(
                Kind.EVIDENCE, payload, None, self._source, encode(host), None, classify(payload)
            )
        replay.last_seq = self._writer.append_event(
            self._log, draft.kind, draft.payload, at=at, run=None, source=draft.source,
            host=draft.host, flags=draft.flags,
        )  # fmt: skip

    def _take_title(self, update: Raw) -> None:
        """An agent's title is shown as long as no person has given one; null takes it away."""
        row = self._state.row
        if self._state.is_titled:
            return
        try:
            title = msgspec.json.decode(update, type=_Info).title
        except msgspec.DecodeError:
            return
        if isinstance(title, UnsetType) or (title is not None and not self._traits.is_title(title)):
            return
        # In lists it is one line; the event has all of it.
        shown = None if title is None else " ".join(title[:MAX_TITLE].split())
        if shown != row.title:
            row.title = shown
            self._scribe.write([])

    # -- other words ------------------------------------------------------------------------------

    def on_extension(self, method: str, params: Raw, at: int) -> None:
        """A notification that is no update: kept whole, and a sign of life."""
        state = self._state
        if method == "elicitation/complete":
            self.on_complete(params)
            return
        self._state.hear(at)
        turn = state.turn
        if turn is not None:
            reported = self._traits.usage_of(method, params)
            if reported is not None:
                state.usage.report(reported)
        payload = b'{"method":%b,"params":%b}' % (encode(method), bytes(params))
        self._writer.append_event(
            self._log, Kind.EVIDENCE, payload, at=at,
            run=turn.ref if turn is not None and turn.prompt_sent else None,
            source=self._source, host=b'{"evidence":"extension"}', flags=classify(payload),
        )  # fmt: skip

    def on_stray(self, what: str, payload: bytes, at: int) -> None:
        """What the agent's process says to nobody: kept as evidence, and no sign of life."""
        turn = self._state.turn
        self._writer.append_event(
            self._log, Kind.EVIDENCE, payload, at=at,
            run=turn.ref if turn is not None and turn.prompt_sent else None,
            source=self._source, host=encode({"evidence": what}), flags=classify(payload),
        )  # fmt: skip

    def on_request(self, asked: AgentRequest, at: int) -> None:
        """Hand a request to who answers such; what this host does not offer is refused at once."""
        self._state.hear(at)
        handler = self.handlers.get(asked.method)
        if handler is not None:
            handler(asked)
            return
        asked.refuse(method_not_found(asked.method))
        payload = b'{"method":%b,"params":%b}' % (encode(asked.method), bytes(asked.params))
        turn = self._state.turn
        self._scribe.write(
            [Draft(
                Kind.EVIDENCE, payload, turn.ref if turn else None, self._source,
                b'{"evidence":"unsupported_request"}', None, classify(payload),
            )]
        )  # fmt: skip

    def on_withdrawn(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """The agent takes a request back (A52)."""
        return any(take(connection, request_id) for take in self.withdrawals)

    @property
    def awaits_people(self) -> bool:
        """Whether the agent waits for a person, and not a person for it."""
        return self._state.awaits_people

    def open_question(self, asked: Asked, host_kind: str | None = None) -> str | None:
        """Put a question to people: the agent's, or one of the host's own on account of it.

        Returns its id while it is open.
        """
        state, turn = self._state, self._state.turn
        if state.has_too_many_questions:
            asked.refuse(too_many_questions())
            return None
        is_stopping = turn is not None and turn.run.cancel_requested_at is not None
        deadline = self._deadline()
        opened = state.desk.open(
            asked, turn.run if turn else None, timeout=deadline.seconds if deadline else None,
            calls=turn.calls if turn and host_kind is None else None, by_rules=not is_stopping,
            host_kind=host_kind,
        )  # fmt: skip
        question, change = opened.question, opened.change
        if is_stopping:
            # Nobody should be asked about this turn any more.
            change.add(state.desk.cancel_all(None)[1])
        ticket = self._scribe.write(change.drafts, statements=change.statements)
        if turn is not None:
            turn.alive.set()
        if opened.chosen is not None:
            self._on_decided(asked, opened.chosen, ticket)
        elif question is None or is_stopping:
            self._on_dismissed([asked], ticket)
        else:
            self._on_question(question.row.permission_id)
            return question.row.permission_id
        return None

    def withdraw_question(self, permission_id: str) -> None:
        """Nobody needs the answer any more."""
        change = self._state.desk.withdraw(permission_id, "the request was cancelled")
        if change.drafts:
            self._scribe.write(change.drafts, statements=change.statements)

    def on_gone(self, gone: AgentGoneError) -> None:
        """The process is gone; its open prompt was failed before this is called."""
        state = self._state
        _, change = state.withdraw_decisions("the agent's process ended")
        drafts = list(change.drafts)
        if gone.stderr:
            run = state.late_run()
            late = {"late": True} if run is not None else None
            drafts.append(note(Kind.AGENT_STDERR, {"text": gone.stderr}, run=run, host=late))
        if drafts:
            self._scribe.write(drafts, statements=change.statements)
        if self.binder is not None:
            self.binder.unbind(str(gone), status="lost")


def too_many_questions() -> OverloadedError:
    """The answer to a question beyond those that people can be asked."""
    return OverloadedError(
        f"{MAX_QUESTIONS} questions of the session are open; wait for an answer to one of them",
        retryAfterMs=1000,
    )


async def settled(writer: Writer, ticket: Ticket) -> None:
    """Wait for a unit, but not for a disk that is in trouble: some steps cannot be put off."""
    try:
        await writer.durable(ticket)
    except (StorageError, StorageFullError):
        return
