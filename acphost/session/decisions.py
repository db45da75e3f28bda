"""Questions an agent puts to people: opened, answered once, or withdrawn (contract section 8)."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from acphost.errors import AlreadyResolvedError, InvalidParamsError, PermissionNotFoundError
from acphost.ids import Clock, mint
from acphost.journal.event import Draft, RunRef, classify
from acphost.journal.rows import DecisionRow, RunRow, SessionRow
from acphost.journal.statements import Statement, save_decision
from acphost.provider.switchboard import AgentRequest
from acphost.session.scribe import encode, note, run_ref
from acphost.wire.acp import PermissionOption, PermissionRequest, lenient
from acphost.wire.event import Kind, Origin, Source

CANCELLED: Mapping[str, object] = {"outcome": {"outcome": "cancelled"}}


@dataclass(slots=True)
class OpenQuestion:
    """A decision somebody still has to make, and the request it answers."""

    row: DecisionRow
    asked: AgentRequest
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


class DecisionDesk:
    """The open questions of one session."""

    def __init__(self, session: SessionRow, source: Source, now: Clock) -> None:
        self._session = session
        self._source = source
        self._now = now
        self._open: dict[str, OpenQuestion] = {}

    def __len__(self) -> int:
        return len(self._open)

    def get(self, permission_id: str) -> OpenQuestion | None:
        """An open question."""
        return self._open.get(permission_id)

    def open(
        self, asked: AgentRequest, run: RunRow | None, *, timeout: float | None
    ) -> tuple[OpenQuestion | None, Change]:
        """Record a request for permission; None if it offers nothing to choose from."""
        raw = bytes(asked.params)
        try:
            request = lenient(PermissionRequest, raw)
        except msgspec.DecodeError:
            request = PermissionRequest()
        run_of = None if run is None else run_ref(run)
        if not request.options:
            draft = Draft(
                Kind.EVIDENCE, raw, run_of, self._source,
                b'{"evidence":"permission_without_options"}', None, classify(raw),
            )  # fmt: skip
            return None, Change([draft], [])
        now = self._now()
        row = DecisionRow(
            permission_id=mint("perm"),
            kind=_kind(request),
            session_key=self._session.key,
            session_id=self._session.session_id,
            run_key=None if run is None else run.key,
            run_id=None if run is None else run.run_id,
            tool_call_key=request.tool_call.tool_call_id or None,
            options=encode(request.options),
            # The whole request is in the event; a diff of megabytes need not be kept twice.
            request=encode({"toolCall": request.tool_call}),
            created_at=now,
            expires_at=None if timeout is None else now + int(timeout * 1000),
        )
        question = OpenQuestion(row, asked, request.options)
        self._open[row.permission_id] = question
        payload = (b'{"permissionId":%b,"kind":%b,"toolCall":%b,"options":%b,"request":%b}') % (
            encode(row.permission_id),
            encode(row.kind),
            _member(raw, "toolCall", b"null"),
            _member(raw, "options", b"[]"),
            raw,
        )
        draft = Draft(
            Kind.PERMISSION_REQUESTED, payload, run_of, self._source, None, None, classify(payload)
        )
        return question, Change([draft], [save_decision(row)])

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
            row = question.row
            row.status, row.resolved_at = "expired", self._now()
            change.drafts.append(withdrawal(row, reason))
            change.statements.append(save_decision(row))
        self._open.clear()
        return questions, change

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


def withdrawal(row: DecisionRow, reason: str) -> Draft:
    """The event that closes a question without an answer."""
    draft = note(Kind.PERMISSION_EXPIRED, {"permissionId": row.permission_id, "reason": reason})
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


def _member(raw: bytes, name: str, missing: bytes) -> bytes:
    try:
        return bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[name])
    except (msgspec.DecodeError, KeyError):
        return missing


def _kind(request: PermissionRequest) -> str:
    """Several ways to say yes are a choice; one yes and one no a permission."""
    allowing = sum(option.kind == "allow_once" for option in request.options)
    if allowing > 1:
        return "choice"
    return "plan" if request.tool_call.kind == "switch_mode" else "permission"
