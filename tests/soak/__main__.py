"""`python -m tests.soak`: hours of ordinary work in minutes, and whether the daemon stays as it is.

Sessions talk, queue, ask, are cancelled; agents die; clients follow, dawdle, come and go; ended
runs are sealed and backups made, all paced to a share of one core. Memory, descriptors, threads,
WAL and processes are sampled; they must be flat from the second quarter of the time to the last.
At the end the journal must be whole, and what was told be what is kept, with nothing left running.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter

import anyio

from acphost.archive.fsck import check_store
from tests.soak.clients import Visits, Witness, slow_reader
from tests.soak.figures import HEADER, Sample, Watch, judge, line
from tests.soak.talk import SCRIPT, Pace, Talk
from tests.support.config import AGENT
from tests.support.daemon import Daemon, running_daemon

#: Sessions that have one connection in common.
_A_CLIENT = 10
#: Rows of the table that are printed as the time goes by.
_ROWS = 30
_HOST = {
    "journal": {"seal_after": 5},
    "drain": {"timeout": 5},
}
#: An agent may die as often as it likes: the restart limit is not what is looked at here.
_RESTART = {"restart": {"limit": 1000, "window": 1}}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="how long (%(default)g)")
    parser.add_argument("--sessions", type=int, default=50, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="to repeat one (0: a new one)")
    parser.add_argument(
        "--share", type=float, default=0.6, help="of one core that all of it may use (%(default)g)"
    )
    return parser.parse_args()


class Soak:
    """One run of it."""

    def __init__(self, daemon: Daemon, arguments: argparse.Namespace, seed: int) -> None:
        self._daemon = daemon
        self._seconds = arguments.minutes * 60
        self._sessions: int = arguments.sessions
        dice = random.Random(seed)
        self._pace = Pace(arguments.share)
        self.talk = Talk(daemon, self._pace, dice)
        self.witness = Witness()
        self.visits = Visits(daemon, self.talk, dice)
        self.watch = Watch(daemon)
        self.backups = 0
        self.backup = daemon.folder / "backup.db"

    async def run(self) -> None:
        """All of the load, until the time is over and what was begun has ended."""
        async with anyio.create_task_group() as onlookers:
            onlookers.start_soon(self._witness)
            onlookers.start_soon(slow_reader, self._daemon, self.talk)
            onlookers.start_soon(self._people)
            async with anyio.create_task_group() as workers:
                workers.start_soon(self._sample)
                workers.start_soon(self.visits.run)
                workers.start_soon(self._back_up)
                workers.start_soon(self.talk.kill_agents, self._daemon.client)
                for begin in range(0, self._sessions, _A_CLIENT):
                    count = min(_A_CLIENT, self._sessions - begin)
                    workers.start_soon(self._talkers, begin, count)
            await self._see_the_end()
            onlookers.cancel_scope.cancel()

    async def _talkers(self, begin: int, count: int) -> None:
        async with self._daemon.connect() as client, anyio.create_task_group() as tasks:
            for place in range(begin, begin + count):
                agent = "shared" if place % 2 else "fake"
                tasks.start_soon(self.talk.session, client, agent)

    async def _witness(self) -> None:
        async with self._daemon.connect() as client:
            await self.witness.follow(client)

    async def _people(self) -> None:
        async with self._daemon.connect(capabilities={"permissions": True}) as client:
            await self.talk.answer(client)

    async def _sample(self) -> None:
        every = min(5.0, self._seconds / 40)
        end = time.monotonic() + self._seconds
        print(HEADER, flush=True)
        shown = -1
        while (left := end - time.monotonic()) > 0:
            await anyio.sleep(min(every, left))
            taken = self.watch.sample(self.witness.head)
            self._pace.heed(taken.cpu)
            if (row := int(taken.seconds * _ROWS / self._seconds)) != shown:
                shown = row
                print(line(taken), flush=True)
        self.talk.end()

    async def _back_up(self) -> None:
        every = max(self._seconds / 12, 5)
        while not self.talk.is_over:
            with anyio.move_on_after(every):
                while not self.talk.is_over:
                    await self.talk.rest(1)
            await self._daemon.client.backup(str(self.backup), force=True)
            self.backups += 1

    async def _see_the_end(self) -> None:
        """The witness must get to the last event there was when the work ended."""
        stats = await self._daemon.client.stats()
        journal = stats["journal"]
        assert isinstance(journal, dict)
        with anyio.fail_after(30):
            while self.witness.head < journal["headOffset"]:  # noqa: ASYNC110  told by the daemon
                await anyio.sleep(0.05)


def _problems(daemon: Daemon, soak: Soak) -> list[str]:
    """All that must hold at the end."""
    report = check_store(daemon.journal.path)
    checked = ", ".join(f"{count} {what}" for what, count in report.checked.items())
    print(f"fsck of the store: {checked}; {len(report.findings)} findings")
    problems = [f"fsck: {each}" for each in [*report.findings, *report.notes]]
    copy = check_store(soak.backup, here=False)
    print(f"fsck of the last backup: {copy.checked['events']} events,"
          f" {len(copy.findings)} findings")  # fmt: skip
    problems += [f"fsck of the backup: {each}" for each in copy.findings]
    problems += soak.witness.compare(daemon)
    problems += daemon.journal.left_open()
    problems += daemon.left_behind()
    kept = {row["run_id"] for row in daemon.journal.query("SELECT run_id FROM runs")}
    if lost := soak.talk.accepted - kept:
        problems.append(f"{len(lost)} accepted runs are gone")
    prompts = daemon.prompts() + daemon.prompts("shared")
    twice = [text for text, times in Counter(prompts).items() if times > 1]
    if twice:
        problems.append(f"sent twice: {json.dumps(twice)}")
    wrong = set(soak.talk.outcomes) - {"completed", "cancelled", "failed", "interrupted"}
    if wrong:
        problems.append(f"runs ended as {wrong}")
    return problems


def _prepare(daemon: Daemon) -> None:
    """A second agent, whose sessions share one process."""
    (daemon.folder / "shared.script").write_text(SCRIPT)
    shared = {
        **AGENT, **_RESTART, "command": daemon.command("shared"), "process": "shared",
        "env": {"DIR": str(daemon.folder)},
    }  # fmt: skip
    daemon.configure(agents={"shared": shared})


async def _main(arguments: argparse.Namespace) -> int:
    seed = arguments.seed or random.SystemRandom().randrange(1 << 30)
    print(f"soak: {arguments.minutes:g} minutes, {arguments.sessions} sessions, seed {seed}")
    agent = {**_RESTART, "process": "per_session"}
    async with running_daemon(
        SCRIPT, agent=agent, host=_HOST, prepare=_prepare, check=False, follow=False
    ) as daemon:
        soak = Soak(daemon, arguments, seed)
        await soak.run()
        await daemon.stop()
        problems = _problems(daemon, soak)
    verdicts = judge(soak.watch.samples)
    _summary(soak, soak.watch.samples)
    print(f"\n{'median of':<12}{'2nd q.':>9}{'4th q.':>9}{'peak':>9}")
    for verdict in verdicts:
        print(verdict)
    for problem in problems[:50]:
        print(f"PROBLEM: {problem}")
    is_good = not problems and all(each.is_flat for each in verdicts)
    print("soak: passed" if is_good else f"soak: FAILED, {len(problems)} problems (seed {seed})")
    return 0 if is_good else 1


def _summary(soak: Soak, samples: list[Sample]) -> None:
    def told(counts: Counter[str]) -> str:
        return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))

    talk = soak.talk
    cpu = sum(each.cpu for each in samples) / len(samples)
    answers = sorted(soak.visits.answers) or [0.0]
    print(
        f"\n{len(talk.accepted)} runs ({told(talk.outcomes)}), turns: {told(talk.turns)};\n"
        f"{len(soak.witness.marks)} events told and compared, {talk.answers} questions answered,"
        f" {talk.releases} held queues released,"
        f" {talk.agent_kills} agents killed, {soak.visits.count} clients came and went,"
        f" {soak.backups} backups;\n"
        f"a session is told of within {answers[len(answers) // 2] * 1000:.0f} ms, at worst"
        f" {answers[-1] * 1000:.0f} ms; {cpu:.0%} of one core used"
    )


if __name__ == "__main__":
    if sys.platform != "linux":
        print("soak: 1 skipped: descriptors, threads and children are read from Linux' /proc")
        sys.exit(0)
    sys.exit(anyio.run(_main, _arguments()))
