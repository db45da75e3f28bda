"""Questions an agent puts to people: opened, answered once, or withdrawn (contract section 8)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from acphost.errors import AlreadyResolvedError, InvalidParamsError, PermissionNotFoundError
from acphost.ids import Clock, mint
from acphost.journal.event import Draft, RunRef, classify
from acphost.journal.rows import DecisionRow, RunRow, SessionRow
from acphost.journal.statements import Statement, save_decision
from acphost.provider.connection import AgentConnection
from acphost.provider.switchboard import Asked
from acphost.provider.traits import Traits
from acphost.session.calls import Call, CallBook, call_key
from acphost.session.consents import Consents
from acphost.session.policy import Decided, decide
from acphost.session.scribe import encode, note, run_ref
from acphost.session.subject import subject_of
from acphost.wire.acp import PermissionOption, PermissionRequest, ToolCall, ToolReport, lenient
from acphost.wire.event import HOST, Kind, Origin
from acphost.wire.jsonrpc import RequestId
from acphost.wire.policy import PermissionSubject, PolicyRule

#: The kind of a decision that is no permission (see `elicitations`).
ELICITATION = "elicitation"
CANCELLED: Mapping[str, object] = {"outcome": {"outcome": "cancelled"}}


class Deadline(NamedTuple):
    """How long (seconds) a question waits for people, and what answers it then."""

    seconds: float
    rule: str


@dataclass(slots=True)
class OpenQuestion:
    """A decision somebody still has to make, and the request it answers."""

    row: DecisionRow
    asked: Asked
    options: list[PermissionOption]


@dataclass(slots=True)
class Change:
    """What one step changes in history, to be written as one unit."""

    drafts: list[Draft]
    statements: list[Statement]

    def add(self, other: "Change") -> None:
        """Let this be in the same unit."""
        self.drafts += other.drafts
        self.statements += other.statements


@dataclass(slots=True)
class Opened:
    """What came of a request: the question it is, and an option that a rule has chosen."""

    change: Change
    question: OpenQuestion | None = None
    chosen: str | None = None


class DecisionDesk:
    """The open questions of one session."""

    def __init__(
        self,
        session: SessionRow,
        traits: Traits,
        now: Clock,
        rules: Callable[[], Iterable[PolicyRule]] = tuple,
    ) -> None:
        self._session = session
        self._traits = traits
        self._now = now
        self._rules = rules
        self._open: dict[str, OpenQuestion] = {}
        #: What was allowed in this turn.
        self.consents = Consents()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, permission_id: str) -> OpenQuestion | None:
        """An open question."""
        return self._open.get(permission_id)

    def open(
        self,
        asked: Asked,
        run: RunRow | None,
        *,
        timeout: float | None,
        calls: CallBook | None = None,
        by_rules: bool = True,
        host_kind: str | None = None,
    ) -> Opened:
        """Record a request for permission; no question if it offers nothing to choose from.

        Where a rule has an answer that is offered, it is given in the same step. `host_kind`: the
        host itself asks, about something of that kind.
        """
        raw = bytes(asked.params)
        try:
            request = lenient(PermissionRequest, raw)
        except msgspec.DecodeError:
            request = PermissionRequest()
        if not request.options:
            draft = Draft(
                Kind.EVIDENCE, raw, run_ref(run) if run else None, self._traits.source,
                b'{"evidence":"permission_without_options"}', None, classify(raw),
            )  # fmt: skip
            return Opened(Change([draft], []))
        kind, call, key = self._kind(request), None, None
        if request.tool_call.tool_call_id:
            call, key = self._meant(request.tool_call, calls)
        subject = self._subject(request.tool_call, call, is_yes_or_no=kind != "choice")
        decided = decide(subject, self._rules() if by_rules else ())
        chosen = _offered(request.options, decided)
        now = self._now()
        row = pending(mint("perm"), host_kind or kind, self._session, run, now, timeout)
        row.tool_call_key = key
        row.options = encode(request.options)
        # The whole request is in the event; a diff of megabytes need not be kept twice.
        row.request = encode({"toolCall": _shown(request.tool_call, call), "subject": subject})
        question = OpenQuestion(row, asked, request.options)
        self._open[row.permission_id] = question
        payload = _told(row, raw)
        draft = Draft(
            Kind.PERMISSION_REQUESTED, payload, run_ref(run) if run else None,
            self._traits.source if host_kind is None else HOST,
            _host_facts(key, call, decided, chosen), None, classify(payload),
        )  # fmt: skip
        change = Change([draft], [save_decision(row)])
        if chosen is not None and decided.rule is not None:
            change.add(self._close(question, "selected", chosen, None, decided.rule.name))
        return Opened(change, question, chosen)

    def _kind(self, request: PermissionRequest) -> str:
        """One yes and a no are a permission; all else is a choice, which only people can make."""
        kinds = [option.kind for option in request.options]
        may_refuse = any(kind.startswith("reject") for kind in kinds)
        if (
            kinds.count("allow_once") > 1
            or not may_refuse
            or self._traits.is_question(request.tool_call)
        ):
            return "choice"
        return "plan" if request.tool_call.kind == "switch_mode" else "permission"

    def _meant(self, asked: ToolReport, calls: CallBook | None) -> tuple[Call | None, str]:
        """The call that a question is about, as far as that is known, and its key."""
        if calls is None:
            return None, call_key("-", asked.tool_call_id, 1)
        meant = calls.find(asked.tool_call_id)
        if meant is None:
            named = self._traits.meant_call(asked, calls.candidates())
            # Several questions may be about one call.
            named = named or self._traits.meant_call(asked, list(calls))
            meant = calls.find(named) if named is not None else None
        if meant is None:
            return None, calls.mention(asked.tool_call_id)
        calls.claim(meant)
        return meant, meant.key

    def _subject(
        self, asked: ToolReport, meant: Call | None, *, is_yes_or_no: bool
    ) -> PermissionSubject:
        session = self._session
        more = msgspec.json.decode(session.additional_directories, type=list[str])
        return subject_of(
            asked, meant, agent_id=session.agent_id, tool=self._traits.tool_name(asked, meant),
            cwd=session.cwd, roots=[session.cwd, *more], is_yes_or_no=is_yes_or_no,
        )  # fmt: skip

    def resolve(
        self, permission_id: str, option_id: str, *, origin: Origin | None, rule: str | None = None
    ) -> tuple[OpenQuestion, Change]:
        """Take the first valid answer; from here on every other one comes too late.

        Raises PermissionNotFoundError, InvalidParamsError for an option that was not offered.
        """
        question = self._open.get(permission_id)
        if question is None:
            raise PermissionNotFoundError(f"no open question {permission_id!r}")
        offered = [option.option_id for option in question.options]
        if option_id not in offered:
            raise InvalidParamsError(
                f"option {option_id!r} was not offered - at `$.optionId`", offered=offered
            )
        return question, self._close(question, "selected", option_id, origin, rule)

    def cancel_all(self, origin: Origin | None) -> tuple[list[OpenQuestion], Change]:
        """The turn is being stopped: answer every open question `cancelled`."""
        questions = list(self._open.values())
        change = Change([], [])
        for question in questions:
            change.add(self._close(question, "cancelled", None, origin, None))
        return questions, change

    def withdraw_all(self, reason: str) -> tuple[list[OpenQuestion], Change]:
        """Nobody waits for an answer any more: the turn or the agent is over."""
        questions = list(self._open.values())
        change = Change([], [])
        for question in questions:
            change.add(self._expire(question.row, reason))
        self._open.clear()
        self.consents.clear()
        return questions, change

    def withdraw(self, permission_id: str, reason: str) -> Change:
        """Nobody waits for this answer any more; nothing if it was answered."""
        question = self._open.pop(permission_id, None)
        if question is None:
            return Change([], [])
        return self._expire(question.row, reason)

    def withdraw_request(
        self, connection: AgentConnection, request_id: RequestId
    ) -> tuple[Asked, Change] | None:
        """The agent takes a question back; None if it is not open."""
        for question in self._open.values():
            if question.asked.is_it(connection, request_id):
                del self._open[question.row.permission_id]
                return question.asked, self._expire(question.row, "the agent took it back")
        return None

    def _expire(self, row: DecisionRow, reason: str) -> Change:
        row.status, row.resolved_at = "expired", self._now()
        return Change([withdrawal(row, reason)], [save_decision(row)])

    def reject_option(self, permission_id: str) -> str | None:
        """The offered option that says no, for a question nobody answers in time."""
        question = self._open.get(permission_id)
        if question is None:
            return None
        for kind in ("reject_once", "reject_always"):
            for option in question.options:
                if option.kind == kind:
                    return option.option_id
        return None

    def _close(
        self,
        question: OpenQuestion,
        outcome: str,
        option_id: str | None,
        origin: Origin | None,
        rule: str | None,
    ) -> Change:
        row = question.row
        del self._open[row.permission_id]
        kinds = [each.kind for each in question.options if each.option_id == option_id]
        if kinds and kinds[0].startswith("allow"):
            self.consents.add(question.asked.params)
        row.status, row.outcome, row.option_id, row.rule = "resolved", outcome, option_id, rule
        row.by = None if origin is None else encode(origin)
        row.resolved_at = self._now()
        payload = {
            "permissionId": row.permission_id,
            "outcome": outcome,
            "optionId": option_id,
            "by": origin,
            "rule": rule,
        }
        draft = note(Kind.PERMISSION_RESOLVED, payload, origin=origin)
        if row.run_key is not None and row.run_id is not None:
            draft = draft._replace(run=RunRef(row.run_key, row.run_id))
        return Change([draft], [save_decision(row)])


def pending(
    decision_id: str, kind: str, session: SessionRow, run: RunRow | None, now: int,
    timeout: float | None,
) -> DecisionRow:  # fmt: skip
    """A decision that somebody has to make from `now` (ms) on, within `timeout` seconds."""
    return DecisionRow(
        permission_id=decision_id,
        kind=kind,
        session_key=session.key,
        session_id=session.session_id,
        run_key=None if run is None else run.key,
        run_id=None if run is None else run.run_id,
        created_at=now,
        expires_at=None if timeout is None else now + int(timeout * 1000),
    )


def withdrawal(row: DecisionRow, reason: str) -> Draft:
    """The event that closes a question without an answer."""
    kind, name = Kind.PERMISSION_EXPIRED, "permissionId"
    if row.kind == ELICITATION:
        kind, name = Kind.ELICITATION_EXPIRED, "elicitationId"
    draft = note(kind, {name: row.permission_id, "reason": reason})
    if row.run_key is None or row.run_id is None:
        return draft
    return draft._replace(run=RunRef(row.run_key, row.run_id))


def already_resolved(row: DecisionRow) -> AlreadyResolvedError:
    """What a client is told that answers too late."""
    said = "withdrawn" if row.status == "expired" else f"answered: {row.option_id or row.outcome}"
    return AlreadyResolvedError(
        f"the question {row.permission_id!r} was already {said}",
        by=None if row.by is None else msgspec.json.decode(row.by),
        outcome=row.outcome,
        optionId=row.option_id,
        status=row.status,
    )


def _told(row: DecisionRow, raw: bytes) -> bytes:
    """The payload of the event: what people decide by, and the request as the agent wrote it."""
    return b'{"permissionId":%b,"kind":%b,"toolCall":%b,"options":%b,"request":%b}' % (
        encode(row.permission_id),
        encode(row.kind),
        _member(raw, "toolCall", b"null"),
        _member(raw, "options", b"[]"),
        raw,
    )


def _member(raw: bytes, name: str, missing: bytes) -> bytes:
    try:
        return bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[name])
    except (msgspec.DecodeError, KeyError):
        return missing


def _offered(options: list[PermissionOption], decided: Decided) -> str | None:
    """The one option of the kind that a rule answers; None leaves the question to people."""
    if decided.rule is None or decided.answer == "ask":
        return None
    fitting = [option.option_id for option in options if option.kind == decided.answer]
    return fitting[0] if len(fitting) == 1 else None


def _host_facts(
    key: str | None, call: Call | None, decided: Decided, chosen: str | None
) -> bytes | None:
    """What stands beside a request: which call it means, and a rule that did not answer it."""
    facts: dict[str, object] = {} if key is None else {"toolCallKey": key}
    if call is not None and call.occurrence > 1:
        facts["occurrence"] = call.occurrence
    if decided.rule is not None and chosen is None:
        facts["policy"] = {"rule": decided.rule.name, "answer": decided.answer}
    return encode(facts) if facts else None


def _shown(asked: ToolReport, meant: Call | None) -> ToolCall:
    """What is told of the call in lists; what the request leaves out was told before."""
    return ToolCall(
        tool_call_id=asked.tool_call_id,
        title=asked.title or (meant.title if meant is not None else None),
        kind=asked.kind or (meant.kind if meant is not None else None),
        status=asked.status,
    )
