"""Subscriptions over a connection that is cut at any byte, in either direction, again and again.

A real daemon, a real client, and between them a wire that passes so many bytes and then breaks.
Whatever is attached, dropped and cut while agents talk: every subscription has each event of its
scope once, in order, from where it began.
"""

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

import anyio
from anyio.abc import SocketStream
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from acphost.client import Client, connect
from acphost.wire.event import Event
from tests.support.daemon import Daemon, running_daemon
from tests.support.patience import PATIENCE

SCRIPT = """
ON prompt ~"^say (\\d+)"
    REPEAT ${1}
        MSG "piece ${I} of ${PROMPT}"
"""
AGENT = {"process": "shared"}


class Wire:
    """Listens on a path of its own, passes bytes on to the daemon, and breaks when told to."""

    def __init__(self, path: Path, daemon: Path) -> None:
        self.path = path
        self._daemon = daemon
        #: Bytes that still pass, by direction; None: all.
        self.left: dict[str, int | None] = {"up": None, "down": None}
        self.cuts = 0

    async def run(self) -> None:
        async with await anyio.create_unix_listener(self.path) as listener:
            await listener.serve(self._serve)

    async def _serve(self, client: SocketStream) -> None:
        async with (
            client,
            await anyio.connect_unix(self._daemon) as daemon,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._pump, client, daemon, "up", tasks.cancel_scope)
            tasks.start_soon(self._pump, daemon, client, "down", tasks.cancel_scope)

    async def _pump(
        self, source: SocketStream, target: SocketStream, way: str, scope: anyio.CancelScope
    ) -> None:
        try:
            while True:
                data = await source.receive()
                left = self.left[way]
                if left is not None and left <= len(data):
                    await target.send(data[:left])
                    self.left[way] = None
                    self.cuts += 1
                    break
                self.left[way] = None if left is None else left - len(data)
                await target.send(data)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()


class Follower:
    """A subscription, all that it was told, and what it should have been told."""

    def __init__(self, session: str, after: int, kinds: list[str] | None) -> None:
        self.session = session
        self.after = after
        self.kinds = kinds
        self.told: list[Event] = []
        self.scope = anyio.CancelScope()

    async def run(self, client: Client) -> None:
        with self.scope:
            async with client.subscribe(
                session_id=self.session, after=self.after, kinds=self.kinds
            ) as events:
                while True:
                    self.told += (await events.next_batch()).events

    def sees(self, events: list[Event]) -> list[Event]:
        """Of a whole history what belongs to it."""
        return [
            event
            for event in events
            if int(event.seq or 0) > self.after and (self.kinds is None or event.kind in self.kinds)
        ]


class Bench:
    """The daemon, the wire, and clients on either side of it."""

    def __init__(
        self, daemon: Daemon, wire: Wire, client: Client, tasks: anyio.abc.TaskGroup
    ) -> None:
        self.daemon = daemon
        self.wire = wire
        self.client = client
        self.tasks = tasks

    async def history(self, session: str) -> list[Event]:
        """All there is, by a connection that nobody cuts."""
        return await self.daemon.history(session)

    async def joined(self, follower: Follower) -> None:
        """Wait until a follower has all there is by now, and compare; more may come meanwhile."""
        least = len(follower.sees(await self.history(follower.session)))
        with anyio.move_on_after(PATIENCE):
            while len(follower.told) < least:  # noqa: ASYNC110  as it comes
                await anyio.sleep(0.005)
        told = list(follower.told)
        assert len(told) >= least
        # Read after that, the history has whatever they may have been told.
        expected = follower.sees(await self.history(follower.session))[: len(told)]
        assert [event.seq for event in told] == [event.seq for event in expected]
        assert told == expected


