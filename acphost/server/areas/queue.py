"""The area `queue` of the socket: what waits behind a session's turn, in which order, and why."""

from typing import Annotated

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire import queue as q
from acphost.wire.base import carries
from acphost.wire.host import Page, QueuedRun, Session


class QueueMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("queue/list", q.QueueListParams, Access.ANY, self.list),
            Method("queue/edit", q.QueueEditParams, Access.ANY, self.edit),
            Method("queue/move", q.QueueMoveParams, Access.ANY, self.move),
            Method("queue/hold", q.QueueHoldParams, Access.ANY, self.hold),
            Method("queue/release", p.SessionParams, Access.ANY, self.release),
        )

    async def list(
        self, client: ClientConnection, params: q.QueueListParams
    ) -> Annotated[Page, carries(QueuedRun)]:
        """The runs of a session that wait, head first."""
        return await self._host.queries.queue(params.session_id)

    async def edit(self, client: ClientConnection, params: q.QueueEditParams) -> QueuedRun:
        """Gives a run that waits another prompt; `conflict` if it changed meanwhile, or started."""
        return await self._host.queue.edit(params, client.origin)

    async def move(self, client: ClientConnection, params: q.QueueMoveParams) -> QueuedRun:
        """Gives a run that waits another place; `conflict` if it changed meanwhile, or started."""
        return await self._host.queue.move(params, client.origin)

    async def hold(self, client: ClientConnection, params: q.QueueHoldParams) -> Session:
        """Lets nothing more of a session's queue start; the running turn goes on."""
        await self._host.queue.hold(params.session_id, params.reason, client.origin)
        return await self._host.queries.session(params.session_id)

    async def release(self, client: ClientConnection, params: p.SessionParams) -> Session:
        """Lets a held queue go on."""
        await self._host.queue.release(params.session_id, client.origin)
        return await self._host.queries.session(params.session_id)
