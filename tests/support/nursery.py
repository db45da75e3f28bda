"""Daemons under test without the third of a second that each spends on imports.

A process per worker, started once, imports all that a daemon imports and then forks one for every
test that asks. What comes of it runs the same `acphost serve`, watched by `unblocked.py`, with its
own words, folder, descriptors and default signals. Three things tell it from a program started
anew: its parent, its command line and environment as /proc shows them, and pages of memory that it
has from the nursery. So only a daemon that is to be like any other comes from here: tests of starts
and ends, of processes, memory and kills have the mark `anew` or a wrapper, and a daemon with an
environment of its own is a program, too (`Daemon.launch`).

    python -m tests.support.nursery FD      is the nursery; it takes orders from the socket FD
"""

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol

from tests.support import unblocked

#: A measurement of lines follows programs that are started, and loses sight of those that are not.
_IS_MEASURED = "COVERAGE_PROCESS_CONFIG" in os.environ
_LONGEST_ORDER = 1 << 16
_STANDARD = 3
_ROOT = Path(__file__).parents[2]
#: What a daemon imports only as it starts.
_LATE = (
    "acphost.cli.serve",
    "anyio._backends._asyncio",
    "asyncio.unix_events",
    "sqlite3",
    "structlog",
)


class Process(Protocol):
    """What tests ask of a daemon's process; `subprocess.Popen` has it all."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""

    def wait(self) -> int:
        """Wait for its end."""

    def kill(self) -> None:
        """kill -9."""


class Offspring:
    """A daemon that the nursery forked; `subprocess.Popen`, as far as tests need it."""

    def __init__(self, pid: int, end: int) -> None:
        """`end`: a pipe in which its exit code comes."""
        self.pid = pid
        self.returncode: int | None = None
        self._end = end

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None and select.select([self._end], [], [], 0)[0]:
            self._collect()
        return self.returncode

    def wait(self) -> int:
        """Wait for its end."""
        if self.returncode is None:
            self._collect()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """kill -9."""
        os.kill(self.pid, signal.SIGKILL)

    def _collect(self) -> None:
        told = os.read(self._end, 16)
        os.close(self._end)
        assert told, "the nursery has ended before its daemons"
        self.returncode = int(told)


class Nursery:
    """The nursery of this worker."""

    def __init__(self) -> None:
        self.environ = plain_environ()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())], cwd=_ROOT, env=self.environ,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        atexit.register(self.close)

    def start(self, words: Sequence[str], folder: Path, stderr: int) -> Offspring:
        """Have a daemon with these words run there."""
        end, theirs = os.pipe()
        order = json.dumps({"words": list(words), "folder": str(folder)}).encode()
        try:
            socket.send_fds(self._orders, [order], [stderr, theirs])
        finally:
            os.close(theirs)
        told = self._orders.recv(16)
        assert told, "the nursery is closed"
        return Offspring(int(told), end)

    def close(self) -> None:
        """End it; daemons that run are left alone."""
        self._orders.close()
        self._process.wait()


def plain_environ() -> dict[str, str]:
    """What a daemon under test is given: ours, without what is about acphost or the test."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ACPHOST_") and name != "PYTEST_CURRENT_TEST"
    }


def of_this_worker(environ: dict[str, str]) -> Nursery | None:
    """The nursery, if a daemon with this environment may come from there."""
    global _nursery  # noqa: PLW0603  as long as the process
    if not is_open or _IS_MEASURED or not hasattr(os, "pidfd_open"):
        return None
    if _nursery is None:
        _nursery = Nursery()
    return _nursery if _nursery.environ == environ else None


#: Whether the test that runs is content with what comes from here.
is_open = False
_nursery: Nursery | None = None


# -- the other process ----------------------------------------------------------------------------


def main() -> None:
    """Fork a daemon for every order, and tell how each ends, until nobody gives any."""
    # A terminal tells all its processes; this one ends with the tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    unblocked.watch()
    for module in _LATE:
        __import__(module)
    # A collection in a daemon would touch, and so copy, every page that has an object of ours.
    gc.collect()
    gc.freeze()
    orders = socket.socket(fileno=int(sys.argv[1]))
    watched = select.poll()
    watched.register(orders, select.POLLIN)
    living: dict[int, tuple[int, int]] = {}
    while True:
        for descriptor, _ in watched.poll():
            if descriptor in living:
                watched.unregister(descriptor)
                _tell(descriptor, *living.pop(descriptor))
                continue
            order, descriptors, _, _ = socket.recv_fds(orders, _LONGEST_ORDER, 2)
            if not order:
                return
            stderr, end = descriptors
            pid = os.fork()
            if pid == 0:
                orders.detach()
                _be(stderr, **json.loads(order))
            os.close(stderr)
            pidfd = os.pidfd_open(pid)
            living[pidfd] = (pid, end)
            watched.register(pidfd, select.POLLIN)
            orders.send(str(pid).encode())


def _tell(pidfd: int, pid: int, end: int) -> None:
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # nobody asks any more
        os.write(end, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(end)
    os.close(pidfd)


def _be(stderr: int, words: list[str], folder: str) -> NoReturn:
    """Be a daemon that has just been started."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stderr, 2)
        os.closerange(_STANDARD, os.sysconf("SC_OPEN_MAX"))
        os.chdir(folder)
        sys.orig_argv[1:] = ["-m", "acphost", *words]
        unblocked.be(words)
    except BaseException:  # whatever it was, the nursery's own code must not follow
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main()
