"""One cursor over the journal: history, then live batches, by one code path and without a seam.

A subscription that keeps up sends committed batches as they are published, encoded once for all.
One that does not catches up at its client's pace: with the batches it has missed, and from the
store where those were too many to keep. Its memory is bounded: its backlog, and the outbox of its
connection.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from acphost.ids import SubscriptionId
from acphost.journal.event import EventRow, encode_events
from acphost.journal.feed import Batch, Feed
from acphost.journal.reader import Reader
from acphost.server.backlog import Backlog
from acphost.server.outbox import Outbox

#: Of one notification with history.
PAGE_EVENTS = 1000
PAGE_BYTES = 256 * 1024
#: A client whose filter lets nothing through is told so often (seconds) how far that is true.
CURSOR_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """Which rows of the journal a subscription sees."""

    #: None: the whole journal, by offset.
    session_key: int | None
    run_key: int | None = None
    kinds: frozenset[str] | None = None
    workspace_id: str | None = None
    #: Tells whether a session is in that workspace.
    is_member: Callable[[str | None], bool] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every row of the scope is seen: then a shared encoding serves."""
        return self.run_key is None and self.kinds is None and self.is_member is None

    def shows(self, row: EventRow) -> bool:
        """Whether a live row of the scope is seen."""
        return (
            (self.run_key is None or row.run_key == self.run_key)
            and (self.is_member is None or self.is_member(row.session_id))
            and self.shows_kind(row)
        )

    def shows_kind(self, row: EventRow) -> bool:
        """Whether a row that the reader has chosen is seen."""
        return self.kinds is None or row.kind in self.kinds


class Subscription:
    """A client's place in the journal."""

    def __init__(
        self,
        subscription_id: SubscriptionId,
        view: View,
        *,
        after: int,
        feed: Feed,
        reader: Reader,
        outbox: Outbox,
        head: Callable[[], int],
    ) -> None:
        self.id = subscription_id
        self._view = view
        #: Last row scanned: a seq in the scope of a session, else an offset.
        self._after = after
        self._feed = feed
        self._reader = reader
        self._outbox = outbox
        self._scanned = head
        self._last_offset = 0
        #: Up to here (offset, seq) all was filtered since the client was told something.
        self._unseen: tuple[int, int | None] | None = None
        self._teller: asyncio.TimerHandle | None = None
        self._is_live = False
        self._backlog = Backlog()
        self._lagging = anyio.Event()
        self._prefix = (
            b'{"jsonrpc":"2.0","method":"events","params":{"subscriptionId":"%b","events":['
            % subscription_id.encode()
        )

    def deliver(self, batch: Batch) -> None:
        """Send a committed batch, or keep it for later; called by the feed, never blocks."""
        if batch.last_position <= self._after:
            # Committed when the last page was read, and published only now: it is in that page.
            return
        if self._is_live and self._outbox.has_room:
            self._give(batch)
            return
        self._backlog.put(batch)
        if self._is_live:
            self._is_live = False
            self._lagging.set()

    def _give(self, batch: Batch) -> None:
        after, view = self._after, self._view
        if view.is_plain and batch.first_position > after:
            self._send(batch.encoded, batch.last_offset, batch.last_seq)
        else:
            # Some of it is not for this client, or was in the last page.
            shown = [row for row in batch.rows if self._position(row) > after and view.shows(row)]
            if shown:
                self._send(encode_events(shown), batch.last_offset, batch.last_seq)
            else:
                self._pass_over(batch.last_offset, batch.last_seq)
        self._after = batch.last_position

    def _pass_over(self, offset: int, seq: int | None) -> None:
        """The cursor moves although nothing is shown: soon the client is told (contract 3)."""
        self._unseen = (offset, seq)
        if self._teller is None:
            loop = asyncio.get_running_loop()
            self._teller = loop.call_later(CURSOR_PAUSE, self._tell_passed)

    def _tell_passed(self) -> None:
        self._teller = None
        # A client that is behind is told when it catches up.
        if self._unseen is not None and self._outbox.has_room:
            self._send(b"", *self._unseen)

    def _position(self, row: EventRow) -> int:
        if self._view.session_key is None:
            return row.offset
        assert row.seq is not None, "rows of a session are numbered"
        return row.seq

    async def run(self) -> None:
        """Serve until cancelled: catch up, stay live, catch up again when the client was slow."""
        self._feed.attach(self, self._view.session_key)
        try:
            told = False
            while not self._outbox.is_broken:
                await self._catch_up(tell=not told)
                told = True
                await self._lagging.wait()
                self._lagging = anyio.Event()
        finally:
            self._feed.detach(self, self._view.session_key)
            if self._teller is not None:
                self._teller.cancel()

    async def _catch_up(self, *, tell: bool) -> None:
        while not self._outbox.is_broken:
            await self._outbox.room()
            if not self._backlog.is_whole:
                await self._read_on()
            elif (batch := self._backlog.take()) is not None:
                self._give(batch)
            else:
                # Nothing was awaited since the last look: from here on every batch is delivered.
                self._is_live = True
                if tell:
                    self._tell_caught_up()
                return

    async def _read_on(self) -> None:
        """Send the next page of the store."""
        head, begun = self._scanned(), self._backlog.begin_read()
        rows = await self._read(head)
        if not rows:
            self._backlog.nothing_read(begun)
            if self._view.session_key is None:
                # What others wrote meanwhile need not be looked through again.
                self._after = head
            return
        self._after = self._position(rows[-1])
        self._backlog.has_read(self._after)
        shown = [row for row in rows if self._view.shows_kind(row)]
        if shown:
            self._send(encode_events(shown), rows[-1].offset, rows[-1].seq)
        else:
            self._pass_over(rows[-1].offset, rows[-1].seq)

    async def _read(self, head: int) -> Sequence[EventRow]:
        if self._view.session_key is None:
            return await self._reader.events_after_offset(
                self._after,
                limit=PAGE_EVENTS,
                max_bytes=PAGE_BYTES,
                upto_offset=head,
                workspace_id=self._view.workspace_id,
            )
        return await self._reader.events_after_seq(
            self._view.session_key,
            self._after,
            limit=PAGE_EVENTS,
            max_bytes=PAGE_BYTES,
            run_key=self._view.run_key,
        )

    def _send(self, events: bytes, offset: int, seq: int | None) -> None:
        """Send events, and how far the journal was looked through for them."""
        self._last_offset, self._unseen = offset, None
        place = b"" if self._view.session_key is None else b',"seq":"%018d"' % (seq or 0)
        self._outbox.put(
            b'%b%b],"cursor":{"offset":"%018d"%b}}}\n' % (self._prefix, events, offset, place)
        )

    def _tell_caught_up(self) -> None:
        seq = b"" if self._view.session_key is None else b',"seq":"%018d"' % self._after
        # What is committed can be read a moment before it is published: a cursor never goes back.
        offset = max(self._scanned(), self._last_offset)
        self._unseen = None
        self._outbox.put(
            b'%b],"cursor":{"offset":"%018d"%b},"caughtUp":true}}\n' % (self._prefix, offset, seq)
        )
