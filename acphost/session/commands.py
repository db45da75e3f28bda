"""What clients may have done: each command is checked, carried out, and durable when it returns."""

from collections.abc import Sequence
from typing import NoReturn

import anyio
import anyio.to_thread
import msgspec
from msgspec import UnsetType

from acphost.errors import (
    ConflictError,
    InvalidParamsError,
    PermissionNotFoundError,
    RunNotFoundError,
    ShuttingDownError,
)
from acphost.ids import Clock, mint
from acphost.journal.event import Draft
from acphost.journal.rows import DecisionRow, RunRow, SessionRow
from acphost.journal.store import Store
from acphost.provider.pool import AgentPool
from acphost.session import requests, resume
from acphost.session.conversation import Conversation
from acphost.session.decisions import ELICITATION, already_resolved
from acphost.session.house import House
from acphost.session.keepsakes import ADOPTED, TITLED, ForkedFrom, keep
from acphost.session.locks import KeyedLocks
from acphost.session.scribe import note
from acphost.session.vault import Vault
from acphost.wire.controls import SessionConfigureParams
from acphost.wire.elicitation import ElicitationRespondParams
from acphost.wire.event import Kind, Origin
from acphost.wire.host import RunStatus
from acphost.wire.params import (
    RunCreateParams,
    RunResumeParams,
    RuntimeResetParams,
    SessionCreateParams,
)
from acphost.wire.runtime import RuntimeStarted
from acphost.wire.status import RuntimeReset


