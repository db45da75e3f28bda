"""`acphost demo`: what the daemon promises, shown with a real one and checked as it is shown."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import anyio
import msgspec

from acphost.client.client import Client
from acphost.client.connecting import connect
from acphost.client.subscription import Subscription
from acphost.demo.throwaway import Throwaway, throwaway
from acphost.transport.processes import Process, birth, is_alive
from acphost.wire.event import TERMINAL_KINDS, Event, Kind
from acphost.wire.host import Run, RunStatus, SessionStatus

#: A step that takes longer than this has failed: the whole show takes a fraction of it.
STEP_TIMEOUT = 60.0

FIRST = "Please ask for permission, then write notes.md"
SLOW = "Now something slow: count to twelve"
SECOND = "Hello again, this is the second message"
KILLED = "Another slow count, which will not end well"
REMEMBER = "Do you remember how we began?"
#: How many pieces of a slow answer are watched before something happens to it.
BEFORE_LEAVING, BEFORE_KILLING = 3, 3
AWAY = 0.9


class Fact(NamedTuple):
    """Something that was shown, and whether it was so."""

    text: str
    holds: bool


class Theatre(Protocol):
    """Where the show is seen."""

    def heading(self, text: str) -> None:
        """A new scene begins."""

    def say(self, text: str) -> None:
        """The narrator speaks."""

    def event(self, event: Event) -> None:
        """An event reached a client."""

    def facts(self, facts: list[Fact]) -> None:
        """The end: what was shown."""


async def show(theatre: Theatre) -> bool:
    """Play everything; whether all of it was as promised. Raises StartError."""
    async with throwaway() as daemon:
        await daemon.start()
        play = _Play(daemon, theatre)
        for scene in (play.answer, play.queue_and_return, play.kill, play.end):
            with anyio.fail_after(STEP_TIMEOUT):
                await scene()
    theatre.facts(play.facts)
    return all(fact.holds for fact in play.facts)


class _Play:
    """One session from its first message to its last."""

    def __init__(self, daemon: Throwaway, theatre: Theatre) -> None:
        self._daemon = daemon
        self._theatre = theatre
        self.facts: list[Fact] = []
        self._session_id = ""
        #: Every event that any client of the show was given, in the order it was given.
        self._seen: list[Event] = []

    # -- scenes -----------------------------------------------------------------------------------

    async def answer(self) -> None:
        """A thought, a plan, a tool call, a question and its answer."""
        self._theatre.heading("1. A message, and the answer as it streams")
        async with self._client("editor") as client:
            run = await client.create_run(FIRST, agent_id="demo", cwd=str(self._daemon.work))
            self._session_id = run.session_id
            async with client.subscribe(session_id=run.session_id) as events:
                async for event in self._watch(events, _ends(run)):
                    if event.kind == Kind.PERMISSION_REQUESTED:
                        self._theatre.say("the demo answers: allow once")
                        permission_id = _payload(event)["permissionId"]
                        await client.respond(str(permission_id), "allow_once")
        kinds = [event.kind for event in self._of(run)]
        self._fact("the answer came in pieces", kinds.count(Kind.MESSAGE_DELTA) > 1)
        self._fact(
            "with a thought, a plan and a tool call",
            {Kind.THOUGHT_DELTA, Kind.PLAN_UPDATED, Kind.TOOL_COMPLETED} <= set(kinds),
        )
        self._fact(
            "the agent asked first, and went on when it was answered",
            _in_order(kinds, Kind.PERMISSION_REQUESTED, Kind.PERMISSION_RESOLVED)
            and kinds[-1] == Kind.RUN_COMPLETED,
        )

    async def queue_and_return(self) -> None:
        """A second message waits; a client leaves in mid-answer and comes back."""
        self._theatre.heading("2. A second message waits, and a client leaves in mid-answer")
        async with self._client("editor") as client:
            slow = await client.create_run(SLOW, session_id=self._session_id)
            second = await client.create_run(SECOND, session_id=self._session_id)
            async with self._from_last(client) as events:
                async for _ in self._watch(events, _after_pieces(slow, BEFORE_LEAVING)):
                    pass
        left_at = self._last_seq
        self._theatre.say(f"the client is gone; it has everything up to seq {left_at}")
        await anyio.sleep(AWAY)
        self._theatre.say(f"it comes back and asks for what came after seq {left_at}")
        before = len(self._seen)
        async with self._client("editor") as client, self._from_last(client) as events:
            async for _ in self._watch(events, _ends(second)):
                pass
        self._fact(
            "a second message waited behind the first",
            (second.status, second.queue_position) == (RunStatus.PENDING, 1),
        )
        returned = self._seen[before]
        self._fact(
            "a client came back to the rest of the answer: no gap, no repeat",
            returned.host_run_id == slow.host_run_id and self._is_contiguous(),
        )
        self._fact(
            "the second message ran by itself when the first was done",
            self._ends_with(slow, Kind.RUN_COMPLETED)
            and self._ends_with(second, Kind.RUN_COMPLETED)
            and self._seq(second, Kind.RUN_STARTED) > self._seq(slow, Kind.RUN_COMPLETED),
        )

    async def kill(self) -> None:
        """`kill -9` in mid-turn, and what is true afterwards."""
        self._theatre.heading("3. kill -9 of the daemon in mid-answer")
        async with self._client("editor") as client:
            killed = await client.create_run(KILLED, session_id=self._session_id)
            waiting = await client.create_run(REMEMBER, session_id=self._session_id)
            async with self._from_last(client) as events:
                async for _ in self._watch(events, _after_pieces(killed, BEFORE_KILLING)):
                    pass
                agent = await self._agent_process(client)
                pid = self._daemon.pid
                await self._daemon.kill()
                self._theatre.say(f"killed pid {pid}; the client stays, and waits")
                await self._daemon.start()
                self._theatre.say(f"a new daemon, pid {self._daemon.pid}; the client goes on")
                async for _ in self._watch(events, _both(_ends(killed), _is_held)):
                    pass
                await self._look(client, killed, waiting, agent)
                self._theatre.say("the person decides: the queue may go on")
                await client.queue_release(self._session_id)
                async for _ in self._watch(events, _ends(waiting)):
                    pass
        said = "".join(_text(each) for each in self._of(waiting))
        self._fact(
            "released, the queue went on with an agent that remembers",
            self._ends_with(waiting, Kind.RUN_COMPLETED) and FIRST in said,
        )

    async def _look(self, client: Client, killed: Run, waiting: Run, agent: Process) -> None:
        """The state after the restart, as any client is told it."""
        run = await client.run(killed.host_run_id)
        queued = await client.run(waiting.host_run_id)
        session = await client.session(self._session_id)
        self._theatre.say(
            f"the cut answer: {run.status} ({run.error_code}); the session: {session.status};"
            f" the next message: {queued.status}"
        )
        self._fact(
            "after kill -9 the turn is called what it is: interrupted, sent to nobody again",
            (run.status, run.error_code) == (RunStatus.INTERRUPTED, "host_restarted"),
        )
        self._fact(
            "the message behind it is still there, and held until a person decides",
            (queued.status, session.status) == (RunStatus.PENDING, SessionStatus.HELD),
        )
        self._fact("the agent process of before is gone", not is_alive(agent))

    async def end(self) -> None:
        """Compare all that was seen with the journal, and let the daemon go."""
        self._theatre.heading("4. What was shown")
        async with self._client("auditor") as client:
            stored: list[Event] = []
            async with client.subscribe(session_id=self._session_id) as events:
                while not events.caught_up:
                    stored += (await events.next_batch()).events
            await client.shutdown()
        self._fact(
            f"all {len(self._seen)} events were seen once, in order, just as the journal has them",
            self._is_contiguous() and stored[: len(self._seen)] == self._seen,
        )
        ends = [event.host_run_id for event in stored if event.kind in TERMINAL_KINDS]
        runs = {event.host_run_id for event in stored if event.host_run_id is not None}
        self._fact(
            f"each of the {len(runs)} messages has exactly one end",
            sorted(str(run) for run in ends) == sorted(str(run) for run in runs),
        )
        self._fact("told to stop, the daemon left cleanly", await self._daemon.exit_code() == 0)

    # -- watching ---------------------------------------------------------------------------------

    def _client(self, name: str) -> AbstractAsyncContextManager[Client]:
        return connect(
            self._daemon.socket,
            name=f"demo {name}",
            capabilities={"permissions": True},
            patience=STEP_TIMEOUT,
        )

    def _from_last(self, client: Client) -> AbstractAsyncContextManager[Subscription]:
        return client.subscribe(session_id=self._session_id, after=self._last_seq)

    async def _watch(
        self, events: Subscription, is_last: Callable[[Event], bool]
    ) -> AsyncIterator[Event]:
        async for event in events:
            self._seen.append(event)
            self._theatre.event(event)
            yield event
            if is_last(event):
                return

    async def _agent_process(self, client: Client) -> Process:
        status = await client.status(self._session_id)
        binding = status.acp.live_binding if status.acp is not None else None
        pid = None if binding is None else binding.pid
        # Without a pid the show's own process stands in: it will not be gone, and the fact fails.
        return Process(pid or os.getpid(), birth(pid or os.getpid()) or "")

    # -- checking ---------------------------------------------------------------------------------

    def _fact(self, text: str, holds: bool) -> None:
        self.facts.append(Fact(text, holds))

    @property
    def _last_seq(self) -> int:
        return int(self._seen[-1].seq or 0)

    def _is_contiguous(self) -> bool:
        return [int(event.seq or 0) for event in self._seen] == list(range(1, len(self._seen) + 1))

    def _of(self, run: Run) -> list[Event]:
        return [event for event in self._seen if event.host_run_id == run.host_run_id]

    def _seq(self, run: Run, kind: str) -> int:
        found = [int(event.seq or 0) for event in self._of(run) if event.kind == kind]
        return found[0] if found else -1

    def _ends_with(self, run: Run, kind: str) -> bool:
        return [each.kind for each in self._of(run) if each.kind in TERMINAL_KINDS] == [kind]


def _ends(run: Run) -> Callable[[Event], bool]:
    return lambda event: event.host_run_id == run.host_run_id and event.kind in TERMINAL_KINDS


def _is_held(event: Event) -> bool:
    return event.kind == Kind.QUEUE_HELD


def _both(*conditions: Callable[[Event], bool]) -> Callable[[Event], bool]:
    """True from the event on with which each condition has been true once."""
    open_ones = list(conditions)

    def is_last(event: Event) -> bool:
        open_ones[:] = [condition for condition in open_ones if not condition(event)]
        return not open_ones

    return is_last


def _after_pieces(run: Run, count: int) -> Callable[[Event], bool]:
    seen = 0

    def is_last(event: Event) -> bool:
        nonlocal seen
        seen += event.host_run_id == run.host_run_id and event.kind == Kind.MESSAGE_DELTA
        return seen >= count

    return is_last


def _in_order(kinds: list[str], *wanted: str) -> bool:
    return all(kind in kinds for kind in wanted) and [
        kinds.index(kind) for kind in wanted
    ] == sorted(kinds.index(kind) for kind in wanted)


def _payload(event: Event) -> dict[str, object]:
    return msgspec.json.decode(event.payload, type=dict[str, object])


def _text(event: Event) -> str:
    content = _payload(event).get("content") if event.kind == Kind.MESSAGE_DELTA else None
    return str(content.get("text", "")) if isinstance(content, dict) else ""
