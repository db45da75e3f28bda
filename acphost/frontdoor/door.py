"""The daemon as an ACP agent: what an editor asks, brought to the socket and back."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Raw

from acphost.client.choice import default_agent
from acphost.client.client import Client
from acphost.errors import (
    AcpHostError,
    InvalidParamsError,
    MethodNotFoundError,
    SessionNotFoundError,
)
from acphost.frontdoor.attachment import Attachment, Past
from acphost.frontdoor.editor import Editor, Reply
from acphost.frontdoor.link import Link, Starter
from acphost.frontdoor.offer import greeting
from acphost.frontdoor.options import AgentChoice, Options
from acphost.frontdoor.stdio import Stdio
from acphost.rpc.framing import LineFramer
from acphost.wire.acp_agent import (
    AuthenticateParams,
    InitializeParams,
    ListParams,
    ModeParams,
    OpeningParams,
    OptionParams,
    PromptParams,
    SessionParams,
)
from acphost.wire.agents import AgentDescriptor
from acphost.wire.host import Session
from acphost.wire.params import SessionCreateParams, SessionListParams


class Wishes(NamedTuple):
    """What the command line says."""

    agent_id: str | None
    session_id: str | None
    socket: Path | None
    version: str


Method = Callable[[Raw, Reply], Awaitable[None]]


class Door:
    """Serves one editor."""

    def __init__(
        self,
        stdio: Stdio,
        framer: LineFramer,
        hello: InitializeParams,
        wishes: Wishes,
        starter: Starter | None,
    ) -> None:
        self._hello = hello
        self._wishes = wishes
        self._editor = Editor(stdio, framer, self._on_request, self._on_notification)
        info = hello.client_info
        self._link = Link(
            wishes.socket,
            starter,
            capabilities=_offered(hello),
            on_request=self._on_host_request,
            is_needed=lambda: any(each.is_waiting for each in self._open.values()),
            name=info.title or info.name or "acp editor",
            version=info.version or "0",
        )
        self._open: dict[str, Attachment] = {}
        self._session_wanted = wishes.session_id
        self._tasks: TaskGroup | None = None
        self._methods: dict[str, Method] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": partial(self._open_known, Past.TOLD),
            "session/resume": partial(self._open_known, Past.KNOWN),
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/fork": self._fork,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "authenticate": self._authenticate,
        }

    async def run(self, first: list[bytes]) -> None:
        """Serve until the editor has gone. What runs in the daemon runs on."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._link.run)
            await self._editor.run(first)
            tasks.cancel_scope.cancel()

    # -- dispatch ---------------------------------------------------------------------------------

    async def _on_request(self, method: str, params: Raw, reply: Reply) -> None:
        handler = self._methods.get(method)
        if handler is None:
            raise MethodNotFoundError(f"{method} is not offered here")
        try:
            await handler(params, reply)
        except msgspec.ValidationError as exc:
            raise InvalidParamsError(f"{method}: {exc}") from exc

    def _on_notification(self, method: str, params: Raw) -> None:
        """`session/cancel`; all others are ignorable."""
        if method != "session/cancel":
            return
        try:
            attachment = self._open.get(msgspec.json.decode(params, type=SessionParams).session_id)
        except msgspec.DecodeError:
            return
        if attachment is not None:
            attachment.cancel()

    async def _on_host_request(self, method: str, params: Raw) -> object:
        """The daemon asks for what only the editor has, such as the text of an unsaved buffer."""
        if not method.startswith("fs/"):
            raise MethodNotFoundError(f"{method} is not offered here")
        return await self._editor.asked(method, params)

    def _soon(self, work: Callable[[], Awaitable[None]]) -> None:
        assert self._tasks is not None, "the editor is served inside run"
        self._tasks.start_soon(_tried, work)

    # -- the protocol -----------------------------------------------------------------------------

    async def _initialize(self, params: Raw, reply: Reply) -> None:
        """Once more: allowed, and answered alike; what was offered first counts."""
        reply.give(greeting(self._wishes.version))

    async def _new(self, params: Raw, reply: Reply) -> None:
        given = msgspec.json.decode(params, type=OpeningParams)
        client = await self._link.client()
        if self._session_wanted is not None:
            session_id, self._session_wanted = self._session_wanted, None
            session = await client.session(session_id)
            await self._give_servers(session_id, given)
            await self._attach(client, session, Past.TOLD_LATER, reply, with_id=True)
            return
        agent_id = await self._agent(client)
        created = SessionCreateParams(
            agent_id=agent_id,
            cwd=given.cwd,
            additional_directories=given.additional_directories,
            mcp_servers=given.mcp_servers,
            start=True,
        )
        session = await client.request("session/create", created, Session)
        # The editor is told at once what the agent offers, or why there is none to be had.
        await client.start(session.session_id)
        await self._attach(client, session, Past.KNOWN, reply, with_id=True)

    async def _open_known(self, past: Past, params: Raw, reply: Reply) -> None:
        given = msgspec.json.decode(params, type=OpeningParams)
        reply.session_id = given.session_id
        client = await self._link.client()
        session = await client.session(given.session_id)
        await self._give_servers(given.session_id, given)
        await self._attach(client, session, past, reply, with_id=False)

    async def _give_servers(self, session_id: str, given: OpeningParams) -> None:
        """Its agent is to have the editor's; an editor with none takes nobody's away."""
        if given.mcp_servers:
            await self._configure(session_id, mcpServers=given.mcp_servers)

    async def _list(self, params: Raw, reply: Reply) -> None:
        given = msgspec.json.decode(params, type=ListParams)
        client = await self._link.client()
        filters = SessionListParams(agent_id=self._wishes.agent_id, cursor=given.cursor)
        page = await client.list_sessions(filters)
        found = [
            _info(session)
            for session in page.items
            if _was_used(session) and given.cwd in (None, session.cwd)
        ]
        answer: dict[str, object] = {"sessions": found}
        if page.next_cursor is not None:
            answer["nextCursor"] = page.next_cursor
        reply.give(answer)

    async def _close(self, params: Raw, reply: Reply) -> None:
        """The editor leaves: what it has waiting or running ends, the session stays."""
        session_id = msgspec.json.decode(params, type=SessionParams).session_id
        attachment = self._open.pop(session_id, None)
        if attachment is not None:
            attachment.leave()
        reply.give({})

    async def _delete(self, params: Raw, reply: Reply) -> None:
        """Our history; what the agent keeps is its own. Gone already is as good."""
        session_id = msgspec.json.decode(params, type=SessionParams).session_id
        attachment = self._open.pop(session_id, None)
        if attachment is not None:
            attachment.leave()
        client = await self._link.client()
        with suppress(SessionNotFoundError):
            await client.request("session/delete", {"sessionId": session_id}, Raw, repeat=True)
        reply.give({})

    async def _fork(self, params: Raw, reply: Reply) -> None:
        """Another session with the same past, for every agent."""
        given = msgspec.json.decode(params, type=OpeningParams)
        reply.session_id = given.session_id
        client = await self._link.client()
        session = await client.request("session/fork", {"sessionId": given.session_id}, Session)
        await self._give_servers(session.session_id, given)
        await self._attach(client, session, Past.KNOWN, reply, with_id=True)

    async def _set_mode(self, params: Raw, reply: Reply) -> None:
        given = msgspec.json.decode(params, type=ModeParams)
        reply.session_id = given.session_id
        self._attached(given.session_id)
        await self._configure(given.session_id, mode=given.mode_id)
        reply.give({})

    async def _set_option(self, params: Raw, reply: Reply) -> None:
        """One of the agent's options, or which agent it is; answered with the complete list."""
        given = msgspec.json.decode(params, type=OptionParams)
        reply.session_id = given.session_id
        options = self._attached(given.session_id).options
        if options.is_ours(given.config_id):
            await self._configure(given.session_id, agentId=given.value)
            # It tells what can be set in it as soon as it is there.
            self._soon(partial(self._start, given.session_id))
        else:
            await self._configure(given.session_id, configOption={given.config_id: given.value})
        options.set(given.config_id, given.value)
        reply.give({"configOptions": options.shown()})

    async def _start(self, session_id: str) -> None:
        client = await self._link.client()
        await client.start(session_id)

    async def _configure(self, session_id: str, **wishes: object) -> None:
        client = await self._link.client()
        given = {"sessionId": session_id, **wishes}
        await client.request("session/configure", given, Session, repeat=True)

    async def _authenticate(self, params: Raw, reply: Reply) -> None:
        """A login of the agent that new sessions are for."""
        method_id = msgspec.json.decode(params, type=AuthenticateParams).method_id
        client = await self._link.client()
        given = {"agentId": await self._agent(client), "methodId": method_id}
        await client.request("agent/authenticate", given, Raw)
        reply.give({})

    async def _agent(self, client: Client) -> str:
        """Which agent new sessions are for."""
        return self._wishes.agent_id or default_agent(await client.agents())

    def _attached(self, session_id: str) -> Attachment:
        """A session that this editor has open. Raises SessionNotFoundError."""
        attachment = self._open.get(session_id)
        if attachment is None:
            raise SessionNotFoundError(f"no session {session_id!r} is open here")
        return attachment

    async def _prompt(self, params: Raw, reply: Reply) -> None:
        given = msgspec.json.decode(params, type=PromptParams)
        reply.session_id = given.session_id
        attachment = self._attached(given.session_id)
        meta = given.meta if isinstance(given.meta, Raw) else None
        await attachment.prompt(given.prompt, meta, reply)

    # -- sessions ---------------------------------------------------------------------------------

    async def _attach(
        self, client: Client, session: Session, past: Past, reply: Reply, *, with_id: bool
    ) -> None:
        assert self._tasks is not None, "the editor is served inside run"
        attachment = self._open.get(session.session_id)
        if attachment is None:
            choices = _choices((await client.agents()).agents, session.agent_id)
            options = Options(self._hello.client_capabilities, session.agent_id, choices)
            attachment = Attachment(
                session.session_id, self._editor, self._hello.client_capabilities, options,
                self._link, self._soon,
            )  # fmt: skip
            self._open[session.session_id] = attachment

        def on_open() -> None:
            answer = attachment.options.opened()
            reply.give({"sessionId": session.session_id, **answer} if with_id else answer)

        self._tasks.start_soon(self._follow, attachment, past, on_open, reply)

    async def _follow(
        self, attachment: Attachment, past: Past, on_open: Callable[[], None], reply: Reply
    ) -> None:
        try:
            await attachment.follow(past, on_open)
        except AcpHostError as exc:
            self._open.pop(attachment.session_id, None)
            reply.fail(exc)


