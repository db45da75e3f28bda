"""What the daemon tells the service manager: ready, alive, leaving. Without one, nothing."""

from collections.abc import Callable

import anyio

from acphost.transport.notify import Notifier, extension, status


class Supervision:
    """Speaks sd_notify(3); where there is no systemd it is silent, and costs no wake-up."""

    def __init__(self, notifier: Notifier, mood: Callable[[], str]) -> None:
        """`mood` says in a few words how the daemon fares."""
        self._notifier = notifier
        self._mood = mood

    async def ready(self) -> None:
        """Clients are admitted from here on."""
        await self._notifier.tell("READY=1", status(self._mood()))

    async def leaving(self, within: float) -> None:
        """It ends, which may take so many seconds."""
        told = status("letting turns end; no new work is taken")
        await self._notifier.tell("STOPPING=1", told, extension(within))

    async def run(self) -> None:
        """Signs of life, as often as the manager wants them, until cancelled.

        They come from the event loop: whatever keeps that from turning keeps them away, and the
        manager starts the daemon anew.
        """
        if self._notifier.watchdog is None:
            return
        while True:
            await self._notifier.tell("WATCHDOG=1", status(self._mood()))
            await anyio.sleep(self._notifier.watchdog / 2)
