"""A subscription as an async iterator that knows its cursor and outlives its connection.

The daemon keeps no buffer for a client, so neither may a client keep one without bound, and one
slow consumer may not stop the reading of the socket either: answers to requests come over it too.
So a subscription whose consumer lags by more than `buffer_bytes` is closed at the daemon, and
opened again behind the last row it has kept as soon as the consumer has caught up. A lost
connection is bridged in the same way. The daemon's cursors make both exact: no gap, no repeat.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import anyio
import anyio.lowlevel
import msgspec

from acphost.client.failures import host_error
from acphost.errors import AcpHostError, ConnectionLostError, ShuttingDownError
from acphost.rpc.pending import Answer
from acphost.wire.base import HostRecord
from acphost.wire.event import Event
from acphost.wire.host import Cursor, Subscribed
from acphost.wire.params import SubscribeParams, UnsubscribeParams

#: How far a consumer may lag before its subscription is closed for the time being.
BUFFER_BYTES = 4 << 20


class Batch(NamedTuple):
    """Events that came together; none where all rows up to `cursor` were filtered out."""

    events: list[Event]
    cursor: Cursor
    caught_up: bool


class Parcel(HostRecord, frozen=True):
    """An `events` notification whose events are not decoded until somebody wants them."""

    subscription_id: str
    events: msgspec.Raw
    cursor: Cursor
    caught_up: bool = False


class Link(Protocol):
    """What a subscription needs of its client."""

    @property
    def store_id(self) -> str:
        """The journal that the connection at hand leads to."""

    def call(
        self, method: str, params: msgspec.Struct, on_answer: Callable[[Answer], None]
    ) -> bool:
        """Send a request if there is a connection; False if there is none."""


class Routes(Protocol):
    """Who is given the parcels of which id."""

    def route(self, subscription_id: str, subscription: "Subscription") -> None:
        """From now on they go to `subscription`."""

    def unroute(self, subscription_id: str) -> None:
        """From now on they go nowhere."""


_NO_EVENTS = msgspec.Raw(b"[]")
_decode_subscribed = msgspec.json.Decoder(Subscribed).decode
_decode_events = msgspec.json.Decoder(list[Event]).decode


class Subscription:
    """Iterate over it for events, or over `batches` for what came together.

    One task may iterate. The iteration has no end of its own; it raises CursorForeignError when
    the daemon came back with another journal, DaemonUnreachableError when it did not come back.
    The payload of an event is a view of the whole batch: who keeps events for long copies it.
    """

    def __init__(
        self, params: SubscribeParams, link: Link, routes: Routes, buffer_bytes: int
    ) -> None:
        self._params = params
        self._link = link
        self._routes = routes
        self._limit = buffer_bytes
        self._id: str | None = None
        self._paused = False
        self._failure: AcpHostError | None = None
        self._changed = anyio.Event()
        self._opened = False
        self._closed = False
        #: The last row kept: where the daemon is to go on after a pause or a lost connection.
        self._kept: Cursor | None = None
        self._store_id = params.store_id
        self._parcels: deque[Parcel] = deque()
        self._buffered = 0
        #: What is left of the batch that is being given out event by event, and where it ends.
        self._events: deque[Event] = deque()
        self._end: Batch | None = None
        self._taken: Cursor | None = None
        self._caught_up = False

    # -- for the consumer -------------------------------------------------------------------------

    @property
    def cursor(self) -> Cursor | None:
        """The last row that the consumer was given; None before the first."""
        return self._taken

    @property
    def store_id(self) -> str | None:
        """The journal that `cursor` belongs to."""
        return self._store_id

    @property
    def caught_up(self) -> bool:
        """Whether the consumer was given everything up to where history ended."""
        return self._caught_up

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            self._end = await self._fetch()
            self._events.extend(self._end.events)
            if not self._events:
                self._give(self._end)
        event = self._events.popleft()
        if self._events or self._end is None:
            self._taken = Cursor(offset=event.offset, seq=event.seq)
        else:
            self._give(self._end)
        return event

    async def next_batch(self) -> Batch:
        """What came together next: also an empty batch, when only the cursor moved.

        Do not mix it with iteration over single events.
        """
        batch = await self._fetch()
        self._give(batch)
        return batch

    def _give(self, batch: Batch) -> None:
        self._taken = batch.cursor
        self._caught_up = self._caught_up or batch.caught_up

    async def _fetch(self) -> Batch:
        # One switch per batch: a consumer that always finds more may not starve the reader.
        await anyio.lowlevel.checkpoint()
        while not self._parcels:
            if self._failure is not None:
                raise self._failure
            if self._paused:
                self._paused = False
                self.open()
            await self._changed.wait()
        parcel = self._parcels.popleft()
        self._buffered -= len(parcel.events)
        return Batch(_decode_events(parcel.events), parcel.cursor, parcel.caught_up)

    # -- for the client ---------------------------------------------------------------------------

    async def opening(self) -> None:
        """Wait until the daemon has accepted; raises what it refused with."""
        while not self._opened:
            if self._failure is not None:
                raise self._failure
            await self._changed.wait()

    def open(self) -> None:
        """Ask the daemon for everything behind the last row kept; without a connection, later."""
        if self._paused or self._failure is not None:
            return
        params = self._params
        if self._kept is not None:
            scope, kept = params.scope, self._kept
            # A session is ordered by seq; only what spans sessions has to go by offset.
            by_seq = (scope.session_id or scope.host_run_id) and kept.seq is not None
            params = msgspec.structs.replace(
                params,
                after=msgspec.UNSET,
                after_seq=kept.seq if by_seq else msgspec.UNSET,
                after_offset=msgspec.UNSET if by_seq else kept.offset,
            )
        params = msgspec.structs.replace(params, store_id=self._store_id)
        self._link.call("events/subscribe", params, self._on_answer)

    def _on_answer(self, answer: Answer) -> None:
        """Runs before the next line is read, so that no parcel can come too early."""
        if isinstance(answer, AcpHostError):
            reason = host_error(answer)
            # Of those two the next connection is the cure: it opens every subscription again.
            if not isinstance(reason, ConnectionLostError | ShuttingDownError):
                self.fail(reason)
            return
        opened = _decode_subscribed(answer)
        self._id = opened.subscription_id
        self._store_id = self._link.store_id
        self._opened = True
        if self._kept is None and self._params.after is not msgspec.UNSET:
            # "now" was then: a later connection has to go on from there.
            self._kept = Cursor(offset=opened.head_offset, seq=opened.head_seq)
        self._routes.route(self._id, self)
        self._tell()
        if self._closed:
            self._detach()

    def deliver(self, parcel: Parcel) -> None:
        """Keep what came; over the limit close the subscription until the consumer is there."""
        if self._buffered >= self._limit:
            self._paused = True
            self._detach()
            return
        if parcel.events == _NO_EVENTS and not parcel.caught_up and self._parcels:
            # Only the cursor moved: nothing is kept for that but where it stands.
            last = self._parcels.pop()
            self._buffered -= len(last.events)
            parcel = msgspec.structs.replace(last, cursor=parcel.cursor)
        self._parcels.append(parcel)
        self._buffered += len(parcel.events)
        self._kept = parcel.cursor
        self._tell()

    def close(self) -> None:
        """Nobody listens any more; an opening that is under way ends as soon as it is done."""
        self._closed = True
        self._detach()

    def _detach(self) -> None:
        """End the daemon's side, as far as there is a connection."""
        if self._id is None:
            return
        subscription_id, self._id = self._id, None
        self._routes.unroute(subscription_id)
        self._link.call(
            "events/unsubscribe", UnsubscribeParams(subscription_id=subscription_id), _ignore
        )

    def lost(self) -> None:
        """The connection is gone, and with it the daemon's side of the subscription."""
        self._id = None

    def fail(self, reason: AcpHostError) -> None:
        """No more will come; what was kept is still given out before the reason is raised."""
        self._failure = reason
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _ignore(_: Answer) -> None:
    pass
