"""What becomes of the questions of a session's agent: answered by people, by time, or withdrawn."""

import anyio

from acphost.errors import PermissionNotFoundError
from acphost.journal.writer import Ticket
from acphost.provider.switchboard import Asked
from acphost.session.decisions import CANCELLED, Deadline
from acphost.session.elicitations import DISMISSED
from acphost.session.listener import settled
from acphost.session.scribe import Scribe
from acphost.session.state import SessionState
from acphost.session.surroundings import Surroundings
from acphost.wire.event import Origin


class Questions:
    """Brings answers to the agent, each journaled before it is sent."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        around: Surroundings,
        *,
        patience: float | None,
    ) -> None:
        """`patience` (seconds): how long the agent waits for an answer; None: for ever."""
        self._state = state
        self._scribe = scribe
        self._around = around
        self._patience = patience

    async def answer(
        self, permission_id: str, option_id: str, *, origin: Origin | None, rule: str | None = None
    ) -> None:
        """Answer an open question; the first valid answer wins.

        Raises PermissionNotFoundError, InvalidParamsError.
        """
        question, change = self._state.desk.resolve(
            permission_id, option_id, origin=origin, rule=rule
        )
        ticket = self._scribe.write(change.drafts, statements=change.statements)
        with anyio.CancelScope(shield=True):
            # The client may go away; its answer has been taken and must reach the agent.
            await self._scribe.durable(ticket)
            question.asked.answer(_selected(option_id))

    def pass_on(self, asked: Asked, option_id: str, ticket: Ticket) -> None:
        """A rule has answered: tell the agent once that is on disk."""
        self._around.tasks.start_soon(self._tell, asked, option_id, ticket)

    async def _tell(self, asked: Asked, option_id: str, ticket: Ticket) -> None:
        await self._scribe.durable(ticket)
        asked.answer(_selected(option_id))

    def deadline(self) -> Deadline | None:
        """When a question that is opened now is rejected if nobody answers; None: never.

        An agent that stops waiting is told before that: an answer it does not hear is none.
        """
        timeout = self._around.permissions().timeout
        if self._patience is not None and (timeout is None or timeout > self._patience):
            return Deadline(self._patience, "agent_timeout")
        return None if timeout is None else Deadline(timeout, "timeout")

    def watch(self, permission_id: str) -> None:
        """A question was opened: see to it that it is not forgotten, where so configured."""
        deadline = self.deadline()
        if self._around.permissions().unattended == "reject" and not self._around.is_attended():
            self._around.tasks.start_soon(self._reject, permission_id, 0.0, "unattended")
        elif deadline is not None:
            self._around.tasks.start_soon(self._reject, permission_id, *deadline)

    async def _reject(self, permission_id: str, delay: float, rule: str) -> None:
        """Say no by an offered option; without one the question stays open."""
        await anyio.sleep(delay)
        option_id = self._state.desk.reject_option(permission_id)
        if option_id is None:
            return
        try:
            await self.answer(permission_id, option_id, origin=None, rule=rule)
        except PermissionNotFoundError:
            return

    def dismiss(self, asked: list[Asked], ticket: Ticket) -> None:
        """No person will answer these; their agent is told, as it would be by a person."""
        if asked:
            self._around.tasks.start_soon(self.answer_cancelled, asked, ticket)

    async def answer_cancelled(self, asked: list[Asked], ticket: Ticket) -> None:
        """Answer these `cancelled` once that is on disk."""
        await settled(self._around.writer, ticket)
        while asked:
            request = asked.pop()
            is_form = request.method == "elicitation/create"
            request.answer(DISMISSED if is_form else CANCELLED)


def _selected(option_id: str) -> dict[str, object]:
    return {"outcome": {"outcome": "selected", "optionId": option_id}}
