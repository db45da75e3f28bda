"""Sessions as things: named, pinned, deleted, copied, and found in the agent's own keeping."""

from pathlib import PurePath

import anyio.to_thread
import msgspec

from acphost.errors import (
    AcpHostError,
    ConfirmationRequiredError,
    InvalidParamsError,
    RemoteError,
)
from acphost.ids import Clock
from acphost.journal.rows import SessionRow
from acphost.journal.store import Store
from acphost.provider.pool import AgentPool
from acphost.provider.process import AgentProcess
from acphost.provider.traits import NOT_FOUND
from acphost.session import requests
from acphost.session.commands import Commands
from acphost.session.heritage import inherited
from acphost.session.house import House
from acphost.session.keepsakes import ForkedFrom
from acphost.session.scribe import note
from acphost.wire.acp import lenient
from acphost.wire.acp_sessions import SessionInfo, SessionList
from acphost.wire.event import Kind, Origin
from acphost.wire.library import (
    Discovered,
    DiscoveredSession,
    ExternalDeletion,
    SessionAdoptParams,
    SessionDeleted,
    SessionDeleteParams,
    SessionDiscoverParams,
    SessionForkParams,
    SessionPinParams,
    SessionRenameParams,
)
from acphost.wire.params import SessionCreateParams

#: So much of an agent's list is read at most: one that never ends must not either.
MAX_PAGES, MAX_LISTED = 50, 2000


class Library:
    """The verbs that are about sessions as a whole."""

    def __init__(
        self, store: Store, pool: AgentPool, house: House, commands: Commands, now: Clock
    ) -> None:
        self._store = store
        self._pool = pool
        self._house = house
        self._commands = commands
        self._now = now

    # -- names ------------------------------------------------------------------------------------

    async def rename(self, params: SessionRenameParams, origin: Origin) -> None:
        """Give a session a title of a person's own, or leave it to the agent again."""
        conversation = await self._house.conversation(params.session_id)
        conversation.rename(params.title, origin)
        await self._durable()

    async def pin(self, params: SessionPinParams, origin: Origin) -> None:
        """Keep a session whatever the rules of retention say, or no longer."""
        conversation = await self._house.conversation(params.session_id)
        if conversation.row.pinned != params.pinned:
            conversation.row.pinned = params.pinned
            told = {"pinned": params.pinned}
            conversation.scribe.write([note(Kind.SESSION_INFO_UPDATED, told, origin=origin)])
        await self._durable()

    # -- the end ----------------------------------------------------------------------------------

    async def delete(self, params: SessionDeleteParams, origin: Origin) -> SessionDeleted:
        """Delete what is kept here of a session; what runs in it is stopped first.

        Raises SessionNotFoundError, ConfirmationRequiredError.
        """
        session_id = params.session_id
        wants_external = params.delete_external_provider_session
        if wants_external and params.confirm != session_id:
            raise ConfirmationRequiredError(
                "this deletes the session also where the agent keeps it; `confirm` must be its id",
                confirm=session_id,
            )
        conversation = await self._house.conversation(session_id)
        await conversation.stop_all(origin)
        process = conversation.let_go("the session was deleted")
        external = ExternalDeletion(requested=wants_external, status="not_requested")
        if wants_external:
            external = await self._delete_external(conversation.row, process)
        if process is not None:
            process.stop_unless_shared()
        deleted = await self._house.remove(session_id, "deleted", origin)
        return SessionDeleted(session_id=session_id, deleted=deleted, external=external)

    async def _delete_external(
        self, row: SessionRow, process: AgentProcess | None
    ) -> ExternalDeletion:
        """Ask the agent; one that does not know the session has it deleted already (A30)."""
        acp_session_id = row.acp_session_id
        if acp_session_id is None:
            return ExternalDeletion(requested=True, status="deleted")
        try:
            if process is not None and process.is_live:
                return await _delete_in(process, acp_session_id)
            async with self._pool.borrowed(row.agent_id, cwd=row.cwd) as borrowed:
                return await _delete_in(borrowed, acp_session_id)
        except AcpHostError as exc:
            return ExternalDeletion(requested=True, status="failed", error=str(exc))

    # -- the agent's own keeping ------------------------------------------------------------------

    async def discover(self, params: SessionDiscoverParams) -> Discovered:
        """What the agent lists. Raises AgentNotFoundError, AgentUnavailableError."""
        agent_id = params.agent_id
        self._pool.agent(agent_id)
        if params.cwd is not None:
            await anyio.to_thread.run_sync(
                requests.check_directory, params.cwd, "$.cwd", abandon_on_cancel=True
            )
        async with self._pool.borrowed(agent_id, cwd=params.cwd) as process:
            if not process.greeting.agent_capabilities.offers("list"):
                return Discovered(agent_id=agent_id, supported=False)
            listed, problem = await _list_all(process, params.cwd)
        ours = await self._store.reader.sessions_by_acp(agent_id)
        is_title = process.traits.is_title
        sessions = [
            DiscoveredSession(
                acp_session_id=each.session_id,
                cwd=each.cwd,
                title=each.title if each.title and is_title(each.title) else None,
                updated_at=each.updated_at,
                session_id=ours.get(each.session_id),
            )
            for each in listed
        ]
        return Discovered(agent_id=agent_id, supported=True, sessions=sessions, problem=problem)

    async def adopt(self, params: SessionAdoptParams, origin: Origin) -> str:
        """A session of ours for one of the agent's; the one there is, if there is one already."""
        if not params.acp_session_id:
            raise InvalidParamsError("expected an id - at `$.acpSessionId`")
        known = (await self._store.reader.sessions_by_acp(params.agent_id)).get(
            params.acp_session_id
        )
        if known is not None:
            return known
        made = SessionCreateParams(
            agent_id=params.agent_id,
            cwd=params.cwd,
            title=params.title,
            profile=params.profile,
            workspace_id=params.workspace_id,
        )
        conversation = await self._commands.make_session(
            made, origin, acp_session_id=params.acp_session_id, adopted=True
        )
        await self._durable()
        if params.start:
            conversation.readiness.warm_up()
        return conversation.row.session_id

    async def fork(self, params: SessionForkParams, origin: Origin) -> str:
        """A session that goes its own way from here; by the agent where it can, else by history.

        Raises SessionNotFoundError, AgentNotFoundError.
        """
        parent = await self._house.conversation(params.session_id)
        row = parent.row
        title = row.title if params.title is msgspec.UNSET else params.title
        servers = await self._house.vault.read(row.session_id) or row.mcp_servers
        made = SessionCreateParams(
            agent_id=row.agent_id,
            cwd=row.cwd,
            title=title,
            profile=row.profile,
            workspace_id=row.workspace_id,
            document_id=row.document_id,
            additional_directories=msgspec.json.decode(row.additional_directories, type=list[str]),
            mcp_servers=msgspec.json.decode(servers, type=list[msgspec.Raw]),
        )
        seq = parent.scribe.log.seq
        forked = await parent.fork_in_agent()
        # What is read below is what is on disk.
        await self._durable()
        past = await inherited(self._store.reader, row, seq)
        child = await self._commands.make_session(
            made,
            origin,
            acp_session_id=forked,
            forked_from=ForkedFrom(session_id=row.session_id, seq=seq, is_cut=past.is_cut),
            history=past.drafts,
        )
        child.take_settings_of(parent)
        await self._durable()
        if params.start:
            child.readiness.warm_up()
        return child.row.session_id

    async def _durable(self) -> None:
        await self._store.writer.durable(self._store.writer.record(()))


