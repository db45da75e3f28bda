"""When the ledger looks at what agents have started: after their tools and turns, not at rest."""

import anyio

from acphost.journal.feed import Batch, Feed
from acphost.log import get_logger
from acphost.session.ledger import ProcessLedger
from acphost.wire.event import TERMINAL_KINDS, Kind

log = get_logger()

#: Between two looks at the system, which read a file of each process.
PAUSE = 5.0
#: What tells that an agent may have started something.
_TELLING = TERMINAL_KINDS | {
    Kind.TOOL_STARTED, Kind.TOOL_UPDATED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED, Kind.JOB_STARTED,
}  # fmt: skip


class Census:
    """Has the ledger take note of the descendants of agents."""

    def __init__(self, feed: Feed, ledger: ProcessLedger) -> None:
        self._feed = feed
        self._ledger = ledger
        self._wake = anyio.Event()

    def deliver(self, batch: Batch) -> None:
        """Called by the feed."""
        for stretch in batch.stretches:
            if stretch.kind in _TELLING:
                self._wake.set()
                return

    async def run(self) -> None:
        """Look until cancelled."""
        self._feed.attach(self, None)
        try:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                try:
                    await self._ledger.note_descendants()
                except OSError as exc:  # no descriptor is left to look with
                    log.warning("descendants_not_seen", reason=str(exc))
                await anyio.sleep(PAUSE)
        finally:
            self._feed.detach(self, None)
