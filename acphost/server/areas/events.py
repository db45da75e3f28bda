"""What a client wants to follow, and from where: scope and cursor of a subscription, checked."""

from msgspec import UNSET

from acphost.errors import InvalidParamsError
from acphost.ids import SubscriptionId, mint
from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.server.subscription import View
from acphost.session.queries import check_position
from acphost.wire import params as p
from acphost.wire.base import parse_position, position_text
from acphost.wire.host import Done, Subscribed


class EventMethods:
    """The methods of the area `events`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._queries = host.queries

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("events/subscribe", p.SubscribeParams, Access.ANY, self.subscribe),
            Method("events/unsubscribe", p.UnsubscribeParams, Access.ANY, self.unsubscribe),
        )

    async def subscribe(self, client: ClientConnection, params: p.SubscribeParams) -> Subscribed:
        """`events/subscribe`: follows a session, a run or all; the events come as notifications."""
        self._queries.check_store(params.store_id)
        view, head_seq = await self._view(client, params)
        after = await self._starting_point(params, view, head_seq)
        subscription = self._host.subscription(SubscriptionId(mint("sub")), view, after, client)
        client.subscribe(subscription)
        return Subscribed(
            subscription_id=subscription.id,
            head_seq=None if head_seq is None else position_text(head_seq),
            head_offset=position_text(self._host.head),
        )

    async def _view(
        self, client: ClientConnection, params: p.SubscribeParams
    ) -> tuple[View, int | None]:
        scope = params.scope
        given = (scope.session_id, scope.host_run_id, scope.workspace_id, scope.all)
        if sum(each is not None for each in given) != 1:
            raise InvalidParamsError(
                "expected one of `sessionId`, `hostRunId`, `workspaceId`, `all` - at `$.scope`"
            )
        kinds = None if params.kinds is None else frozenset(params.kinds)
        if scope.workspace_id is not None:
            workspace, wanted = self._host.house.workspaces, scope.workspace_id
            return View(
                None, kinds=kinds, workspace_id=wanted,
                is_member=lambda session_id: workspace.get(session_id or "") == wanted,
            ), None  # fmt: skip
        if scope.all:
            return View(None, kinds=kinds), None
        if scope.session_id is not None:
            session = await self._queries.session_row(scope.session_id)
            client.follow(session.session_id)
            return View(session.key, kinds=kinds), session.last_seq
        run = await self._queries.run_row(scope.host_run_id or "")
        session = await self._queries.session_row(run.session_id)
        client.follow(session.session_id)
        return View(session.key, run_key=run.key, kinds=kinds), session.last_seq

    async def _starting_point(
        self, params: p.SubscribeParams, view: View, head_seq: int | None
    ) -> int:
        starts = (params.after_seq, params.after_offset, params.after)
        if sum(each is not UNSET for each in starts) > 1:
            raise InvalidParamsError(
                "expected at most one of `afterSeq`, `afterOffset`, `after` - at `$`"
            )
        head = self._host.head if head_seq is None else head_seq
        if params.after == "now":
            return head
        if params.after_seq is not UNSET:
            if head_seq is None:
                raise InvalidParamsError(
                    "a seq orders one session; give `afterOffset` in this scope - at `$.afterSeq`"
                )
            after = parse_position(params.after_seq)
            check_position(after, head)
            return after
        if params.after_offset is not UNSET:
            after = parse_position(params.after_offset)
            check_position(after, self._host.head)
            if view.session_key is None:
                return after
            return await self._queries.seq_at(view.session_key, after, head)
        return 0

    async def unsubscribe(self, client: ClientConnection, params: p.UnsubscribeParams) -> Done:
        """`events/unsubscribe`: ends a subscription of this connection."""
        if not client.unsubscribe(params.subscription_id):
            raise InvalidParamsError(
                f"no subscription {params.subscription_id!r} on this connection"
                " - at `$.subscriptionId`"
            )
        return Done()
