"""One prompt, from the asking to the last event read: through the daemon, and in the bare loop."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.daemon import AGENT, Daemon
from tests.bench.report import BenchError
from tests.bench.subscriber import Mode, Reading, Subscriber

_BARE = Path(__file__).with_name("bare.py")


def through_daemon(
    daemon: Daemon, session_id: str, text: str, mode: Mode, count: int
) -> tuple[Reading, int]:
    """What a subscriber read of a prompt, and when it was asked."""
    line = daemon.connect()
    with Subscriber(daemon.connect().subscribe(session_id), mode, count) as subscriber:
        subscriber.wait_until_ready()
        start = time.monotonic_ns()
        run_id = daemon.prompt(line, session_id, text)
        reading = subscriber.reading()
    daemon.finish(line, run_id)
    line.close()
    return reading, start


def through_bare_loop(folder: Path, text: str, mode: Mode, count: int) -> tuple[Reading, int]:
    """The same without a daemon, in a journal of its own on the same disk."""
    place = folder / f"bare-{time.monotonic_ns()}"
    place.mkdir()
    with subprocess.Popen(
        [sys.executable, str(_BARE), str(place / "s"), str(place / "journal.db"), *AGENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as loop:
        try:
            assert loop.stdin is not None
            assert loop.stdout is not None
            if loop.stdout.readline() != "ready\n":
                raise BenchError("the bare loop did not start")
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(os.fspath(place / "s"))
            with Subscriber(connection, mode, count) as subscriber:
                subscriber.wait_until_ready()
                start = time.monotonic_ns()
                loop.stdin.write(text + "\n")
                loop.stdin.flush()
                reading = subscriber.reading()
            loop.wait(30)
        finally:
            loop.kill()
    return reading, start
