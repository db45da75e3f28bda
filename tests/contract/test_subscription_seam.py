"""Where history and live events meet: no gap and no repeat, however the steps fall.

The subscription is the real one. The store is a list of which only the committed part can be read,
and each commit is published some time after it can be read; the client's socket has room or not.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from acphost.ids import SubscriptionId
from acphost.journal.event import EventRow
from acphost.journal.feed import Feed
from acphost.server.subscription import Subscription, View


@dataclass
class Journal:
    """Rows of two sessions, the second of them in another workspace."""

    rows: list[EventRow] = field(default_factory=list)
    published: int = 0
    slowness: int = 0
    feed: Feed = field(default_factory=Feed)

    @property
    def head(self) -> int:
        return self.published

    def commit(self, sessions: Sequence[int]) -> None:
        """One transaction: it can be read now, and is published before the next one."""
        self.publish()
        for session in sessions:
            seq = 1 + sum(row.session_key == session for row in self.rows)
            run = 1 + seq % 2
            self.rows.append(
                EventRow(
                    len(self.rows) + 1, session, seq, run, "odd" if seq % 3 else "even", "acp", 0,
                    0, b"{}", None, None, 0, f"sess_{session}", f"run_{run}",
                )
            )  # fmt: skip

    def publish(self) -> None:
        news, self.published = self.rows[self.published :], len(self.rows)
        self.feed.publish(news)

    # -- as a Reader ------------------------------------------------------------------------------

    async def events_after_seq(
        self, session_key: int, seq: int, *, limit: int, max_bytes: int, run_key: int | None = None
    ) -> list[EventRow]:
        return await self._read(
            [
                row
                for row in await self._seen()
                if row.session_key == session_key
                and (row.seq or 0) > seq
                and run_key in (None, row.run_key)
            ]
        )

    async def events_after_offset(
        self,
        offset: int,
        *,
        limit: int,
        max_bytes: int,
        upto_offset: int | None = None,
        workspace_id: str | None = None,
    ) -> list[EventRow]:
        return await self._read(
            [
                row
                for row in await self._seen()
                if offset < row.offset <= (upto_offset or self.head)
                and workspace_id in (None, f"w{row.session_key}")
            ]
        )

    async def _seen(self) -> list[EventRow]:
        for _ in range(self.slowness):
            await checkpoint()
        return list(self.rows)

    async def _read(self, rows: list[EventRow]) -> list[EventRow]:
        for _ in range(self.slowness):
            await checkpoint()
        return rows[:3]


@dataclass
class Socket:
    """The outbox of a client that takes what it is sent, or does not for a while."""

    has_room: bool = True
    is_broken: bool = False
    lines: list[bytes] = field(default_factory=list)
    drained: anyio.Event = field(default_factory=anyio.Event)

    async def room(self) -> None:
        while not self.has_room:
            await self.drained.wait()

    def put(self, line: bytes) -> None:
        self.lines.append(line)

    def fill(self, *, full: bool) -> None:
        self.has_room = not full
        if not full:
            self.drained.set()
            self.drained = anyio.Event()


VIEWS = {
    "session": View(1),
    "kinds": View(1, kinds=frozenset({"odd"})),
    "run": View(1, run_key=1),
    "all": View(None),
    "workspace": View(None, workspace_id="w1", is_member=lambda session_id: session_id == "sess_1"),
}
STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from([1, 2]), min_size=1, max_size=5),
        st.sampled_from(["publish", "publish", "full", "room", "slow", "fast"]),
        st.integers(1, 4),
    ),
    max_size=40,
)


@pytest.mark.parametrize("scope", VIEWS)
@settings(max_examples=60)
@given(history=st.lists(st.sampled_from([1, 2]), max_size=8), steps=STEPS, after=st.integers(0, 3))
def test_every_row_of_the_scope_comes_once_and_in_order(
    scope: str, history: list[int], steps: list[object], after: int
) -> None:
    """Whatever is committed, published, read and sent in whatever order."""
    view = VIEWS[scope]
    journal, socket = Journal(), Socket()
    journal.commit(history)
    journal.publish()
    after = min(
        after, sum(1 for row in journal.rows if view.session_key in (None, row.session_key))
    )

    async def play() -> None:
        subscription = Subscription(
            SubscriptionId("sub"),
            view,
            after=after,
            feed=journal.feed,
            reader=journal,  # type: ignore[arg-type]
            outbox=socket,  # type: ignore[arg-type]
            head=lambda: journal.head,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(subscription.run)
            for step in steps:
                await take(step, journal, socket)
            journal.publish()
            journal.slowness = 0
            socket.fill(full=False)
            for _ in range(100):
                await checkpoint()
            tasks.cancel_scope.cancel()

    anyio.run(play)
    told = [json.loads(line)["params"] for line in socket.lines]
    offsets = [int(event["offset"]) for params in told for event in params["events"]]
    in_scope = [row for row in journal.rows if view.session_key in (None, row.session_key)]
    position = "offset" if view.session_key is None else "seq"
    expected = [
        row.offset for row in in_scope if view.shows(row) and getattr(row, position) > after
    ]
    assert offsets == expected
    assert [params.get("caughtUp") for params in told].count(True) == 1
    cursors = [int(params["cursor"]["offset"]) for params in told]
    assert cursors == sorted(cursors)


async def take(step: object, journal: Journal, socket: Socket) -> None:
    """One step of the world around the subscription."""
    match step:
        case list():
            journal.commit(step)
        case "publish":
            journal.publish()
        case "full" | "room":
            socket.fill(full=step == "full")
        case "slow" | "fast":
            journal.slowness = 3 if step == "slow" else 0
        case int():
            for _ in range(step):
                await checkpoint()
