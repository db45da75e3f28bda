"""Following a subscription on the screen; `send` and `attach` differ only in when they stop."""

import signal
import sys
from collections.abc import Awaitable, Callable

import anyio
import msgspec

from acphost.cli.ask import Asker
from acphost.cli.render import Renderer, payload_of
from acphost.cli.screen import Pen
from acphost.client.client import State
from acphost.client.subscription import Subscription
from acphost.wire.event import Event, Kind

_CLOSING = {Kind.PERMISSION_RESOLVED, Kind.PERMISSION_EXPIRED}


class Viewer:
    """Shows events, and collects the questions among them that are still open."""

    def __init__(
        self, renderer: Renderer, asker: Asker, *, on_live: Callable[[], None] | None = None
    ) -> None:
        self._renderer = renderer
        self._asker = asker
        self._on_live = on_live
        self._open: dict[str, dict[str, object]] | None = {}

    def show(self, event: Event) -> None:
        """Show one event."""
        self._renderer.show(event)
        if event.kind == Kind.PERMISSION_REQUESTED:
            self._requested(payload_of(event))
        elif event.kind in _CLOSING:
            payload = payload_of(event)
            if self._open is not None:
                self._open.pop(str(payload.get("permissionId")), None)
            self._asker.closed(payload)

    def live(self) -> None:
        """History has ended: what is still open in it is asked now."""
        if self._on_live is not None:
            self._renderer.finish()
            self._on_live()
        waiting, self._open = self._open or {}, None
        for payload in waiting.values():
            self._asker.requested(payload)

    def _requested(self, payload: dict[str, object]) -> None:
        if self._open is None:
            self._renderer.finish()
            self._asker.requested(payload)
        else:
            self._open[str(payload.get("permissionId"))] = payload


class JsonLines:
    """Prints events as they are, one a line."""

    def show(self, event: Event) -> None:
        """Print one event."""
        sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
        sys.stdout.buffer.flush()

    def live(self) -> None:
        """Nothing to do: a program reads `caughtUp` nowhere, it just reads on."""


async def follow(
    events: Subscription, view: Viewer | JsonLines, *, is_last: Callable[[Event], bool]
) -> Event:
    """Show events until the last one, which is returned."""
    was_live = False
    while True:
        batch = await events.next_batch()
        for event in batch.events:
            view.show(event)
            if is_last(event):
                return event
        if events.caught_up and not was_live:
            was_live = True
            view.live()


async def on_interrupt(*reactions: Callable[[], Awaitable[None]]) -> None:
    """Carry out one reaction per Ctrl-C, the last one again for every further."""
    waiting = list(reactions)
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            reaction = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            await reaction()


def state_teller(pen: Pen) -> Callable[[State], None]:
    """Says when the daemon went away and when it is back."""
    was_lost = False

    def tell(state: State) -> None:
        nonlocal was_lost
        if state is State.LOST:
            was_lost = True
            pen.line("the daemon went away; waiting for it to come back …", "yellow")
        elif state is State.CONNECTED and was_lost:
            was_lost = False
            pen.line("the daemon is back", "green")

    return tell
