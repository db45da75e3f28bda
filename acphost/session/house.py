"""All conversations of the daemon: made, found, and ended together."""

from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acphost.errors import (
    ConflictError,
    SessionNotFoundError,
    ShuttingDownError,
)
from acphost.ids import Clock
from acphost.journal.rows import RunRow, SessionRow
from acphost.journal.statements import forget_session
from acphost.journal.store import Store
from acphost.journal.writer import SessionLog
from acphost.log import get_logger
from acphost.provider.pool import AgentPool
from acphost.session.content import trace_of
from acphost.session.controls import Kept, write_kept
from acphost.session.conversation import Conversation
from acphost.session.files import Editors
from acphost.session.grants import Grants
from acphost.session.locks import KeyedLocks
from acphost.session.queue import Waiting
from acphost.session.scribe import note
from acphost.session.surroundings import Surroundings
from acphost.session.vault import Vault
from acphost.settings.model import Settings
from acphost.wire.event import Kind, Origin

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseOptions:
    """What the house needs beside the store and the agents."""

    settings: Callable[[], Settings]
    now: Clock
    is_attended: Callable[[], bool]
    vault: Vault
    editors: Editors


class House:
    """Where sessions live: each has one conversation, made at need and ended with the daemon."""

    def __init__(self, store: Store, pool: AgentPool, options: HouseOptions) -> None:
        self._store = store
        self._pool = pool
        self._options = options
        self._now = options.now
        self.vault = options.vault
        self.grants = Grants(store, options.now)
        self._conversations: dict[str, Conversation] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._locks = KeyedLocks()
        self._tasks: TaskGroup | None = None
        self.is_closing = False
        #: Which workspace each live session is in; only live sessions make events.
        self.workspaces: dict[str, str] = {}

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Own the work of all sessions until cancelled. Sessions with a queue start working."""
        # A crash may have come between the end of a session and that of its secrets.
        for session_id in await self.vault.kept():
            if await self._store.reader.session(session_id) is None:
                await self.vault.forget(session_id)
        await self.grants.load()
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            waiting = {run.session_id for run in (await self._store.reader.unfinished()).runs}
            for session_id in waiting:
                await self.conversation(session_id)
            task_status.started()
            await anyio.sleep_forever()

    # -- finding ----------------------------------------------------------------------------------

    def live(self, session_id: str) -> Conversation | None:
        """The conversation, if this daemon has worked on it."""
        return self._conversations.get(session_id)

    @property
    def conversations(self) -> list[Conversation]:
        """Those that this daemon has worked on."""
        return list(self._conversations.values())

    async def conversation(self, session_id: str) -> Conversation:
        """The conversation of a session, brought to life at need. Raises SessionNotFoundError."""
        known = self._conversations.get(session_id)
        if known is not None:
            return known
        async with self._locks.holding(session_id):
            known = self._conversations.get(session_id)
            if known is not None:
                return known
            row = await self._store.reader.session(session_id)
            if row is None:
                raise SessionNotFoundError(f"no session {session_id!r}")
            waiting = await self._store.reader.queued(row.key)
            queue = [await self._waiting(run) for run in waiting]
            unresolved = await self._store.reader.unresolved_runs(row.key)
            conversation = self.settle_in(row, row.last_seq)
            for each in queue:
                conversation.state.queue.join(each)
            conversation.state.unresolved.update(run.run_id for run in unresolved)
            conversation.state.wake()
            return conversation

    async def _waiting(self, run: RunRow) -> Waiting:
        """A run that was accepted in an earlier life, with all that goes to the agent."""
        reader = self._store.reader
        content = await reader.prompt(run.key)
        created = await reader.events_after_seq(
            run.session_key, (run.first_seq or 1) - 1, limit=1, max_bytes=1, run_key=run.key
        )
        return Waiting(run, content or b"[]", trace_of(created[0].payload if created else b"{}"))

    def settle_in(self, row: SessionRow, seq: int) -> Conversation:
        """Have a session worked on from here on. Raises ShuttingDownError."""
        if self._tasks is None or self.is_closing:
            raise ShuttingDownError("the daemon is stopping")
        log = SessionLog(row.key, row.session_id, seq)
        conversation = Conversation(row, log=log, around=self._surroundings(self._tasks))
        self._conversations[row.session_id] = conversation
        self.workspaces[row.session_id] = row.workspace_id
        scope = self._scopes[row.session_id] = anyio.CancelScope()
        self._tasks.start_soon(_supervise, conversation, scope)
        return conversation

    def _surroundings(self, tasks: TaskGroup) -> Surroundings:
        options = self._options
        return Surroundings(
            writer=self._store.writer, reader=self._store.reader, pool=self._pool, tasks=tasks,
            settings=options.settings, now=options.now, is_attended=options.is_attended,
            vault=options.vault, editors=options.editors, grants=self.grants,
        )  # fmt: skip

    # -- sessions ---------------------------------------------------------------------------------

    def is_at_rest(self, session_id: str) -> bool:
        """Whether nothing runs, waits or starts in a session, and no agent is attached to it."""
        live = self._conversations.get(session_id)
        return live is None or live.is_at_rest

    async def hand_over(self, session_id: str, agent_id: str, runtime: str, origin: Origin) -> None:
        """Have another agent go on with a session; it is told the history when it starts.

        Raises ConflictError while something runs or waits: that was sent to the one there is.
        """
        conversation = await self.conversation(session_id)
        row = conversation.row
        if row.agent_id == agent_id:
            return
        _check_unused(conversation)
        await conversation.reset(origin, is_cold=True)
        async with self._locks.holding(session_id):
            # From here to the append nothing is awaited: no run can slip in between.
            _check_unused(conversation)
            row.agent_id, row.runtime, row.resolved_model = agent_id, runtime, None
            # The other agent's settings have the same names only by chance.
            row.settings = write_kept(row.settings, Kept())
            told = {"changed": {"agentId": agent_id}}
            ticket = conversation.scribe.write(
                [note(Kind.SESSION_CONFIG_UPDATED, told, origin=origin)]
            )
            # What is particular to the agent is built into the conversation: a new one is made.
            self._conversations.pop(session_id, None)
            scope = self._scopes.pop(session_id, None)
            if scope is not None:
                scope.cancel()
            await self._store.writer.settled(ticket)

    async def forget(self, session_id: str, cause: str) -> bool:
        """Delete a session and all that is kept of it; False if it is at work, or pinned."""
        return await self._remove(session_id, cause, None, is_forced=False)

    async def remove(self, session_id: str, cause: str, origin: Origin) -> bool:
        """The same for a person who wants it gone, whatever its state; False if it is gone."""
        return await self._remove(session_id, cause, origin, is_forced=True)

    async def _remove(
        self, session_id: str, cause: str, origin: Origin | None, *, is_forced: bool
    ) -> bool:
        async with self._locks.holding(session_id):
            row = await self._store.reader.session(session_id)
            if row is None:
                return False
            is_busy = bool(row.pinned or row.active_run_id or row.queued_count)
            if not is_forced and (is_busy or not self.is_at_rest(session_id)):
                return False
            # From here to the append nothing is awaited: no run can slip in between.
            conversation = self._conversations.pop(session_id, None)
            if conversation is not None:
                conversation.scribe.is_closed = True
            self.workspaces.pop(session_id, None)
            scope = self._scopes.pop(session_id, None)
            if scope is not None:
                scope.cancel()
            told = {"sessionId": session_id, "title": row.title, "cause": cause}
            draft = note(Kind.SESSION_DELETED, told, origin=origin)
            ticket = self._store.writer.append(
                None, [draft], forget_session(row.key), at=self._now()
            )
            await self._store.writer.settled(ticket)
        await self.vault.forget(session_id)
        return True

    # -- agents -----------------------------------------------------------------------------------

    def is_configured(self, agent_id: str) -> bool:
        """Whether runs can be sent to that agent."""
        return agent_id in self._options.settings().agents

    def served(self) -> dict[str, list[str]]:
        """Which sessions are bound to which launch now."""
        found: dict[str, list[str]] = {}
        for session_id, conversation in self._conversations.items():
            binding = conversation.binder.binding
            if binding is not None:
                found.setdefault(binding.process.plan.launch_id, []).append(session_id)
        return found

    def commands(self) -> dict[str, str]:
        """Launches of commands that run for agents now, and the session of each."""
        return {
            launch_id: session_id
            for session_id, conversation in self._conversations.items()
            for launch_id in conversation.services.terminals.launches.values()
        }

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Start nothing further; what runs may end."""
        self.is_closing = True
        for conversation in self._conversations.values():
            conversation.close()

    async def turns_over(self) -> None:
        """Return when no turn runs any more."""
        for conversation in list(self._conversations.values()):
            await conversation.turn_over()

    async def leave(self) -> None:
        """Interrupt the turns that still run, and end all agents."""
        for conversation in self._conversations.values():
            conversation.interrupt()
            conversation.part()
        await self._pool.close()
        for conversation in self._conversations.values():
            await conversation.services.terminals.over()


def _check_unused(conversation: Conversation) -> None:
    state = conversation.state
    if state.turn is not None or state.queue or state.starting:
        raise ConflictError("the agent can be changed only while nothing runs, waits or starts")


async def _supervise(conversation: Conversation, scope: anyio.CancelScope) -> None:
    """A mistake of ours in one session ends its turn, not the daemon."""
    with scope:
        while True:
            try:
                await conversation.run()
            except Exception:  # border: the supervisor of a session's work
                log.exception("session_failed", session=conversation.row.session_id)
                await conversation.stumble()
