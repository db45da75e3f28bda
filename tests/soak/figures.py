"""What the system tells about the daemon while it works, and whether that stays flat."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.support.daemon import Daemon

_TICKS = os.sysconf("SC_CLK_TCK")
_MB = 1024 * 1024


class Sample(NamedTuple):
    """The daemon at one moment; memory and sizes in bytes, `cpu` in cores of the whole run."""

    seconds: float
    rss: int
    descriptors: int
    threads: int
    wal: int
    processes: int
    store: int
    events: int
    cpu: float


class _Process(NamedTuple):
    parent: int
    own: float
    collected: float


class Watch:
    """Takes samples of one daemon and all that it started."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._began = self._last = time.monotonic()
        self._spent = self._cpu_seconds(self._family())
        self.samples: list[Sample] = []

    def sample(self, events: int) -> Sample:
        """Look now; `events` is how many the journal has, by whoever follows it."""
        daemon, now = self._daemon, time.monotonic()
        family = self._family()
        spent = self._cpu_seconds(family)
        cpu = (spent - self._spent) / max(now - self._last, 0.001)
        self._spent, self._last = spent, now
        journal = daemon.journal.path
        taken = Sample(
            seconds=now - self._began,
            rss=daemon.memory(),
            descriptors=daemon.descriptors(),
            threads=len(list(Path(f"/proc/{daemon.pid}/task").iterdir())),
            wal=_size(journal.with_name(journal.name + "-wal")),
            processes=len(family) - 1,
            store=_size(journal),
            events=events,
            cpu=cpu,
        )
        self.samples.append(taken)
        return taken

    def _family(self) -> dict[int, _Process]:
        """The daemon and its descendants."""
        known = dict(_processes())
        family = {self._daemon.pid}
        while more := {pid for pid, each in known.items() if each.parent in family} - family:
            family |= more
        return {pid: known[pid] for pid in family if pid in known}

    def _cpu_seconds(self, family: dict[int, _Process]) -> float:
        """What the daemon, its agents and this process have used, the ended ones included."""
        ours = sum(os.times()[:2])
        return ours + sum(each.own + each.collected for each in family.values())


def _processes() -> list[tuple[int, _Process]]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        user, system, user_collected, system_collected = map(int, fields[11:15])
        own, collected = (user + system) / _TICKS, (user_collected + system_collected) / _TICKS
        found.append((int(folder.name), _Process(int(fields[1]), own, collected)))
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# -- the judgement ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """By how much a figure may grow from the second quarter to the last, and what it never tops."""

    name: str
    of: Callable[[Sample], float]
    part: float
    more: float
    most: float | None = None
    unit: str = ""


RULES = (
    Rule("memory", lambda each: each.rss / _MB, 0.05, 3, unit=" MB"),
    Rule("descriptors", lambda each: each.descriptors, 0.05, 5),
    Rule("threads", lambda each: each.threads, 0, 2),
    Rule("WAL", lambda each: each.wal / _MB, 0.25, 8, most=32, unit=" MB"),
    Rule("processes", lambda each: each.processes, 0.05, 3),
)


class Verdict(NamedTuple):
    """One figure over the whole run."""

    rule: Rule
    early: float
    late: float
    peak: float

    @property
    def allowed(self) -> float:
        """What the last quarter may show."""
        return self.early * (1 + self.rule.part) + self.rule.more

    @property
    def is_flat(self) -> bool:
        """Whether it kept to the rule."""
        most = self.rule.most
        return self.late <= self.allowed and (most is None or self.peak <= most)

    def __str__(self) -> str:
        rule = self.rule
        bound = f", never above {rule.most:g}" if rule.most is not None else ""
        return (
            f"{rule.name:<12}{self.early:9.1f}{self.late:9.1f}{self.peak:9.1f}{rule.unit:<4}"
            f"{'flat' if self.is_flat else 'NOT FLAT'}"
            f" (allowed: {self.allowed:.1f}, + {rule.part:.0%} + {rule.more:g}{bound})"
        )


def judge(samples: Sequence[Sample]) -> list[Verdict]:
    """Medians of the second and of the last quarter of the time; the first is for warming up."""
    end = samples[-1].seconds
    early = [each for each in samples if end / 4 <= each.seconds < end / 2]
    late = [each for each in samples if each.seconds >= end * 3 / 4]
    if not early or not late:
        raise ValueError("too few samples for quarters")
    return [
        Verdict(
            rule, median(map(rule.of, early)), median(map(rule.of, late)),
            max(map(rule.of, samples)),
        )
        for rule in RULES
    ]  # fmt: skip


HEADER = f"{'time':>7}{'rss MB':>9}{'fds':>6}{'threads':>9}{'WAL MB':>8}{'procs':>7}{'store MB':>10}{'events':>10}{'cpu %':>7}"  # noqa: E501


def line(each: Sample) -> str:
    """A sample as a row of the table."""
    minutes, seconds = divmod(int(each.seconds), 60)
    return (
        f"{minutes:4d}:{seconds:02d}{each.rss / _MB:9.1f}{each.descriptors:6d}{each.threads:9d}"
        f"{each.wal / _MB:8.2f}{each.processes:7d}{each.store / _MB:10.1f}{each.events:10d}"
        f"{each.cpu * 100:7.0f}"
    )