@asynccontextmanager
async def bench() -> AsyncGenerator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="ah-", dir="/tmp"))
    try:
        async with running_daemon(SCRIPT, agent=AGENT, follow=False) as daemon:
            wire = Wire(folder / "s", daemon.socket)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wire.run)
                await anyio.wait_all_tasks_blocked()
                async with connect(wire.path, patience=None) as client:
                    yield Bench(daemon, wire, client, tasks)
                tasks.cancel_scope.cancel()
    finally:
        shutil.rmtree(folder)


class CutMachine(RuleBasedStateMachine):
    """What happens to one session and those who follow it."""

    portal: ClassVar[BlockingPortal]
    bench: ClassVar[Bench]

    def __init__(self) -> None:
        super().__init__()
        self.followers: list[Follower] = []
        self.session = ""

    @initialize(count=st.integers(0, 3000))
    def begin(self, count: int) -> None:
        """A session of its own for each example, and a first cut."""
        self.bench.wire.left = {"up": None, "down": count}
        self.session = self.portal.call(self.bench.daemon.session)

    @rule(count=st.integers(1, 60), is_awaited=st.booleans())
    def talk(self, *, count: int, is_awaited: bool) -> None:
        """The agent says so much; what follows may come in the middle of it."""
        daemon = self.bench.daemon

        async def step() -> None:
            runs = len((await daemon.client.list_runs()).items)
            run = await daemon.send(self.session, f"say {count} ({self.session} {runs})")
            if is_awaited:
                await daemon.wait(run)

        self.portal.call(step)

    @precondition(lambda self: len(self.followers) < 4)
    @rule(after=st.integers(0, 40), kinds=st.sampled_from([None, None, ["message.delta"]]))
    def attach(self, after: int, kinds: list[str] | None) -> None:
        """Somebody follows from some place."""

        async def step() -> None:
            last = int((await self.bench.daemon.get(self.session)).last_seq)
            follower = Follower(self.session, min(after, last), kinds)
            self.followers.append(follower)
            self.bench.tasks.start_soon(follower.run, self.bench.client)

        self.portal.call(step)

    @rule(count=st.one_of(st.integers(0, 300), st.integers(300, 5000)),
          way=st.sampled_from(["down", "down", "up"]))  # fmt: skip
    def cut(self, count: int, way: str) -> None:
        """So many bytes from now the connection breaks."""
        self.bench.wire.left[way] = count

    @precondition(lambda self: bool(self.followers))
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        """One of them has all there is."""
        self.portal.call(self.bench.joined, data.draw(st.sampled_from(self.followers)))

    @precondition(lambda self: bool(self.followers))
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """One of them goes; what it was told until then has no gap either."""
        follower = data.draw(st.sampled_from(self.followers))

        async def step() -> None:
            follower.scope.cancel()
            expected = follower.sees(await self.bench.history(self.session))
            assert follower.told == expected[: len(follower.told)]

        self.portal.call(step)
        self.followers.remove(follower)

    def teardown(self) -> None:
        async def step() -> None:
            try:
                for follower in self.followers:
                    await self.bench.joined(follower)
            finally:
                for follower in self.followers:
                    follower.scope.cancel()

        self.portal.call(step)


class TestCutConnections(CutMachine.TestCase):  # type: ignore[valid-type,misc]  # hypothesis makes it
    """One daemon for all examples."""

    settings = settings(
        # A wait for a connection is in most of them: to shrink one would take minutes.
        max_examples=15, stateful_step_count=12, deadline=None,
        phases=[Phase.reuse, Phase.generate],
    )  # fmt: skip
    _scopes: ClassVar[list[AbstractContextManager[object]]] = []

    @classmethod
    def setUpClass(cls) -> None:
        portal = start_blocking_portal()
        CutMachine.portal = portal.__enter__()
        scope = CutMachine.portal.wrap_async_context_manager(bench())
        CutMachine.bench = scope.__enter__()
        cls._scopes = [scope, portal]

    @classmethod
    def tearDownClass(cls) -> None:
        cuts = CutMachine.bench.wire.cuts
        for scope in cls._scopes:
            scope.__exit__(None, None, None)
        assert cuts > 3, "hardly anything was cut"
