"""Those who look on in a soak: one who sees everything, one who is slow, some who come and go."""

import random
import sqlite3
import time
import zlib
from array import array
from contextlib import closing

import anyio

from acphost.client.client import Client
from acphost.errors import ConnectionLostError
from acphost.journal.history import Bounds, History, snapshot
from acphost.journal.segment_cache import SegmentCache
from acphost.wire.event import Event
from tests.soak.talk import Talk
from tests.support.daemon import Daemon
from tests.support.wire import wire

#: Rows of the store that are looked at in one piece.
_PAGE = 2000


class Witness:
    """Follows everything and remembers it in four bytes an event."""

    def __init__(self) -> None:
        self.first = 0
        self.marks = array("I")

    @property
    def head(self) -> int:
        """The last offset it was told."""
        return self.first + len(self.marks) - 1

    async def follow(self, client: Client) -> None:
        """Until cancelled; raises AssertionError over a gap or a repeat."""
        async with client.subscribe(after=0) as events:
            while True:
                for event in (await events.next_batch()).events:
                    self._take(event)

    def _take(self, event: Event) -> None:
        offset = int(event.offset)
        if not self.marks:
            self.first = offset
        assert offset == self.head + 1, f"{offset} was told after {self.head}"
        seq = None if event.seq is None else int(event.seq)
        self.marks.append(
            _mark(event.session_id, seq, event.host_run_id, event.kind, bytes(event.payload))
        )

    def compare(self, daemon: Daemon) -> list[str]:
        """What the store has otherwise than it was told here."""
        problems = []
        offset, end = self.first - 1, self.head
        connection = sqlite3.connect(daemon.journal.path, isolation_level=None)
        with closing(connection), snapshot(connection):
            history = History(connection, SegmentCache())
            while rows := history.after_offset(offset, Bounds(_PAGE, 1 << 24, end)):
                for row in rows:
                    if row.offset != offset + 1:
                        problems.append(f"offsets {offset + 1} to {row.offset - 1} are not stored")
                    offset = row.offset
                    mark = _mark(row.session_id, row.seq, row.run_id, row.kind, row.payload)
                    if mark != self.marks[offset - self.first]:
                        problems.append(f"offset {offset} is stored otherwise than it was told")
        if offset != end:
            problems.append(f"offsets {offset + 1} to {end} were told and are not stored")
        return problems


def _mark(
    session: str | None, seq: int | None, run: str | None, kind: str, payload: bytes
) -> int:  # fmt: skip
    return zlib.crc32(payload, zlib.crc32(f"{session} {seq} {run} {kind}".encode()))


class Visits:
    """Clients that come, read a stretch of some session, and go without a word."""

    def __init__(self, daemon: Daemon, talk: Talk, dice: random.Random) -> None:
        self._daemon = daemon
        self._talk = talk
        self._dice = dice
        self.count = 0
        #: Seconds from a question to its answer.
        self.answers: list[float] = []

    async def run(self) -> None:
        """One after the other, until it is over."""
        while not self._talk.is_over:
            await self._talk.rest(2)
            if self._talk.sessions:
                await self._visit(self._dice.choice(self._talk.sessions))
                self.count += 1

    async def _visit(self, session: str) -> None:
        # Unlimited history would be read over and over: the cost would grow with the journal.
        async with self._daemon.wire() as client:
            asked = time.monotonic()
            last = int((await client.result("session/get", {"sessionId": session}))["lastSeq"])
            self.answers.append(time.monotonic() - asked)
            after = max(0, last - self._dice.randrange(1, 600))
            await client.result(
                "events/subscribe", {"scope": {"sessionId": session}, "afterSeq": after}
            )
            told: list[int] = []
            for _ in range(self._dice.randrange(1, 4)):
                frame = await client.read()
                told += [int(event["seq"]) for event in frame["params"]["events"]]
                if frame["params"].get("caughtUp"):
                    break
            assert told == list(range(after + 1, after + 1 + len(told))), f"{session}: {told}"
            if self._dice.random() < 0.5:
                client.reset()


async def slow_reader(daemon: Daemon, talk: Talk) -> None:
    """A subscriber to everything that reads a frame now and then, and begins anew at times."""
    while not talk.is_over:
        async with wire(daemon.socket) as client:
            await client.result("events/subscribe", {"scope": {"all": True}, "after": "now"})
            for _ in range(30):
                try:
                    await client.read()
                except (TimeoutError, anyio.EndOfStream, ConnectionLostError):
                    break
                await talk.rest(1)
                if talk.is_over:
                    break
