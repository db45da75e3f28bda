"""What clients command of a session's queue; each is on disk before it is answered."""

from acphost.errors import ConflictError
from acphost.journal.store import Store
from acphost.session import requests, views
from acphost.session.conversation import Conversation
from acphost.session.house import House
from acphost.session.queries import Queries
from acphost.session.queue import Waiting
from acphost.wire.event import Origin
from acphost.wire.host import QueuedRun
from acphost.wire.queue import QueueEditParams, QueueMoveParams


class QueueCommands:
    """Finds the conversation, has it done there, and waits for the disk."""

    def __init__(self, store: Store, house: House, queries: Queries) -> None:
        self._store = store
        self._house = house
        self._queries = queries

    async def edit(self, params: QueueEditParams, origin: Origin) -> QueuedRun:
        """Give a run that waits another prompt.

        Raises InvalidParamsError, UnsupportedContentError, RunNotFoundError, ConflictError.
        """
        content, preview = requests.prompt_of(params.prompt, params.text)
        conversation, waiting = await self._waiting(params.host_run_id)
        conversation.readiness.check_content(content)
        ticket = conversation.queue.edit(
            waiting, content, preview, expected_rev=params.expected_rev, origin=origin
        )
        shown = self._shown(conversation, waiting)
        await self._store.writer.durable(ticket)
        return shown

    async def move(self, params: QueueMoveParams, origin: Origin) -> QueuedRun:
        """Give a run that waits another place. Raises RunNotFoundError, ConflictError."""
        conversation, waiting = await self._waiting(params.host_run_id)
        ticket = conversation.queue.move(
            waiting, params.position, expected_rev=params.expected_rev, origin=origin
        )
        shown = self._shown(conversation, waiting)
        await self._store.writer.durable(ticket)
        return shown

    async def hold(self, session_id: str, reason: str | None, origin: Origin) -> None:
        """Let nothing further start in a session."""
        conversation = await self._house.conversation(session_id)
        await self._store.writer.durable(conversation.queue.hold(reason, origin))

    async def release(self, session_id: str, origin: Origin) -> None:
        """Let the session's queue go on."""
        conversation = await self._house.conversation(session_id)
        await self._store.writer.durable(conversation.queue.release(origin))

    async def _waiting(self, run_id: str) -> tuple[Conversation, Waiting]:
        run = await self._queries.run_row(run_id)
        conversation = await self._house.conversation(run.session_id)
        waiting = conversation.state.queue.find(run_id)
        if waiting is None:
            # What it has become may be on its way to the disk.
            await self._store.writer.durable(self._store.writer.record(()))
            run = await self._queries.run_row(run_id)
            raise ConflictError(
                f"run {run_id} is {run.status}; only one that waits can be changed",
                status=run.status,
            )
        return conversation, waiting

    def _shown(self, conversation: Conversation, waiting: Waiting) -> QueuedRun:
        state = conversation.state
        position = state.queue.place_of(waiting.run.run_id) + (1 if state.turn else 0)
        return views.queued_view(waiting.run, conversation.row, waiting.content, position)
