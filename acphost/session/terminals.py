"""Commands that a session's agent runs through the host: started, told of, and ended with it.

Each is a job in the journal: how it was started, and how it ended with the end of its output, so
that it can be shown when the terminal is long gone. The ledger knows its processes like an agent's.
"""

import os
import shlex
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from acphost.errors import (
    AcpHostError,
    InvalidParamsError,
    OverloadedError,
    TerminalNotFoundError,
    TooLargeError,
)
from acphost.ids import Clock, mint
from acphost.journal.rows import ProcessRow, SessionRow
from acphost.journal.statements import save_process
from acphost.journal.writer import Writer
from acphost.provider.secrets import Secrets, of_environment
from acphost.provider.switchboard import AgentRequest
from acphost.session.deeds import Deeds
from acphost.session.files import params_of
from acphost.session.gate import Deed, Gate
from acphost.settings.model import TerminalSettings
from acphost.transport.processes import boot_id
from acphost.wire.acp_files import CreateTerminal, ExitStatus, TerminalOutput, TerminalParams
from acphost.wire.event import Kind, Origin
from acphost.wire.jobs import Job
from acphost.workspace.roots import Roots
from acphost.workspace.terminal import Terminal, argv_of, exit_status, start

#: Of the output, the end that the journal keeps.
SHOWN = 16_384
#: Of one word of a command line; Linux takes no longer one, and it would be kept with the job.
MAX_WORD = 131_071
#: Of a command line, what stands in titles.
TITLE = 200


