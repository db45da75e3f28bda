"""The part of the area `session` that is about sessions as things."""

from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.wire.host import Session
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
        """A session that goes on with one the agent keeps; the one there is, if there is one."""
        session_id = await self._host.library.adopt(params, client.origin)
        client.follow(session_id)
        return await self._host.queries.session(session_id)

    async def fork(self, client: ClientConnection, params: SessionForkParams) -> Session:
        """A session that begins with what this one has said, and goes its own way."""
        session_id = await self._host.library.fork(params, client.origin)
        client.follow(session_id)
        return await self._host.queries.session(session_id)
