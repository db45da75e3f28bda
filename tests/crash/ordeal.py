"""kill -9 of the daemon under load, over and over, on one store.

Each life gets floods, a queue, questions, cancels and backups from several clients, some of which
are killed themselves, as are agents; the disk may be full, or the store locked. It ends at a random
moment, or at a named point that it reaches for the n-th time. Then what every client was told is
held against what is on disk. The seed is printed; the same seed gives the same
choices.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from acphost.archive.fsck import check_store
from acphost.errors import AcpHostError
from acphost.wire.event import Event
from tests.crash.load import Load
from tests.crash.points import Points
from tests.support.daemon import Daemon, marked_processes

#: The kill comes within this many seconds of the first answer, or of the load without one.
LATEST = 0.6
#: How long a busy machine may take to the first answer, or to a named point.
PATIENCE = 20
POINT_PATIENCE = 3
_ONLOOKER = str(Path(__file__).with_name("onlooker.py"))
#: So many lives go by between two checks of the whole store.
_WHOLE_CHECK = 5

#: How a life ends: the pattern, how often it may come before, and how many of ten lives end so.
_ENDS = {
    "at a random moment": (None, 0, 4),
    "before a statement": (r"^sql", 300, 3),
    "between commit and publish": (r"^committed", 40, 1),
    "in sealing": (r"^sql (INSERT INTO segment|PRAGMA incremental)", 6, 1),
    "in a backup": (r"^(file create \S+part_|copied)", 6, 1),
}


class _Told(msgspec.Struct):
    """The part of a notification that an onlooker is asked about."""

    class Params(msgspec.Struct):
        events: list[Event] = []

    params: Params = msgspec.field(default_factory=Params)


class Ordeal:
    """One daemon's lives and sudden deaths; `tally` counts what was done and seen."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self._daemon = daemon
        self._seed = seed
        self._dice = random.Random(seed)
        self._load = Load(daemon, self._dice)
        self._flowing = anyio.Event()
        self._lives = 0
        self.tally: Counter[str] = Counter()

    async def life(self) -> None:
        """Start the daemon, load it, kill it, and check what is on disk."""
        self._lives += 1
        how = self._choose()
        point = self._arm(how)
        earlier = self._launches()
        if await self._daemon.comes_up():
            # The daemon answers: then nothing of the last life may be running any more.
            left = marked_processes(earlier)
            assert not left, f"{self._where}: processes {left} outlived the daemon's restart"
            told, seen = await self._live(point)
            self._check(told)
            self._check(seen)
        else:
            await self._daemon.exit_code()
            assert point is not None, self._daemon.log()[-2000:]
            assert point.was_reached, self._daemon.log()[-2000:]
            how = "while it started"
        self.tally["kills of the daemon"] += 1
        self.tally[f"kills {how}"] += 1
        self._keep_promises()
        if not self._lives % _WHOLE_CHECK:
            self._check_whole()

    def _choose(self) -> str:
        (how,) = self._dice.choices(list(_ENDS), [weight for _, _, weight in _ENDS.values()])
        return how

    def _arm(self, how: str) -> Points | None:
        pattern, most, _ = _ENDS[how]
        self._daemon.wrapper = []
        if pattern is None:
            return None
        point = Points(self._daemon, pattern)
        point.arm(self._dice.randint(1, most))
        return point

    async def _live(self, point: Points | None) -> tuple[list[Event], list[Event]]:
        told: list[Event] = []
        self._flowing = anyio.Event()
        onlooker, file = self._start_onlooker()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._load.run)
                tasks.start_soon(self._follow, told)
                await self._until_the_end(point, onlooker)
                tasks.cancel_scope.cancel()
        finally:
            onlooker.kill()
            onlooker.wait()
        return told, _events(file)

    async def _until_the_end(
        self, point: Points | None, onlooker: "subprocess.Popen[bytes]"
    ) -> None:
        daemon, dice = self._daemon, self._dice
        if point is not None and dice.random() < 0.5:
            with anyio.move_on_after(POINT_PATIENCE):
                await daemon.exit_code()
                return
        if dice.random() < 0.8:
            with anyio.move_on_after(PATIENCE):
                await self._flowing.wait()
        await anyio.sleep(dice.uniform(0.0, LATEST))
        if dice.random() < 0.2:
            self._fill_the_disk()
            await anyio.sleep(dice.uniform(0.0, LATEST))
        elif dice.random() < 0.2:
            await anyio.to_thread.run_sync(self._lock_the_store, dice.uniform(0.0, LATEST))
        if dice.random() < 0.3:
            self._kill_an_agent()
        if dice.random() < 0.4:
            onlooker.kill()
            self.tally["kills of a client"] += 1
        if point is not None:
            with anyio.move_on_after(POINT_PATIENCE):
                await daemon.exit_code()
                return
        await daemon.kill()

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

    def _start_onlooker(self) -> "tuple[subprocess.Popen[bytes], Path]":
        """A client that is a process, and asks for runs whose answers it will not read."""
        file = self._daemon.folder / f"onlooker {self._lives}"
        runs = []
        for session in self._load.sessions[-2:]:
            text, request = self._load.prompt("hello")
            runs.append(json.dumps({"requestId": request, "sessionId": session, "text": text}))
        command = [sys.executable, "-I", "-S", _ONLOOKER, str(self._daemon.socket), str(file)]
        return subprocess.Popen([*command, *runs], stderr=subprocess.DEVNULL), file

    def _kill_an_agent(self) -> None:
        pids = marked_processes(self._launches("WHERE ended_at IS NULL"))
        if pids:
            os.kill(self._dice.choice(pids), signal.SIGKILL)
            self.tally["kills of an agent"] += 1

    def _fill_the_disk(self) -> None:
        """From here to the end of this life there is little room left."""
        journal = self._daemon.journal.path
        wal = journal.with_name(journal.name + "-wal")
        largest = max(path.stat().st_size for path in (journal, wal) if path.exists())
        with suppress(ProcessLookupError):  # it has come to its point
            self._daemon.limit_file_size(largest + self._dice.randrange(200_000))
            self.tally["full disks"] += 1

    def _lock_the_store(self, seconds: float) -> None:
        """As another program would that has a look at it, and takes its time."""
        with closing(sqlite3.connect(self._daemon.journal.path, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return  # the daemon is just writing
            time.sleep(seconds)
            other.execute("ROLLBACK")
        self.tally["locks by another program"] += 1

    def _launches(self, which: str = "") -> set[str]:
        rows = self._daemon.journal.query(f"SELECT launch_id FROM processes {which}")  # noqa: S608
        return {row["launch_id"] for row in rows}

    # -- what must hold ---------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"seed {self._seed}, life {self._lives}"

    def _check(self, told: list[Event]) -> None:
        """What one client was told is without a gap, and is what is stored."""
        offsets = [int(event.offset) for event in told]
        if not offsets:
            return
        where = self._where
        assert offsets == list(range(offsets[0], offsets[-1] + 1)), f"{where}: a gap, or a repeat"
        stored = {row.offset: row for row in self._daemon.journal.rows(after=offsets[0] - 1)}
        for event in told:
            row = stored.get(int(event.offset))
            assert row is not None, f"{where}: offset {event.offset} was shown and is not on disk"
            assert (row.kind, row.run_id) == (event.kind, event.host_run_id), where
            assert row.payload == bytes(event.payload), f"{where}: {event.offset} differs"
        self.tally["events told and compared"] += len(told)

    def _keep_promises(self) -> None:
        """Whatever a client had an answer to is on disk."""
        query, promises = self._daemon.journal.query, self._load.promises
        runs = {row["run_id"]: row for row in query("SELECT * FROM runs")}
        lost = set(promises.accepted.values()) - set(runs)
        assert not lost, f"{self._where}: accepted runs are gone: {lost}"
        for run_id in promises.cancelled:
            run = runs[run_id]
            assert run["cancel_requested_at"] or run["ended_at"], f"{self._where}: {run_id} goes on"
        for run_id, text in promises.changed.items():
            (prompt,) = query("SELECT content FROM prompts WHERE run_key = ?", runs[run_id]["key"])
            kept = json.loads(prompt["content"])[0]["text"]
            assert kept == text, f"{self._where}: {run_id} says {kept!r}, not {text!r}"
        decided = query("SELECT permission_id FROM decisions WHERE status = 'resolved'")
        gone = promises.answered - {row["permission_id"] for row in decided}
        assert not gone, f"{self._where}: an answer is gone"

    def _check_whole(self) -> None:
        report = check_store(self._daemon.journal.path)
        assert report.is_clean, f"{self._where}: {report.findings}"
        self.tally["checks of a whole store"] += 1

    def finish(self) -> None:
        """After the last start and stop: every run has its one end, no prompt was sent twice."""
        daemon = self._daemon
        problems = daemon.journal.problems() + daemon.left_behind()
        problems += [str(found) for found in check_store(daemon.journal.path).findings]
        problems += [str(path) for path in daemon.folder.glob(".*.part_*")]
        assert not problems, f"seed {self._seed}:\n" + "\n".join(problems)
        twice = [text for text, n in Counter(daemon.prompts()).items() if n > 1]
        assert not twice, f"seed {self._seed}: sent twice: {json.dumps(twice)}"
        runs = daemon.journal.query("SELECT status FROM runs")
        self.tally["runs accepted"] = len(runs)
        for run in runs:
            self.tally[f"runs {run['status']}"] += 1
        self.tally["questions answered"] = len(self._load.promises.answered)
        self.tally["changes of the queue"] = len(self._load.promises.changed)
        self.tally["cancels"] = len(self._load.promises.cancelled)
        self.tally["backups"] = self._load.promises.backups


def _events(file: Path) -> list[Event]:
    """What an onlooker has written down; its last line may be torn."""
    if not file.exists():
        return []
    *lines, _ = file.read_bytes().split(b"\n")
    file.unlink()
    found: list[Event] = []
    for line in lines:
        found += msgspec.json.decode(line, type=_Told).params.events
    return found