class TerminalDesk:
    """Answers `terminal/…`."""

    def __init__(
        self,
        row: SessionRow,
        writer: Writer,
        tasks: TaskGroup,
        gate: Gate,
        deeds: Deeds,
        *,
        settings: Callable[[], TerminalSettings],
        roots: Callable[[], Awaitable[Roots]],
        environment: Callable[[], dict[str, str]],
        on_started: Callable[[], None],
        now: Clock,
    ) -> None:
        self._row = row
        self._writer = writer
        self._tasks = tasks
        self._gate = gate
        self._deeds = deeds
        self._settings = settings
        self._roots = roots
        self._environment = environment
        self._on_started = on_started
        self._now = now
        self._open: dict[str, Terminal] = {}
        #: What is not to be told of its output, by terminal.
        self._secrets: dict[str, Secrets] = {}
        self._starting = 0
        #: What is not over yet, released or not: launch by job.
        self.launches: dict[str, str] = {}
        self._ended = anyio.Event()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def running(self) -> list[tuple[str, str]]:
        """The ids and titles of commands that have not ended."""
        return [(each.id, each.title) for each in self._open.values() if each.exit is None]

    def jobs(self) -> list[Job]:
        """All that were not released, for people to see."""
        return [
            Job(
                job_id=each.id, title=each.title, status=_status(each),
                session_id=self._row.session_id, host_run_id=each.run_id,
            )
            for each in self._open.values()
        ]  # fmt: skip

    async def stop(self, job_id: str, origin: Origin) -> bool:
        """A person ends a command; False if there is none of that id."""
        terminal = self._open.get(job_id)
        if terminal is None:
            return False
        if terminal.exit is None:
            self._tell_updated(terminal, "stopped", by=origin)
        await terminal.kill()
        await terminal.wait()
        return True

    # -- the methods ------------------------------------------------------------------------------

    async def create(self, asked: AgentRequest) -> dict[str, str]:
        """Start a command; the answer does not wait for it."""
        params = params_of(CreateTerminal, asked)
        settings = self._settings()
        if len(self._open) + self._starting >= settings.limit:
            raise OverloadedError(
                f"the session has {settings.limit} terminals; release one first",
                retryAfterMs=1000,
            )
        self._starting += 1
        try:
            return {"terminalId": await self._create(params, settings, asked)}
        finally:
            self._starting -= 1

    async def output(self, asked: AgentRequest) -> TerminalOutput:
        """What it has said so far, and how it ended if it has."""
        terminal = self._find(asked)
        text = terminal.output.text(whole=terminal.exit is not None)
        return TerminalOutput(
            output=text, truncated=terminal.output.truncated, exit_status=terminal.status()
        )

    async def wait_for_exit(self, asked: AgentRequest) -> ExitStatus:
        """How it ended, once it has."""
        return exit_status(await self._find(asked).wait())

    async def kill(self, asked: AgentRequest) -> dict[str, object]:
        """End the command; the terminal stays."""
        terminal = self._find(asked)
        if terminal.exit is None:
            self._tell_updated(terminal, "killed")
        await terminal.kill()
        return {}

    async def release(self, asked: AgentRequest) -> dict[str, object]:
        """End the command and forget the terminal."""
        terminal = self._open.pop(self._find(asked).id)
        if terminal.exit is None:
            self._tell_updated(terminal, "released")
        terminal.released.set()
        await terminal.gone.wait()
        return {}

    def _find(self, asked: AgentRequest) -> Terminal:
        terminal_id = params_of(TerminalParams, asked).terminal_id
        terminal = self._open.get(terminal_id)
        if terminal is None:
            raise TerminalNotFoundError(
                f"no terminal {terminal_id!r}, or it was released", terminalId=terminal_id
            )
        return terminal

    # -- a command --------------------------------------------------------------------------------

    async def _create(
        self, params: CreateTerminal, settings: TerminalSettings, asked: AgentRequest
    ) -> str:
        args = params.args or []
        if max(map(len, (params.command, *args))) > MAX_WORD:
            raise TooLargeError(f"no system starts a command with a word of over {MAX_WORD} bytes")
        line = shlex.join([params.command, *args]) if args else params.command
        cwd = await self._folder(params.cwd)
        names = [each.name for each in params.env or ()]
        deed = Deed(
            kind="execute", title=f"Run {_short(line)}", names=(line,),
            raw_input={"command": line, "cwd": cwd, "env": names}, scope=line,
        )  # fmt: skip
        await self._gate.pass_(deed, settings.run, asked)
        env = self._environment() | {each.name: each.value for each in params.env or ()}
        argv = await anyio.to_thread.run_sync(
            partial(argv_of, params.command, args, cwd=cwd, env=env), abandon_on_cancel=True
        )
        limit = min(settings.output_bytes, params.output_byte_limit or settings.output_bytes)
        if params.output_byte_limit == 0:
            limit = 0
        with anyio.CancelScope(shield=True):
            return await self._launch(argv, line, cwd, env, names, limit)
        raise AssertionError("unreachable: what is shielded returns or raises")

    async def _launch(
        self, argv: list[str], line: str, cwd: str, env: dict[str, str], names: list[str],
        limit: int,
    ) -> str:  # fmt: skip
        """Written down before it is started: a crash in between finds the process by its mark."""
        terminal_id, launch_id = mint("term"), mint("launch")
        row = ProcessRow(
            launch_id=launch_id, agent_id=self._row.agent_id, session_id=self._row.session_id,
            boot_id=boot_id(), host_pid=os.getpid(), command=msgspec.json.encode(argv),
            started_at=self._now(),
        )  # fmt: skip
        await self._writer.durable(self._writer.record([save_process(row)]))
        try:
            child = await start(argv, cwd=cwd, env=env, launch_id=launch_id)
        except AcpHostError as exc:
            row.ended_at = self._now()
            self._writer.record([save_process(row)])
            told = {"method": "terminal/create", "command": line, "error": str(exc)}
            self._deeds.note(Kind.EVIDENCE, told, evidence="terminal")
            raise
        row.pid, row.birth, row.pgid = child.pid, child.birth, child.pgid
        self._writer.record([save_process(row)])
        terminal = self._open[terminal_id] = Terminal(
            terminal_id, _short(line), child, limit=limit, run_id=self._deeds.run_id
        )
        self.launches[terminal_id] = launch_id
        self._secrets[terminal_id] = Secrets(of_environment(env))
        self._on_started()
        self._deeds.note(
            Kind.JOB_STARTED,
            {
                "jobId": terminal_id, "title": _short(line), "status": "running", "command": line,
                "cwd": cwd, "env": names, "by": "terminal", "pid": child.pid,
            },
        )  # fmt: skip
        self._tasks.start_soon(self._see_through, terminal, row)
        return terminal_id

    async def _see_through(self, terminal: Terminal, row: ProcessRow) -> None:
        """From its first word to the end of all it has started."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, terminal)
                await terminal.released.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                survivors = await terminal.close()
            if terminal.child.exit is not None:
                row.exit_code, row.exit_signal = terminal.child.exit
            if not survivors:
                row.ended_at = self._now()
            self._writer.record([save_process(row)])
            self._tell_ended(terminal)
            del self.launches[terminal.id], self._secrets[terminal.id]
            self._ended.set()

    async def _follow(self, terminal: Terminal) -> None:
        await terminal.follow()
        # What it has left behind may go on until it is released.
        self._tell_ended(terminal)

    async def over(self) -> None:
        """Return when nothing is left of any command, and that is written down."""
        while self.launches:
            self._ended = anyio.Event()
            await self._ended.wait()

    def end_all(self) -> None:
        """Nobody uses them any more."""
        for terminal in self._open.values():
            terminal.released.set()
        self._open.clear()

    async def _folder(self, cwd: str | None) -> str:
        """Where it runs: inside of the session's folders."""
        roots = await self._roots()
        place = await anyio.to_thread.run_sync(roots.locate, cwd or self._row.cwd)
        if not await anyio.Path(place.path).is_dir():
            raise InvalidParamsError(f"no such directory: {place.path!r} - at `$.cwd`")
        return place.path

    # -- what is told -----------------------------------------------------------------------------

    def _tell_updated(self, terminal: Terminal, what: str, *, by: Origin | None = None) -> None:
        told = {"jobId": terminal.id, "status": "running", "what": what, "by": by}
        self._deeds.note(Kind.JOB_UPDATED, told)

    def _tell_ended(self, terminal: Terminal) -> None:
        if terminal.was_told:
            return
        terminal.was_told = True
        how = terminal.child.exit
        status = ExitStatus() if how is None else exit_status(how)
        self._deeds.note(
            Kind.JOB_ENDED,
            {
                "jobId": terminal.id,
                "title": terminal.title,
                "status": "completed" if status.exit_code == 0 else "failed",
                "exitCode": status.exit_code,
                "signal": status.signal,
                "bytes": terminal.output.total,
                "truncated": terminal.output.truncated or terminal.output.total > SHOWN,
                "output": self._secrets[terminal.id].masked(
                    terminal.output.text(whole=True, limit=SHOWN)
                ),
            },
        )


def _status(terminal: Terminal) -> Literal["running", "completed", "failed"]:
    if terminal.exit is None:
        return "running"
    return "completed" if terminal.exit.code == 0 else "failed"


def _short(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= TITLE else text[: TITLE - 1] + "…"