async def _tried(work: Callable[[], Awaitable[None]]) -> None:
    """What nobody waits for: that it failed is told on stderr, and by the journal."""
    try:
        await work()
    except AcpHostError as exc:
        print(f"acphost acp: {exc}", file=sys.stderr)  # noqa: T201 - stderr is the log here


def _offered(hello: InitializeParams) -> dict[str, object]:
    """What this client of the socket can do for agents: what its editor can."""
    capabilities = hello.client_capabilities
    offered: dict[str, object] = {"permissions": True}
    if capabilities.elicitation_modes:
        offered["elicitation"] = capabilities.elicitation_modes
    if capabilities.fs.read_text_file or capabilities.fs.write_text_file:
        offered["fs"] = {
            "readTextFile": capabilities.fs.read_text_file,
            "writeTextFile": capabilities.fs.write_text_file,
        }
    return offered


def _choices(agents: list[AgentDescriptor], current: str) -> list[AgentChoice]:
    """Those that can be started, and the one there is."""
    return [
        AgentChoice(each.agent_id, each.display_name)
        for each in agents
        if each.agent_id == current or each.health.state == "ready"
    ]


def _was_used(session: Session) -> bool:
    """An editor that only looked leaves an empty session behind, which nobody wants to see."""
    return bool(session.last_run_status or session.active_run_id or session.queued_count)


def _info(session: Session) -> dict[str, object]:
    return {
        "sessionId": session.session_id,
        "cwd": session.cwd,
        "title": session.title,
        "updatedAt": session.updated_at,
        "_meta": {"acphost": {"agentId": session.agent_id, "status": session.status}},
    }