async def _delete_in(process: AgentProcess, acp_session_id: str) -> ExternalDeletion:
    if not process.greeting.agent_capabilities.offers("delete"):
        return ExternalDeletion(requested=True, status="unsupported")
    try:
        await process.ask("session/delete", {"sessionId": acp_session_id})
    except RemoteError as exc:
        if exc.remote_code != NOT_FOUND:
            return ExternalDeletion(requested=True, status="failed", error=str(exc))
    return ExternalDeletion(requested=True, status="deleted")


async def _list_all(process: AgentProcess, cwd: str | None) -> tuple[list[SessionInfo], str | None]:
    """Page after page; what was read before something went wrong counts, and is said to be that."""
    found: dict[str, SessionInfo] = {}
    params: dict[str, object] = {} if cwd is None else {"cwd": cwd}
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            page = lenient(SessionList, await process.ask("session/list", params))
        except (AcpHostError, msgspec.DecodeError) as exc:
            return list(found.values()), str(exc)
        for info in page.sessions:
            # Not every agent heeds the filter.
            if cwd is None or PurePath(info.cwd) == PurePath(cwd):
                found.setdefault(info.session_id, info)
        cursor = page.next_cursor
        if not cursor:
            return list(found.values()), None
        if cursor in seen:
            return list(found.values()), "the agent's list goes in circles"
        if len(found) >= MAX_LISTED:
            break
        seen.add(cursor)
        params = {**params, "cursor": cursor}
    return list(found.values()), f"the list is longer than {MAX_PAGES} pages or {MAX_LISTED} items"
