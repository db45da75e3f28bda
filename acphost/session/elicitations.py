"""What agents ask people beside permission: opened, answered once, or withdrawn (guide A60).

They are decisions like any other and kept in the same table; what differs is the answer. An
address is shown with its host and never opened by the daemon.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, UnsetType

from acphost.errors import InvalidParamsError, PermissionNotFoundError
from acphost.ids import Clock, mint
from acphost.journal.event import Draft, RunRef, classify
from acphost.journal.rows import DecisionRow, RunRow, SessionRow
from acphost.journal.statements import save_decision
from acphost.provider.connection import AgentConnection
from acphost.provider.switchboard import AgentRequest
from acphost.session.decisions import ELICITATION, Change, pending, withdrawal
from acphost.session.forms import Form, fill, read_form
from acphost.session.scribe import encode, note, run_ref
from acphost.wire.acp import lenient
from acphost.wire.acp_elicitation import ElicitationRequest
from acphost.wire.event import Kind, Origin, Source
from acphost.wire.jsonrpc import RequestId

Answer = dict[str, object]

DECLINED: Mapping[str, object] = {"action": "decline"}
DISMISSED: Mapping[str, object] = {"action": "cancel"}
#: Addresses of other kinds could make a client run something.
_SCHEMES = frozenset({"http", "https"})


@dataclass(slots=True)
class OpenElicitation:
    """A form or an address that somebody still has to deal with."""

    row: DecisionRow
    asked: AgentRequest
    request: ElicitationRequest
    #: None: an address, not a form.
    form: Form | None


class ElicitationDesk:
    """The open elicitations of one session."""

    def __init__(self, session: SessionRow, source: Source, now: Clock) -> None:
        self._session = session
        self._source = source
        self._now = now
        self._open: dict[str, OpenElicitation] = {}
        #: Addresses that were accepted, by the agent's ids: it may tell when all is done there.
        self._visited: dict[str, DecisionRow] = {}

    def __len__(self) -> int:
        return len(self._open)

    def get(self, elicitation_id: str) -> OpenElicitation | None:
        """An open one."""
        return self._open.get(elicitation_id)

    def open(
        self, asked: AgentRequest, run: RunRow | None, *, timeout: float | None
    ) -> tuple[OpenElicitation, Change]:
        """Record a request. Raises InvalidParamsError for what this host does not offer."""
        raw = bytes(asked.params)
        try:
            request = lenient(ElicitationRequest, raw)
        except msgspec.DecodeError as exc:
            raise InvalidParamsError(str(exc)) from exc
        form, host = _understood(request)
        elicitation_id = mint("elic")
        shown: dict[str, object] = {"mode": request.mode, "message": request.message}
        if form is not None:
            shown["requestedSchema"] = request.requested_schema
        else:
            shown |= {"url": request.url, "host": host}
        row = pending(elicitation_id, ELICITATION, self._session, run, self._now(), timeout)
        row.tool_call_key, row.request = request.tool_call_id, encode(shown)
        opened = OpenElicitation(row, asked, request, form)
        self._open[elicitation_id] = opened
        payload = b'{"elicitationId":%b,"mode":%b,"message":%b,"host":%b,"request":%b}' % (
            encode(elicitation_id),
            encode(request.mode),
            encode(request.message),
            encode(host),
            raw,
        )
        draft = Draft(
            Kind.ELICITATION_REQUESTED, payload, None if run is None else run_ref(run),
            self._source, None, None, classify(payload),
        )  # fmt: skip
        return opened, Change([draft], [save_decision(row)])

    def resolve(
        self, elicitation_id: str, action: str, content: Raw | UnsetType, *, origin: Origin | None,
        rule: str | None = None,
    ) -> tuple[OpenElicitation, Answer, Change]:  # fmt: skip
        """Take the first valid answer. Raises PermissionNotFoundError, InvalidParamsError."""
        opened = self._open.get(elicitation_id)
        if opened is None:
            raise PermissionNotFoundError(f"no open elicitation {elicitation_id!r}")
        answer: Answer = {"action": action}
        if isinstance(content, Raw) and bytes(content) != b"null":
            if action != "accept" or opened.form is None:
                raise InvalidParamsError(
                    "a form is filled in only to accept it - at `$.content`",
                    mode=opened.request.mode,
                )
            answer["content"] = fill(opened.form, _content(content))
        elif action == "accept" and opened.form is not None:
            answer["content"] = fill(opened.form, {})
        if action == "accept" and opened.request.elicitation_id is not None:
            self._visited[opened.request.elicitation_id] = opened.row
        return opened, answer, self._close(opened, answer, origin, rule)

    def complete(self, agents_id: str) -> tuple[AgentRequest | None, Change] | None:
        """The agent says that all is done at an address; None if it never named that one.

        Whoever had not answered yet need not any more: it is taken as accepted.
        """
        for opened in self._open.values():
            if opened.request.elicitation_id == agents_id and opened.form is None:
                change = self._close(opened, {"action": "accept"}, None, "completed")
                return opened.asked, change
        row = self._visited.pop(agents_id, None)
        if row is None:
            return None
        told = {"elicitationId": row.permission_id, "action": "accept", "completed": True}
        return None, Change([_of_run(note(Kind.ELICITATION_RESOLVED, told), row)], [])

    def cancel_all(self, origin: Origin | None) -> tuple[list[AgentRequest], Change]:
        """The turn is being stopped: each is answered `cancel`."""
        change = Change([], [])
        asked = [opened.asked for opened in self._open.values()]
        for opened in list(self._open.values()):
            change.add(self._close(opened, dict(DISMISSED), origin, None))
        return asked, change

    def withdraw_all(self, reason: str) -> tuple[list[AgentRequest], Change]:
        """Nobody waits for an answer any more: the turn or the agent is over."""
        change = Change([], [])
        asked = [opened.asked for opened in self._open.values()]
        for opened in list(self._open.values()):
            change.add(self._expire(opened, reason))
        return asked, change

    def withdraw_request(
        self, connection: AgentConnection, request_id: RequestId
    ) -> tuple[AgentRequest, Change] | None:
        """The agent takes one back; None if it is not open."""
        for opened in self._open.values():
            if opened.asked.is_it(connection, request_id):
                return opened.asked, self._expire(opened, "the agent took it back")
        return None

    def _expire(self, opened: OpenElicitation, reason: str) -> Change:
        row = opened.row
        del self._open[row.permission_id]
        row.status, row.resolved_at = "expired", self._now()
        return Change([withdrawal(row, reason)], [save_decision(row)])

    def _close(
        self, opened: OpenElicitation, answer: Answer, origin: Origin | None, rule: str | None
    ) -> Change:
        row = opened.row
        del self._open[row.permission_id]
        row.status, row.outcome, row.rule = "resolved", str(answer["action"]), rule
        row.by = None if origin is None else encode(origin)
        row.resolved_at = self._now()
        told = {"elicitationId": row.permission_id, **answer, "by": origin, "rule": rule}
        draft = _of_run(note(Kind.ELICITATION_RESOLVED, told, origin=origin), row)
        return Change([draft], [save_decision(row)])


def _understood(request: ElicitationRequest) -> tuple[Form | None, str | None]:
    """The form, or the host of the address. Raises InvalidParamsError."""
    if request.mode == "form":
        schema = request.requested_schema
        if isinstance(schema, UnsetType):
            raise InvalidParamsError("expected a schema - at `$.requestedSchema`")
        return read_form(schema), None
    if request.mode != "url":
        raise InvalidParamsError(f"the mode {request.mode!r} is not offered - at `$.mode`")
    if not request.elicitation_id:
        raise InvalidParamsError("expected an id - at `$.elicitationId`")
    return None, _host(request.url or "")


def _host(url: str) -> str:
    """Whom an address belongs to, in the letters in which it cannot pose as another."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        if parts.scheme.lower() in _SCHEMES and host:
            return host.encode("idna").decode() if not host.isascii() else host
    except ValueError:  # UnicodeError is one, too
        pass
    raise InvalidParamsError("expected an http or https address - at `$.url`")


def _content(raw: Raw) -> dict[str, object]:
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except msgspec.DecodeError as exc:
        raise InvalidParamsError(f"{exc} - at `$.content`") from exc


def _of_run(draft: Draft, row: DecisionRow) -> Draft:
    if row.run_key is None or row.run_id is None:
        return draft
    return draft._replace(run=RunRef(row.run_key, row.run_id))
