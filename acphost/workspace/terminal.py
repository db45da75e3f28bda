"""A command that runs for an agent: its output, its end, and the end of all it has started."""

import signal
from collections.abc import Sequence

import anyio

from acphost.errors import AgentUnavailableError
from acphost.transport.child import Child, ChildSpec, Exit, look_up, spawn
from acphost.transport.processes import Process
from acphost.transport.program import find_program
from acphost.wire.acp_files import ExitStatus
from acphost.workspace.output import OutputTail

#: How long a command that was told to end may take before it is made to.
KILL_GRACE = 1.0
#: How long what a command has left behind may hold its output open.
DRAIN_GRACE = 0.3
_SHELL = "/bin/sh"
#: In a line that is meant for a shell; a name of a program has none of them.
_SHELL_SIGNS = frozenset(" \t\n;&|<>()$`\"'*?~=")


class Terminal:
    """A running command, or one that has ended; `close` must be called in the end."""

    def __init__(
        self, terminal_id: str, title: str, child: Child, *, limit: int, run_id: str | None
    ) -> None:
        self.id = terminal_id
        #: The run that it was started in.
        self.run_id = run_id
        self.title = title
        self.child = child
        self.output = OutputTail(limit)
        self._done = anyio.Event()
        self.released = anyio.Event()
        self.gone = anyio.Event()
        #: Its end is in the journal.
        self.was_told = False

    @property
    def exit(self) -> Exit | None:
        """How it ended, once all its output has been read."""
        return self.child.exit if self._done.is_set() else None

    async def follow(self) -> Exit:
        """Keep its output until it has ended; returns how."""
        self.child.close_stdin()
        while data := await self.child.read_stdout():
            self.output.feed(data)
        exit_ = await self.child.wait()
        self._done.set()
        return exit_

    async def wait(self) -> Exit:
        """How it ended; any number may wait, before and after."""
        await self._done.wait()
        return await self.child.wait()

    async def kill(self) -> None:
        """End it; what it has said stays to be read, and how it ended can be told on return."""
        if self.child.exit is None:
            self.child.signal_group(signal.SIGTERM)
            with anyio.move_on_after(KILL_GRACE) as grace:
                await self.child.wait()
            if grace.cancelled_caught:
                self.child.signal_group(signal.SIGKILL)
        await self._done.wait()

    async def close(self) -> list[Process]:
        """End it with all it has started; returns what has survived."""
        try:
            return await self.child.stop(eof_grace=0, term_grace=KILL_GRACE)
        finally:
            self._done.set()
            self.gone.set()

    def status(self) -> ExitStatus | None:
        """How it ended, in the words of the protocol."""
        return None if self.exit is None else exit_status(self.exit)


async def start(argv: Sequence[str], *, cwd: str, env: dict[str, str], launch_id: str) -> Child:
    """Start a command. Raises AgentUnavailableError, which says what is missing."""
    spec = ChildSpec(
        argv=argv, cwd=cwd, env=env, launch_id=launch_id, drain_grace=DRAIN_GRACE, merged=True
    )
    await look_up(spec)
    return spawn(spec)


def argv_of(command: str, args: Sequence[str], *, cwd: str, env: dict[str, str]) -> list[str]:
    """How a command is run: as a program with its arguments.

    Agents also send a whole line without arguments; a shell gets it if no program is called that.
    """
    if args or not _SHELL_SIGNS & set(command):
        return [command, *args]
    try:
        find_program(command, cwd, env)
    except AgentUnavailableError:
        return [_SHELL, "-c", command]
    return [command]


def exit_status(exit_: Exit) -> ExitStatus:
    """A code, or the name of a signal."""
    if exit_.signal is None:
        return ExitStatus(exit_code=exit_.code)
    try:
        return ExitStatus(signal=signal.Signals(exit_.signal).name)
    except ValueError:
        return ExitStatus(signal=f"signal {exit_.signal}")
