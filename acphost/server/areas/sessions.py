"""The area `session` of the socket: conversations, and what may be done with them."""

from typing import Annotated

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire.base import carries
from acphost.wire.controls import SessionConfigureParams
from acphost.wire.host import ActiveRun, Page, Session
from acphost.wire.library import (
    Discovered,
    SessionAdoptParams,
    SessionDeleted,
    SessionDeleteParams,
    SessionDiscoverParams,
    SessionForkParams,
    SessionPinParams,
    SessionRenameParams,
)


class SessionMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("session/create", p.SessionCreateParams, Access.ANY, self.create),
            Method("session/list", p.SessionListParams, Access.ANY, self.list),
            Method("session/get", p.SessionParams, Access.ANY, self.get),
            Method("session/configure", SessionConfigureParams, Access.ANY, self.configure),
            Method("session/rename", SessionRenameParams, Access.ANY, self.rename),
            Method("session/pin", SessionPinParams, Access.ANY, self.pin),
            Method("session/delete", SessionDeleteParams, Access.ANY, self.delete),
            Method("session/discover", SessionDiscoverParams, Access.ANY, self.discover),
            Method("session/adopt", SessionAdoptParams, Access.ANY, self.adopt),
            Method("session/fork", SessionForkParams, Access.ANY, self.fork),
            Method("session/activeRun", p.ActiveRunParams, Access.ANY, self.active_run),
        )

    async def create(self, client: ClientConnection, params: p.SessionCreateParams) -> Session:
        """Opens a session; it is only recorded, the agent starts at first need or with `start`."""
        session_id = await self._host.commands.create_session(params, client.origin)
        client.follow(session_id)
        return await self._host.queries.session(session_id)

    async def list(
        self, client: ClientConnection, params: p.SessionListParams
    ) -> Annotated[Page, carries(Session)]:
        """The sessions; filters are joined by and."""
        return await self._host.queries.sessions(params)

    async def get(self, client: ClientConnection, params: p.SessionParams) -> Session:
        """One session."""
        return await self._host.queries.session(params.session_id)

    async def configure(self, client: ClientConnection, params: SessionConfigureParams) -> Session:
        """Sets the agent's mode, model or options; absent is left as it is, null forgets."""
        await self._host.commands.configure(params, client.origin)
        return await self._host.queries.session(params.session_id)

    async def rename(self, client: ClientConnection, params: SessionRenameParams) -> Session:
        """Gives a session a title of its own; null leaves it to the agent."""
        await self._host.library.rename(params, client.origin)
        return await self._host.queries.session(params.session_id)

    async def pin(self, client: ClientConnection, params: SessionPinParams) -> Session:
        """Keeps a session whatever the rules of retention say, or no longer."""
        await self._host.library.pin(params, client.origin)
        return await self._host.queries.session(params.session_id)

    async def delete(self, client: ClientConnection, params: SessionDeleteParams) -> SessionDeleted:
        """Deletes a session here, and on request also where the agent keeps it."""
        return await self._host.library.delete(params, client.origin)

    async def discover(self, client: ClientConnection, params: SessionDiscoverParams) -> Discovered:
        """The sessions that an agent keeps itself, and which of them are known here."""
        return await self._host.library.discover(params)

    async def adopt(self, client: ClientConnection, params: SessionAdoptParams) -> Session:
        """A session that goes on with one the agent keeps; the one there is, if there is one.

        What the agent tells of it when it is loaded comes as events of no run, `host.history` true.
        """
        session_id = await self._host.library.adopt(params, client.origin)
        client.follow(session_id)
        return await self._host.queries.session(session_id)

    async def fork(self, client: ClientConnection, params: SessionForkParams) -> Session:
        """A session that begins with what this one has said, and goes its own way.

        Its past are events of no run, `host.history` true: they stay when this one is deleted.
        """
        session_id = await self._host.library.fork(params, client.origin)
        client.follow(session_id)
        return await self._host.queries.session(session_id)

    async def active_run(self, client: ClientConnection, params: p.ActiveRunParams) -> ActiveRun:
        """What a client that comes back asks first: the run that is not over, and the queue."""
        return await self._host.queries.active_run(params.session_id)
