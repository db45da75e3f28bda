"""The four measurements, each with its targets; ours and the other are taken in turns."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.bench import machine
from tests.bench.daemon import Daemon, running
from tests.bench.report import Figure, Item, compared, percentile
from tests.bench.rounds import through_bare_loop, through_daemon
from tests.bench.subscriber import Subscriber

_FLOOD = 200_000
_CHUNKS, _GAP_MS = 1000, 2
_SESSIONS, _EACH = 20, 20_000
_IMPORTS = "import anyio, msgspec, aiosqlite, structlog, watchfiles"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured, and where."""

    folder: Path
    rounds: int
    #: Seconds of rest that wake-ups are counted in.
    window: float


def throughput(plan: Plan) -> Item:
    """Events a second, through the journal to one subscriber."""
    text, ours, bare = f"flood {_FLOOD}", [], []
    with running(plan.folder / "throughput") as daemon:
        session = daemon.warm_session(daemon.connect())
        for _ in range(plan.rounds):
            reading, start = through_bare_loop(plan.folder, text, "count", _FLOOD)
            bare.append(reading.rate(_FLOOD, start))
            reading, start = through_daemon(daemon, session, text, "count", _FLOOD)
            ours.append(reading.rate(_FLOOD, start))
    figure = compared("events", "/s", ours, bare, target=(">=", 0.6))
    return Item("throughput", f"{text}, one subscriber", [figure])


def latency(plan: Plan) -> Item:
    """From the agent's write to the subscriber's read."""
    text = f"paced {_CHUNKS} {_GAP_MS}"
    ours: list[list[float]] = []
    bare: list[list[float]] = []
    with running(plan.folder / "latency") as daemon:
        session = daemon.warm_session(daemon.connect())
        for _ in range(plan.rounds):
            bare.append(through_bare_loop(plan.folder, text, "stamps", _CHUNKS)[0].ages)
            ours.append(through_daemon(daemon, session, text, "stamps", _CHUNKS)[0].ages)
    figures = [
        compared(
            name, "ms",
            [percentile(ages, share) for ages in ours],
            [percentile(ages, share) for ages in bare],
            target=("<=", limit),
        )
        for name, share, limit in (("p50", 0.5, 1.7), ("p99", 0.99, 3.0))
    ]  # fmt: skip
    return Item("latency", f"{text}, from the agent's write to the subscriber's read", figures)


def rest(plan: Plan) -> Item:
    """What a daemon costs that nobody uses, and how soon it can be used."""
    folder = plan.folder / "rest"
    start_up, imports = _start_ups(folder, plan.rounds + 2)
    figures = [compared("ready on the socket", "s", start_up, imports,
                        beside="its imports", target=("<=", 2.5))]  # fmt: skip
    with running(folder) as daemon:
        # What the start has left to do is not rest.
        time.sleep(min(10.0, plan.window / 2))
        before, began = machine.wake_ups(daemon.pid), time.monotonic()
        time.sleep(plan.window)
        after, seconds = machine.wake_ups(daemon.pid), time.monotonic() - began
        figures.append(
            Figure(name="resident memory", unit="MB", ours=machine.memory(daemon.pid),
                   target=("<=", 40))
        )  # fmt: skip
    if before is None or after is None:
        return Item("rest", "no agent, no client", figures, ["this system counts no wake-ups"])
    figures.append(
        Figure(name=f"wake-ups in {seconds:.0f} s", unit="/s", ours=(after - before) / seconds,
               target=("<", 1))
    )  # fmt: skip
    return Item("rest", "no agent, no client", figures)


def _start_ups(folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds until the daemon takes connections, and those that its imports alone take."""
    start_up, imports = [], []
    for _ in range(rounds):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
        imports.append(time.monotonic() - began)
        began = time.monotonic()
        with running(folder):
            start_up.append(time.monotonic() - began)
    # The first ones find no compiled modules and no journal.
    return start_up[1:], imports[1:]


def crowd(plan: Plan) -> Item:
    """Many sessions at once beside one, and beside themselves with a subscriber that is stopped."""
    one, many, stopped, peaks = [], [], [], []
    with running(plan.folder / "crowd") as daemon:
        sessions = [daemon.warm_session(daemon.connect()) for _ in range(_SESSIONS)]
        for _ in range(plan.rounds):
            reading, start = through_daemon(daemon, sessions[0], f"flood {_FLOOD}", "count", _FLOOD)
            one.append(reading.rate(_FLOOD, start))
            machine.forget_peak(daemon.pid)
            many.append(_stream(daemon, sessions, frozen=0))
            peaks.append(machine.peak_memory(daemon.pid))
            machine.forget_peak(daemon.pid)
            stopped.append(_stream(daemon, sessions, frozen=1))
            peaks[-1:] = [peaks[-1], machine.peak_memory(daemon.pid)]
    figures = [
        compared(f"{_SESSIONS} sessions in all", "/s", many, one,
                 beside="one session", target=(">=", 0.8)),
        compared("… with one subscriber stopped", "/s", stopped, many,
                 beside="none stopped", target=(">=", 0.8)),
        Figure(name="… peak of resident memory", unit="MB", ours=max(peaks[1::2]),
               bare=max(peaks[::2]), beside="none stopped", target=("<=", 1.5)),
    ]  # fmt: skip
    title = f"flood {_EACH} by {_SESSIONS} agents at once, a subscriber each"
    return Item("crowd", title, figures)


def _stream(daemon: Daemon, sessions: Sequence[str], *, frozen: int) -> float:
    """Flood all sessions together; events a second until the last of those not frozen has all.

    Whoever was frozen is let go afterwards, and must get everything too.
    """
    line = daemon.connect()
    with ExitStack() as stack:
        subscribers = [
            stack.enter_context(Subscriber(daemon.connect().subscribe(session), "count", _EACH))
            for session in sessions
        ]
        for subscriber in subscribers:
            subscriber.wait_until_ready()
        for subscriber in subscribers[:frozen]:
            subscriber.freeze()
        start = time.monotonic_ns()
        runs = daemon.prompt_all(line, sessions, f"flood {_EACH}")
        readings = [subscriber.reading() for subscriber in subscribers[frozen:]]
        for subscriber in subscribers[:frozen]:
            subscriber.thaw()
            subscriber.reading()
    for run in runs:
        daemon.finish(line, run)
    line.close()
    last = max(readings, key=lambda reading: reading.last)
    return last.rate(_EACH * len(readings), start)


ITEMS: dict[str, Callable[[Plan], Item]] = {
    "throughput": throughput,
    "latency": latency,
    "rest": rest,
    "crowd": crowd,
}
