"""The work of a soak: sessions that talk, agents that die, people that answer and cancel."""

import os
import random
import signal
from collections import Counter

import anyio

from acphost.client.client import Client
from acphost.errors import AlreadyResolvedError
from acphost.wire.event import TERMINAL_KINDS
from acphost.wire.host import Run, SessionStatus
from tests.support.daemon import Daemon

#: How the agent behaves; what it says is not kept by it, for it is not the one under test.
SCRIPT = """
ON prompt ~"^flood (\\d+)"
    CALL c${N} in_progress kind=read memory=no
    REPEAT ${1}
        MSG "piece ${I} of a long answer, as long as pieces are " memory=no
    UPD c${N} completed memory=no
ON prompt ~"^ask"
    CALL c${N} pending kind=edit memory=no
    PERM c${N} yes:allow_once no:reject_once
    UPD c${N} completed memory=no
    MSG "decided ${OUTCOME}" memory=no
ON prompt ~"^stay"
    MSG "thinking" memory=no
    STAY
ON prompt ~"^die"
    CALL c${N} in_progress memory=no
    MSG "farewell" memory=no
    EXIT 3
ON prompt
    CALL t${N} in_progress memory=no
    THOUGHT "short" memory=no
    MSG "a short answer" memory=no
    UPD t${N} completed memory=no
"""

#: What a session does next, and how often of a hundred.
TURNS = {"small": 45, "flood": 20, "ask": 10, "cancel": 10, "queue": 10, "die": 3, "reset": 2}
#: Of a run; it is reached only when something is wrong.
PATIENCE = 60.0
#: How often a queue is looked at that might be held.
_LOOK_MS = 3000


class Pace:
    """Keeps the whole of it below a share of one core, by how long everybody rests."""

    def __init__(self, share: float) -> None:
        self._share = share
        self.rest = 1.0

    def heed(self, cpu: float) -> None:
        """Take note of what was used lately."""
        if cpu > self._share:
            self.rest = min(self.rest * min(cpu / self._share, 1.5) * 1.05, 60.0)
        elif cpu < 0.85 * self._share:
            self.rest = max(self.rest * 0.93, 0.05)


class Talk:
    """All sessions of a soak."""

    def __init__(self, daemon: Daemon, pace: Pace, dice: random.Random) -> None:
        self._daemon = daemon
        self._pace = pace
        self._dice = dice
        self._is_over = anyio.Event()
        self._sent = 0
        self.sessions: list[str] = []
        self.turns: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.accepted: set[str] = set()
        self.agent_kills = 0
        self.answers = 0
        self.releases = 0

    def end(self) -> None:
        """Let everybody finish what they are at, and begin nothing new."""
        self._is_over.set()

    @property
    def is_over(self) -> bool:
        """Whether that was asked for."""
        return self._is_over.is_set()

    async def rest(self, seconds: float) -> None:
        """Do nothing for about so long at the pace of the moment."""
        with anyio.move_on_after(seconds * self._pace.rest * self._dice.uniform(0.5, 1.5)):
            await self._is_over.wait()

    async def session(self, client: Client, agent: str) -> None:
        """One session's life."""
        made = await client.create_session(agent, str(self._daemon.work))
        self.sessions.append(made.session_id)
        await self.rest(2)
        while not self.is_over:
            (turn,) = self._dice.choices(list(TURNS), list(TURNS.values()))
            self.turns[turn] += 1
            try:
                with anyio.fail_after(PATIENCE):
                    await self._turn(client, made.session_id, turn)
            except TimeoutError as exc:
                seen = await client.session(made.session_id)
                raise AssertionError(f"a turn ({turn}) has no end: {seen}") from exc
            await self.rest(3)

    async def _turn(self, client: Client, session: str, turn: str) -> None:
        if turn == "reset":
            await client.reset(session, next=self._dice.choice(["cold", "continue"]))
        elif turn == "queue":
            runs = [await self._send(client, session, text) for text in ("hello", "flood 40") * 2]
            for run in runs:
                await self._end_of(client, run)
        elif turn == "cancel":
            run = await self._send(client, session, "stay")
            async with client.subscribe(run_id=run.host_run_id) as events:
                async for event in events:
                    if event.kind == "message.delta" or event.kind in TERMINAL_KINDS:
                        break
            await client.cancel(run.host_run_id)
            await self._end_of(client, run)
        else:
            text = {"flood": f"flood {self._dice.randrange(100, 500)}", "small": "hello"}
            await self._end_of(client, await self._send(client, session, text.get(turn, turn)))

    async def _send(self, client: Client, session: str, text: str) -> Run:
        self._sent += 1
        run = await client.create_run(
            f"{text} #{self._sent}", session_id=session, request_id=f"request {self._sent}"
        )
        self.accepted.add(run.host_run_id)
        return run

    async def _end_of(self, client: Client, run: Run) -> None:
        ended = await client.wait(run.host_run_id, timeout_ms=_LOOK_MS)
        while ended.ended_at is None:
            seen = await client.session(ended.session_id)
            if seen.status in (SessionStatus.HELD, SessionStatus.FAILED):
                # The agent of a run before it has died, or could not start: a person lets it go on.
                await client.queue_release(ended.session_id)
                self.releases += 1
            ended = await client.wait(run.host_run_id, timeout_ms=_LOOK_MS)
        self.outcomes[ended.status] += 1

    async def answer(self, client: Client) -> None:
        """The people: they answer whatever is asked, until cancelled."""
        async with client.subscribe(kinds=["permission.requested"]) as events:
            async for _ in events:
                for question in (await client.list_decisions()).items:
                    try:
                        await client.respond(question.permission_id, "yes")
                    except AlreadyResolvedError:
                        continue  # its agent has died
                    self.answers += 1

    async def kill_agents(self, client: Client) -> None:
        """Now and then an agent is killed from outside, until it is over."""
        while not self.is_over:
            await self.rest(10)
            pids = [each.pid for each in await client.processes() if each.pid is not None]
            if pids and not self.is_over:
                try:
                    os.kill(self._dice.choice(pids), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.agent_kills += 1
