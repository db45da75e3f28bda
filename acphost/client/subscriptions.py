"""All subscriptions of a client, and which parcel goes to which."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from acphost.client.subscription import Parcel, Subscription
from acphost.errors import AcpHostError

_decode_parcel = msgspec.json.Decoder(Parcel).decode


class Subscriptions:
    """Tells each of them what happens to the connection."""

    def __init__(self) -> None:
        self._all: list[Subscription] = []
        self._routes: dict[str, Subscription] = {}

    @contextmanager
    def keeping(self, subscription: Subscription) -> Iterator[None]:
        """Hold one open for the length of the block."""
        self._all.append(subscription)
        try:
            subscription.open()
            yield
        finally:
            self._all.remove(subscription)
            subscription.close()

    def deliver(self, params: msgspec.Raw) -> None:
        """Hand on what came; what belongs to none, because it was closed meanwhile, is dropped."""
        parcel = _decode_parcel(params)
        subscription = self._routes.get(parcel.subscription_id)
        if subscription is not None:
            subscription.deliver(parcel)

    def route(self, subscription_id: str, subscription: Subscription) -> None:
        """From now on parcels of that id go to `subscription`."""
        self._routes[subscription_id] = subscription

    def unroute(self, subscription_id: str) -> None:
        """From now on parcels of that id go nowhere."""
        self._routes.pop(subscription_id, None)

    def open(self) -> None:
        """There is a connection: have each go on where it was."""
        for subscription in self._all:
            subscription.open()

    def lost(self) -> None:
        """The connection is gone, and with it the daemon's side of each."""
        self._routes.clear()
        for subscription in self._all:
            subscription.lost()

    def fail(self, reason: AcpHostError) -> None:
        """There will be no connection any more."""
        for subscription in self._all:
            subscription.fail(reason)
