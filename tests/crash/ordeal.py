"""kill -9 of the daemon at random moments under load, over and over, on one store.

Each round sends floods, a queue and questions to several sessions, kills the daemon (at times an
agent first), and holds what every client was told against what is on disk. The seed is printed; the
same seed gives the same choices.
"""

import json
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass, field

import anyio

from acphost.archive.fsck import check_store
from acphost.client.client import Client
from acphost.errors import AcpHostError
from acphost.wire.event import Event
from tests.support.daemon import Daemon, marked_processes

SESSIONS = 3
#: The kill comes within this many seconds of the first answer, or of the load without one.
LATEST = 0.6
#: How long a busy machine may take to the first answer.
PATIENCE = 20

SCRIPT = """
ON prompt ~"^flood (\\d+)"
    FLOOD ${1}
ON prompt ~"^ask"
    CALL c${N} pending kind=edit
    PERM c${N} yes:allow_once no:reject_once
    UPD c${N} completed
    MSG "decided ${OUTCOME}"
ON prompt
    CALL t${N} in_progress
    MSG "a short answer"
    UPD t${N} completed
"""


@dataclass(slots=True)
class Tally:
    """What the ordeal did and saw."""

    seed: int
    kills: int = 0
    agent_kills: int = 0
    told: int = 0
    accepted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {word}" for word, count in sorted(self.outcomes.items()))
        return (
            f"crash: seed {self.seed}, {self.kills} kills of the daemon, {self.agent_kills} of an "
            f"agent, {self.accepted} runs accepted ({ends}), {self.told} events told to clients; "
            "0 missing, 0 repeated, 0 gaps, 0 second prompts, 0 processes left"
        )


class Ordeal:
    """One daemon's life of sudden deaths."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self._daemon = daemon
        self._random = random.Random(seed)
        self._sent = 0
        self._accepted: list[str] = []
        self._sessions: list[str] = []
        self._flowing = anyio.Event()
        self.tally = Tally(seed)

    async def round(self) -> None:
        """Load the daemon, kill it, check what is on disk, and start it again."""
        daemon = self._daemon
        told: list[Event] = []
        self._flowing = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._load)
            tasks.start_soon(self._follow, told)
            if self._random.random() < 0.8:
                with anyio.move_on_after(PATIENCE):
                    await self._flowing.wait()
            await anyio.sleep(self._random.uniform(0.0, LATEST))
            if self._random.random() < 0.3:
                await self._kill_an_agent()
            await daemon.kill()
            tasks.cancel_scope.cancel()
        self.tally.kills += 1
        self._check(told)
        await daemon.start()
        # The daemon answers: then nothing of the last life may be running any more.
        left = marked_processes(self._ended_launches())
        assert not left, f"seed {self.tally.seed}: processes {left} outlived the daemon's restart"

    async def _load(self) -> None:
        try:
            async with self._daemon.connect(patience=0) as client:
                for _ in range(SESSIONS if not self._sessions else 1):
                    made = await client.create_session("fake", str(self._daemon.work))
                    self._sessions.append(made.session_id)
                # An old session has a queue that a death has held: the next send releases it.
                async with anyio.create_task_group() as tasks:
                    for session in self._random.sample(self._sessions, SESSIONS):
                        tasks.start_soon(self._talk, client, session)
        except (AcpHostError, ExceptionGroup, OSError):
            return  # the daemon was killed under it

    async def _talk(self, client: Client, session: str) -> None:
        for text in ("flood 4000", "ask", "hello", "flood 2000", "hello"):
            self._sent += 1
            prompt = f"{text} #{self._sent}"
            run = await client.create_run(
                prompt, session_id=session, request_id=f"request {self._sent}"
            )
            self._accepted.append(run.host_run_id)
        while True:
            for question in (await client.list_decisions()).items:
                try:
                    await client.respond(question.permission_id, "yes")
                except AcpHostError:
                    continue  # another talker was faster
            await anyio.sleep(0.05)

    async def _follow(self, told: list[Event]) -> None:
        try:
            async with (
                self._daemon.connect(patience=0) as client,
                client.subscribe(after="now") as events,
            ):
                while True:
                    told += (await events.next_batch()).events
                    if any(event.kind == "message.delta" for event in told[-50:]):
                        self._flowing.set()
        except (AcpHostError, ExceptionGroup, OSError):
            return

    async def _kill_an_agent(self) -> None:
        pids = marked_processes(self._open_launches())
        if pids:
            os.kill(self._random.choice(pids), signal.SIGKILL)
            self.tally.agent_kills += 1

    def _open_launches(self) -> set[str]:
        rows = self._daemon.journal.query("SELECT launch_id FROM processes WHERE ended_at IS NULL")
        return {row["launch_id"] for row in rows}

    def _ended_launches(self) -> set[str]:
        rows = self._daemon.journal.query("SELECT launch_id FROM processes")
        return {row["launch_id"] for row in rows}

    # -- what must hold ---------------------------------------------------------------------------

    def _check(self, told: list[Event]) -> None:
        where = f"seed {self.tally.seed}, kill {self.tally.kills}"
        offsets = [int(event.offset) for event in told]
        assert offsets == sorted(set(offsets)), f"{where}: a client was told out of order"
        if offsets:
            assert offsets == list(range(offsets[0], offsets[-1] + 1)), f"{where}: a gap was shown"
        stored = {row.offset: row for row in self._daemon.journal.rows()}
        for event in told:
            row = stored.get(int(event.offset))
            assert row is not None, f"{where}: offset {event.offset} was shown and is not on disk"
            assert (row.kind, row.run_id) == (event.kind, event.host_run_id), where
            assert row.payload == bytes(event.payload), f"{where}: {event.offset} differs"
        kept = {row["run_id"] for row in self._daemon.journal.query("SELECT run_id FROM runs")}
        lost = set(self._accepted) - kept
        assert not lost, f"{where}: accepted runs are gone: {lost}"
        self.tally.told += len(told)
        self.tally.accepted = len(self._accepted)

    def finish(self) -> Tally:
        """After the last start and stop: every run has its one end, no prompt was sent twice."""
        problems = self._daemon.journal.problems()
        problems += [str(found) for found in check_store(self._daemon.journal.path).findings]
        assert not problems, f"seed {self.tally.seed}:\n" + "\n".join(problems)
        twice = [text for text, n in Counter(self._daemon.prompts()).items() if n > 1]
        assert not twice, f"seed {self.tally.seed}: sent twice: {json.dumps(twice)}"
        runs = self._daemon.journal.query("SELECT status FROM runs")
        self.tally.outcomes = Counter(run["status"] for run in runs)
        return self.tally
