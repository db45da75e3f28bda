"""What becomes of forms and addresses that a session's agent puts to people."""

import anyio
import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.errors import InvalidParamsError, PermissionNotFoundError, RequestCancelledError
from acphost.journal.writer import Ticket
from acphost.provider.connection import AgentConnection
from acphost.provider.switchboard import AgentRequest
from acphost.session.decisions import Change
from acphost.session.listener import too_many_questions
from acphost.session.questions import Questions
from acphost.session.scribe import Scribe
from acphost.session.state import SessionState
from acphost.session.surroundings import Surroundings
from acphost.wire.acp_elicitation import ElicitationComplete
from acphost.wire.event import Origin
from acphost.wire.jsonrpc import RequestId


class Asking:
    """Brings the answers to the agent, each journaled before it is sent."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        questions: Questions,
        around: Surroundings,
    ) -> None:
        self._state = state
        self._scribe = scribe
        self._questions = questions
        self._around = around

    # -- the agent --------------------------------------------------------------------------------

    def take(self, asked: AgentRequest) -> None:
        """`elicitation/create`: put it to people, or refuse what is not offered."""
        state, turn = self._state, self._state.turn
        timeout = self._around.permissions().timeout
        if state.has_too_many_questions:
            asked.refuse(too_many_questions())
            return
        try:
            opened, change = state.forms.open(asked, turn.run if turn else None, timeout=timeout)
        except InvalidParamsError as exc:
            asked.refuse(exc)
            return
        is_stopping = turn is not None and turn.run.cancel_requested_at is not None
        if is_stopping:
            # Nobody should be asked about this turn any more.
            change.add(state.forms.cancel_all(None)[1])
        ticket = self._write(change)
        if turn is not None:
            turn.alive.set()
        if is_stopping:
            self._questions.dismiss([asked], ticket)
        else:
            self._watch(opened.row.permission_id, timeout)

    def take_complete(self, params: Raw) -> bool:
        """`elicitation/complete`; whether it was about an address of this session."""
        try:
            agents_id = msgspec.json.decode(params, type=ElicitationComplete).elicitation_id
        except msgspec.DecodeError:
            return False
        found = self._state.forms.complete(agents_id) if agents_id else None
        if found is None:
            return False
        asked, change = found
        ticket = self._write(change)
        if asked is not None:
            self._around.tasks.start_soon(self._send, asked, {"action": "accept"}, ticket)
        return True

    def take_withdrawal(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """`$/cancel_request` for an open question: it is closed, and answered all the same."""
        state = self._state
        found = state.forms.withdraw_request(connection, request_id) or state.desk.withdraw_request(
            connection, request_id
        )
        if found is None:
            return False
        asked, change = found
        self._write(change)
        asked.refuse(RequestCancelledError("the request was taken back"))
        return True

    # -- people -----------------------------------------------------------------------------------

    async def answer(
        self,
        elicitation_id: str,
        action: str,
        content: Raw | UnsetType = UNSET,
        *,
        origin: Origin | None,
        rule: str | None = None,
    ) -> None:
        """Answer an open one; the first valid answer wins.

        Raises PermissionNotFoundError, InvalidParamsError.
        """
        opened, answer, change = self._state.forms.resolve(
            elicitation_id, action, content, origin=origin, rule=rule
        )
        ticket = self._write(change)
        with anyio.CancelScope(shield=True):
            # The client may go away; its answer has been taken and must reach the agent.
            await self._send(opened.asked, answer, ticket)

    async def _send(self, asked: AgentRequest, answer: object, ticket: Ticket) -> None:
        await self._scribe.durable(ticket)
        asked.answer(answer)

    def _watch(self, elicitation_id: str, timeout: float | None) -> None:
        if self._around.permissions().unattended == "reject" and not self._around.is_attended():
            self._around.tasks.start_soon(self._decline, elicitation_id, 0.0, "unattended")
        elif timeout is not None:
            self._around.tasks.start_soon(self._decline, elicitation_id, timeout, "timeout")

    async def _decline(self, elicitation_id: str, delay: float, rule: str) -> None:
        await anyio.sleep(delay)
        try:
            await self.answer(elicitation_id, "decline", origin=None, rule=rule)
        except PermissionNotFoundError:
            return

    def _write(self, change: Change) -> Ticket:
        return self._scribe.write(change.drafts, statements=change.statements)
