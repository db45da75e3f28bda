"""The areas `permission` and `elicitation` of the socket: what agents ask people."""

from typing import Annotated

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.session.views import decision_view
from acphost.wire import params as p
from acphost.wire.base import carries
from acphost.wire.elicitation import ElicitationRespondParams
from acphost.wire.host import Decision, Page


class DecisionMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("permission/list", p.PermissionListParams, Access.ANY, self.list),
            Method("permission/respond", p.PermissionRespondParams, Access.ANY, self.respond),
            Method("elicitation/respond", ElicitationRespondParams, Access.ANY, self.fill_in),
        )

    async def list(
        self, client: ClientConnection, params: p.PermissionListParams
    ) -> Annotated[Page, carries(Decision)]:
        """The decisions; pending ones unless a status is named."""
        return await self._host.queries.decisions(params)

    async def respond(
        self, client: ClientConnection, params: p.PermissionRespondParams
    ) -> Decision:
        """Answers an agent's question with one of the offered options; the first answer counts."""
        row = await self._host.commands.respond(
            params.permission_id, params.option_id, client.origin
        )
        return decision_view(row)

    async def fill_in(self, client: ClientConnection, params: ElicitationRespondParams) -> Decision:
        """Answers a form or an address of an agent; the first valid answer wins."""
        return decision_view(await self._host.commands.respond_to_form(params, client.origin))
