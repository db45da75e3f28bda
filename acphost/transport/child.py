"""A child process: its pipes, its exit, and an end that leaves nothing behind."""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread

from acphost.errors import AgentUnavailableError
from acphost.transport import cgroups, exits, processes
from acphost.transport.exits import Exit
from acphost.transport.pipes import PipeReader, PipeWriter, enlarge
from acphost.transport.processes import LAUNCH_VARIABLE, Process
from acphost.transport.program import find_program

__all__ = ["Child", "ChildSpec", "Exit", "look_up", "spawn"]

#: Room for what an agent says while the loop is busy.
_STDOUT_ROOM = 1024 * 1024

#: Seconds within which a disk has to answer where folder and program are to be.
_LOOK_PATIENCE = 20.0

#: What the system lacks, in words; the child could be started another time.
_SHORT_OF = {
    errno.EMFILE: "this daemon has too many files open",
    errno.ENFILE: "the system has too many files open",
    errno.EAGAIN: "the limit of processes is reached",
    errno.ENOMEM: "there is no memory left",
    errno.E2BIG: "its arguments and environment are too long",
    errno.ENOEXEC: "it is neither a binary for this machine nor a script with a `#!` line",
    errno.ENOENT: "the loader it was built for is missing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What to run: `argv[0]` is looked up in the PATH of `env`, which is passed exactly.

    After the child has ended, what it started may hold its pipes for `drain_grace` seconds more.
    `cgroup`: where the control group is to be that keeps it and all it starts together.
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    launch_id: str
    drain_grace: float = 2.0
    #: What it says on stderr comes on stdout, in the order in which it was written.
    merged: bool = False
    cgroup: str | None = None


class Child:
    """A running child in a process group of its own; its owner must call `stop`."""

    def __init__(self, pid: int, spec: ChildSpec, ends: "_Ends") -> None:
        self.pid = pid
        self.pgid = pid
        self.birth = processes.birth(pid) or ""
        self.launch_id = spec.launch_id
        self.command = tuple(spec.argv)
        self._cgroup = spec.cgroup
        #: What it has started, as far as its owner has seen.
        self.relatives: list[Process] = []
        #: How it ended; None while it runs.
        self.exit: Exit | None = None
        self._drain_grace = spec.drain_grace
        self._stdin = PipeWriter(ends.stdin)
        self._stdout = PipeReader(ends.stdout)
        self._stderr = PipeReader(ends.stderr)
        self._exited = anyio.Event()
        self._drain: asyncio.TimerHandle | None = None
        self._is_collected = False
        self._is_stopping = False
        self._stopped = anyio.Event()
        self._survivors: list[Process] = []
        processes.expect(pid)
        exits.watch(pid, self._on_exit)

    # -- talking ----------------------------------------------------------------------------------

    async def read_stdout(self) -> bytes:
        """Up to 256 KiB; b"" at the end.

        The end is EOF, or `drain_grace` after the exit what the pipe holds then, or `stop`.
        """
        return await self._stdout.read()

    async def read_stderr(self) -> bytes:
        """As `read_stdout`."""
        return await self._stderr.read()

    async def write(self, data: bytes) -> None:
        """Write all of `data` to stdin; for one task at a time.

        Raises ConnectionLostError if nobody reads it. Cancelled in the middle, stdin is closed.
        """
        await self._stdin.write(data)

    def close_stdin(self) -> None:
        """Let the child see EOF."""
        self._stdin.close()

    # -- ending -----------------------------------------------------------------------------------

    async def wait(self) -> Exit:
        """How the child ended, as soon as it has, whoever holds its pipes."""
        while self.exit is None:
            await self._exited.wait()
        return self.exit

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the child and whatever of its group is left."""
        if self._is_collected:
            processes.send_each(self._group(), number)
            return
        # The uncollected leader keeps the id of the group from being given to anybody else.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pgid, number)

    async def stop(self, *, eof_grace: float, term_grace: float) -> list[Process]:
        """End the child and all it has started: EOF, then TERM, then KILL; returns survivors.

        Not to be cancelled, but bounded: the two graces and `processes.KILL_GRACE`. From here on
        its output is thrown away, and reads return b"". A second call waits for the first.
        """
        with anyio.CancelScope(shield=True):
            if self._is_stopping:
                await self._stopped.wait()
                return self._survivors
            self._is_stopping = True
            try:
                self._survivors = await self._end(eof_grace, term_grace)
            finally:
                self._release()
                await processes.reap_adopted()
                if self._cgroup is not None:
                    cgroups.remove(self._cgroup)
                self._stopped.set()
        return self._survivors

    async def _end(self, eof_grace: float, term_grace: float) -> list[Process]:
        # Before the EOF: what the agent leaves behind may have lost its parent afterwards.
        known = await processes.in_thread(lambda: processes.with_descendants(self._left()))
        known += self.relatives
        self.close_stdin()
        async with anyio.create_task_group() as drains:
            # A child that is blocked on a full pipe would never notice that its stdin is closed.
            drains.start_soon(self._stdout.discard)
            drains.start_soon(self._stderr.discard)
            with anyio.move_on_after(eof_grace):
                await self._exited.wait()
            survivors = await processes.end_all(
                self._left, known=known, term_grace=term_grace, strike=self._strike
            )
            with anyio.move_on_after(processes.KILL_GRACE if not survivors else 0):
                await self._exited.wait()
            drains.cancel_scope.cancel()
        return survivors

    def _left(self) -> list[Process]:
        contained = processes.contained(self._cgroup)
        return sorted({*self._group(), *processes.marked(self.launch_id), *contained})

    def _group(self) -> list[Process]:
        if self._is_collected and processes.birth(self.pgid) is not None:
            return []  # the pid was given away, so the group had died out before
        return processes.group_members(self.pgid)

    def _strike(self, found: list[Process], number: signal.Signals) -> None:
        # The group in one call, which no fork can slip through; then those who have left it.
        self.signal_group(number)
        if number == signal.SIGKILL and self._cgroup is not None:
            cgroups.kill(self._cgroup)
        processes.send_each(found, number)

    def _release(self) -> None:
        if self._drain is not None:
            self._drain.cancel()
        self._stdout.close()
        self._stderr.close()
        if self.exit is not None:
            self._collect()

    # -- the exit ---------------------------------------------------------------------------------

    def _on_exit(self, how: Exit) -> None:
        self.exit = how
        self._is_collected = not exits.CAN_PEEK
        self._exited.set()
        if self._stopped.is_set():  # it had survived even SIGKILL for a while
            self._collect()
        else:
            loop = asyncio.get_running_loop()
            self._drain = loop.call_later(self._drain_grace, self._end_of_drain)

    def _end_of_drain(self) -> None:
        self._stdin.close()
        self._stdout.cut()
        self._stderr.cut()

    def _collect(self) -> None:
        if not self._is_collected:
            exits.collect(self.pid)
            self._is_collected = True
        processes.forget(self.pid)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Our ends of the three pipes."""

    stdin: int
    stdout: int
    stderr: int


async def look_up(spec: ChildSpec) -> None:
    """Touch folder and program beside the loop: a disk that does not answer must not stop that.

    Raises AgentUnavailableError as `spawn` would, or because nothing answers.
    """
    look = partial(find_program, spec.argv[0], spec.cwd, spec.env)
    try:
        with anyio.fail_after(_LOOK_PATIENCE):
            await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
    except TimeoutError:
        raise AgentUnavailableError(
            f"the disk does not answer where {spec.cwd} and {spec.argv[0]} are to be", cwd=spec.cwd
        ) from None


def spawn(spec: ChildSpec) -> Child:
    """Start a child; to be called in the loop's thread, after `look_up` if others need the loop.

    Raises AgentUnavailableError, naming what is missing and where it was looked for.
    """
    program = find_program(spec.argv[0], spec.cwd, spec.env)
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for mine, other in ((1, 0), (0, 1), (0, 1)):
            pipe = os.pipe()
            ours.append(pipe[mine])
            theirs.append(pipe[other])
        enlarge(ours[1], _STDOUT_ROOM)
        return Child(_start(program, spec, theirs), spec, _Ends(*ours))
    except (OSError, ValueError) as exc:
        for descriptor in ours:
            os.close(descriptor)
        raise _unavailable(program, exc) from exc
    finally:
        for descriptor in theirs:
            os.close(descriptor)


def _start(program: str, spec: ChildSpec, theirs: Sequence[int]) -> int:
    stdin, stdout, stderr = theirs
    if spec.merged:
        stderr = stdout
    group = None if spec.cgroup is None else cgroups.make(spec.cgroup)
    try:
        process = subprocess.Popen(  # noqa: S603 - running what the user configured is our purpose
            [program, *spec.argv[1:]],
            cwd=spec.cwd,
            env={**spec.env, LAUNCH_VARIABLE: spec.launch_id},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            # Later would be too late: what it starts first would stay outside.
            preexec_fn=None if group is None else partial(cgroups.enter, group),  # noqa: PLW1509
        )
    except BaseException:
        if spec.cgroup is not None:
            cgroups.remove(spec.cgroup)
        raise
    finally:
        if group is not None:
            os.close(group)
    # It has served its purpose. Left open, its finaliser would collect the child behind our back.
    process.returncode = 0
    return process.pid


def _unavailable(program: str, exc: OSError | ValueError) -> AgentUnavailableError:
    if isinstance(exc, OSError):
        why = _SHORT_OF.get(exc.errno or 0, exc.strerror or str(exc))
    else:
        why = str(exc)
    return AgentUnavailableError(f"cannot start {program}: {why}", program=program)