class Commands:
    """The verbs of the socket that change something."""

    def __init__(
        self, store: Store, pool: AgentPool, house: House, *, vault: Vault, now: Clock
    ) -> None:
        self._store = store
        self._pool = pool
        self._house = house
        self._vault = vault
        self._now = now
        self._locks = KeyedLocks()

    # -- sessions ---------------------------------------------------------------------------------

    async def create_session(self, params: SessionCreateParams, origin: Origin) -> str:
        """Record a session; the agent starts at first need, or at once with `start`."""
        self._refuse_if_unable()
        conversation = await self.make_session(params, origin)
        await self._store.writer.durable(self._store.writer.record(()))
        if params.start:
            conversation.readiness.warm_up()
        return conversation.row.session_id

    async def make_session(
        self,
        params: SessionCreateParams,
        origin: Origin,
        *,
        acp_session_id: str | None = None,
        adopted: bool = False,
        forked_from: ForkedFrom | None = None,
        history: Sequence[Draft] = (),
    ) -> Conversation:
        """Write down a new session, which may go on with one that the agent has already.

        `history`: what is told in it of the time before.
        """
        agent = self._pool.agent(params.agent_id)
        workspace = await anyio.to_thread.run_sync(
            requests.check_folders, params.cwd, params.additional_directories,
            abandon_on_cancel=True,
        )  # fmt: skip
        requests.check_mcp_servers(params.mcp_servers)
        requests.check_policy(params.policy)
        session_id, now = mint("sess"), self._now()
        if requests.has_secrets(params.mcp_servers):
            await self._vault.keep(session_id, msgspec.json.encode(params.mcp_servers))
        row = SessionRow(
            key=self._store.writer.next_session_key(),
            session_id=session_id,
            agent_id=params.agent_id,
            runtime=agent.runtime,
            profile=params.profile or "default",
            title=params.title,
            workspace_id=params.workspace_id or workspace,
            cwd=params.cwd,
            document_id=params.document_id,
            actor_id=origin.actor_id,
            additional_directories=msgspec.json.encode(params.additional_directories),
            mcp_servers=requests.masked_servers(params.mcp_servers),
            policy=msgspec.json.encode(params.policy),
            acp_session_id=acp_session_id,
            created_at=now,
            updated_at=now,
        )
        if params.title is not None:
            row.settings = keep(row.settings, TITLED, value=True)
        if adopted:
            row.settings = keep(row.settings, ADOPTED, value=True)
        conversation = self._house.settle_in(row, 0)
        created = {
            "agentId": row.agent_id,
            "cwd": row.cwd,
            "profile": row.profile,
            "workspaceId": row.workspace_id,
            "title": row.title,
            "documentId": row.document_id,
            **({"policy": params.policy} if params.policy else {}),
            **({"acpSessionId": acp_session_id, "adopted": adopted} if acp_session_id else {}),
            **({"forkedFrom": forked_from} if forked_from else {}),
        }
        drafts = [note(Kind.SESSION_CREATED, created, origin=origin), *history]
        conversation.scribe.write(drafts)
        return conversation

    async def configure(self, params: SessionConfigureParams, origin: Origin) -> None:
        """Set what a session's agent lets people set."""
        self._refuse_if_unable()
        if isinstance(params.agent_id, str):
            agent = self._pool.agent(params.agent_id)
            await self._house.hand_over(params.session_id, params.agent_id, agent.runtime, origin)
        if not isinstance(params.mcp_servers, UnsetType):
            requests.check_mcp_servers(params.mcp_servers)
        conversation = await self._house.conversation(params.session_id)
        if not isinstance(params.mcp_servers, UnsetType):
            await conversation.mcp.replace(params.mcp_servers, origin)
        await conversation.configure(params, origin)
        await self._store.writer.durable(self._store.writer.record(()))

    async def start_runtime(self, session_id: str) -> RuntimeStarted:
        """Have a session's agent started and wait for it. Raises why it cannot be had."""
        conversation = await self._house.conversation(session_id)
        binding = await conversation.readiness.started()
        # Whoever reads the session next finds in it what the agent offers.
        await self._store.writer.durable(self._store.writer.record(()))
        return RuntimeStarted(
            session_id=session_id,
            acp_session_id=binding.acp_session_id,
            mode=conversation.row.mode,
        )

    async def reset_runtime(self, params: RuntimeResetParams, origin: Origin) -> RuntimeReset:
        """End a session's agent, and what runs in it; history and queue stay."""
        conversation = await self._house.conversation(params.session_id)
        closed = await conversation.reset(origin, is_cold=params.next == "cold")
        return RuntimeReset(
            session_id=params.session_id,
            mode=conversation.row.mode,
            next=params.next,
            closed=closed,
            queued=len(conversation.state.queue),
        )

    # -- runs -------------------------------------------------------------------------------------

    async def create_run(self, params: RunCreateParams, origin: Origin) -> str:
        """Accept a run, or find the one that this request already made; returns its id.

        Raises ConflictError if the key was used for something else.
        """
        content, preview = requests.prompt_of(params.prompt, params.text)
        target = requests.target_of(params)
        fingerprint = requests.fingerprint(content, params, target)
        key = requests.idempotency_key(origin.actor_id, params)
        async with self._locks.holding(key):
            known = await self._store.reader.run_by_key(key)
            if known is not None:
                if known.fingerprint != fingerprint:
                    raise ConflictError(
                        f"request {params.request_id!r} was used for another prompt before",
                        hostRunId=known.run_id,
                    )
                return known.run_id
            self._refuse_if_unable()
            conversation = await self._session_for(params, origin)
            conversation.readiness.check_content(content)
            run = self._new_run(conversation.row, params, origin)
            run.idempotency_key, run.fingerprint, run.preview = key, fingerprint, preview
            run.target, run.target_hash = target, requests.snapshot_hash(target)
            ticket = conversation.queue.accept(run, content, origin, params.meta)
            with anyio.CancelScope(shield=True):
                # Until it is on disk the key must stay ours, whether or not the client stays.
                await self._store.writer.durable(ticket)
            return run.run_id

    async def _session_for(self, params: RunCreateParams, origin: Origin) -> Conversation:
        if params.session_id is not None:
            conversation = await self._house.conversation(params.session_id)
            agent_id = conversation.row.agent_id
            # One that was removed meanwhile is told at once, not by a run that fails.
            self._pool.agent(agent_id)
            if params.agent_id not in (None, agent_id):
                raise ConflictError(
                    f"session {params.session_id} is one of agent {agent_id!r}, "
                    f"not of {params.agent_id!r}"
                )
            return conversation
        if params.agent_id is None or params.cwd is None:
            raise InvalidParamsError("expected `sessionId`, or `agentId` and `cwd` - at `$`")
        made = SessionCreateParams(
            agent_id=params.agent_id,
            cwd=params.cwd,
            profile=params.profile,
            workspace_id=params.workspace_id,
            document_id=params.document_id,
        )
        return await self.make_session(made, origin)

    def _new_run(self, session: SessionRow, params: RunCreateParams, origin: Origin) -> RunRow:
        now = self._now()
        return RunRow(
            key=self._store.writer.next_run_key(),
            run_id=mint("run"),
            session_key=session.key,
            session_id=session.session_id,
            request_id=params.request_id,
            agent_id=session.agent_id,
            provider=self._pool.traits(session.agent_id).provider,
            profile=params.profile or session.profile,
            actor_id=origin.actor_id,
            client_id=origin.client_id,
            client_name=origin.client_name,
            workspace_id=params.workspace_id or session.workspace_id,
            document_id=params.document_id or session.document_id,
            context_refs=msgspec.json.encode(params.context_refs),
            hold_after=params.hold_after,
            created_at=now,
            updated_at=now,
        )

    async def resume_run(self, params: RunResumeParams, origin: Origin) -> str:
        """Make the run that tries an interrupted one again, or find it; returns its id.

        Raises ConflictError, AgentNotFoundError.
        """
        async with self._locks.holding(f"resume {params.host_run_id}"):
            known = await self._store.reader.run_by_resume(
                params.host_run_id, params.resume_request_id
            )
            if known is not None:
                return known.run_id
            parent = await self._find_run(params.host_run_id)
            conversation = await self._house.conversation(parent.session_id)
            resume.check_resumable(parent, conversation.state)
            self._pool.agent(parent.agent_id)
            self._refuse_if_unable()
            content = await self._store.reader.prompt(parent.key) or b"[]"
            run = resume.child_of(
                parent, params, origin,
                key=self._store.writer.next_run_key(), run_id=mint("run"), now=self._now(),
            )  # fmt: skip
            ticket = conversation.queue.accept(run, content, origin)
            with anyio.CancelScope(shield=True):
                await self._store.writer.durable(ticket)
            return run.run_id

    async def cancel_run(self, run_id: str, origin: Origin, *, hold_queue: bool) -> None:
        """Stop a run; a terminal one is left as it is."""
        run = await self._find_run(run_id)
        if run.status in (RunStatus.PENDING, RunStatus.RUNNING):
            conversation = await self._house.conversation(run.session_id)
            ticket = conversation.cancel(run_id, origin, hold_queue=hold_queue)
            await self._store.writer.durable(ticket or self._store.writer.record(()))

    async def dismiss_run(self, run_id: str, origin: Origin) -> None:
        """A person has taken note of an interrupted run."""
        run = await self._find_run(run_id)
        conversation = await self._house.conversation(run.session_id)
        await self._store.writer.durable(conversation.queue.dismiss(run, origin))

    async def wait_run(self, run_id: str, timeout_ms: int | None) -> None:
        """Return when the run has ended and its end is on disk, or after the timeout."""
        run = await self._find_run(run_id)
        if run.status not in (RunStatus.PENDING, RunStatus.RUNNING):
            return
        conversation = await self._house.conversation(run.session_id)
        with anyio.move_on_after(None if timeout_ms is None else timeout_ms / 1000):
            await conversation.state.until_over(run_id)
            await self._store.writer.settled(self._store.writer.record(()))

    async def _find_run(self, run_id: str) -> RunRow:
        run = await self._store.reader.run(run_id)
        if run is None:
            raise RunNotFoundError(f"no run {run_id!r}")
        return run

    def _refuse_if_unable(self) -> None:
        """Nothing is accepted that could not be kept."""
        if self._house.is_closing:
            raise ShuttingDownError("the daemon is stopping and takes no new work")
        health = self._store.writer.health
        if health.since is not None:
            raise health.error()

    # -- decisions --------------------------------------------------------------------------------

    async def respond(self, permission_id: str, option_id: str, origin: Origin) -> DecisionRow:
        """Answer a question; the first valid answer wins.

        Raises AlreadyResolvedError, PermissionNotFoundError, InvalidParamsError.
        """
        for conversation in self._house.conversations:
            if conversation.state.desk.get(permission_id) is not None:
                await conversation.questions.answer(permission_id, option_id, origin=origin)
                break
        else:
            await self._refuse_answer(permission_id)
        return await self._decided(permission_id)

    async def respond_to_form(
        self, params: ElicitationRespondParams, origin: Origin
    ) -> DecisionRow:
        """Answer a form or an address; the first valid answer wins.

        Raises AlreadyResolvedError, PermissionNotFoundError, InvalidParamsError.
        """
        elicitation_id = params.elicitation_id
        for conversation in self._house.conversations:
            if conversation.state.forms.get(elicitation_id) is not None:
                await conversation.asking.answer(
                    elicitation_id, params.action, params.content, origin=origin
                )
                break
        else:
            await self._refuse_answer(elicitation_id)
        return await self._decided(elicitation_id)

    async def _refuse_answer(self, decision_id: str) -> NoReturn:
        # Somebody may have answered a moment ago: what is on its way to the disk decides.
        await self._store.writer.durable(self._store.writer.record(()))
        row = await self._store.reader.decision(decision_id)
        if row is None:
            raise PermissionNotFoundError(f"no decision {decision_id!r}")
        if row.status == "pending":
            right = "elicitation/respond" if row.kind == ELICITATION else "permission/respond"
            raise InvalidParamsError(f"{decision_id!r} is answered by `{right}` - at `$`")
        raise already_resolved(row)

    async def _decided(self, decision_id: str) -> DecisionRow:
        row = await self._store.reader.decision(decision_id)
        assert row is not None, "it has just been made durable"
        return row
