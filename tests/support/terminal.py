"""A person at a terminal, and a program in a pipe: both run `acphost` as a process of its own."""

import os
import pty
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE, CompletedProcess

import anyio
from anyio.abc import Process

PROGRAM = (sys.executable, "-m", "acphost")


def environment(socket: Path | None, **more: str) -> dict[str, str]:
    """What the program gets: nothing of ours that could lead it to another daemon."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ACPHOST_")}
    if socket is not None:
        env["ACPHOST_SOCKET"] = str(socket)
    return env | {"TERM": "xterm", "NO_COLOR": "1"} | more


class Finished:
    """What a program printed, and how it ended."""

    def __init__(self, done: CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()
        assert "Traceback" not in self.err, self.err


async def acphost(
    socket: Path | None, *words: str, stdin: str = "", cwd: Path | None = None
) -> Finished:
    """Run one command to its end, in pipes."""
    return Finished(
        await anyio.run_process(
            [*PROGRAM, *words],
            input=stdin.encode(),
            check=False,
            cwd=cwd,
            env=environment(socket),
        )
    )


class Piped:
    """A command that runs on in pipes, read line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._read = {"out": bytearray(), "err": bytearray()}

    async def until(self, text: str, stream: str = "out") -> str:
        """Read a stream until it has said `text`; returns all it has said so far."""
        source = self.process.stdout if stream == "out" else self.process.stderr
        assert source is not None
        said = self._read[stream]
        while text.encode() not in said:
            said += await source.receive()
        return said.decode()

    def interrupt(self) -> None:
        """Ctrl-C, as a script sends it."""
        self.process.send_signal(signal.SIGINT)

    async def rest(self) -> tuple[int, str, str]:
        """Wait for the end; exit code, and everything that was printed."""
        for name, source in (("out", self.process.stdout), ("err", self.process.stderr)):
            assert source is not None
            async for chunk in source:
                self._read[name] += chunk
        code = await self.process.wait()
        out, err = (self._read[name].decode() for name in ("out", "err"))
        assert "Traceback" not in err, err
        return code, out, err


@asynccontextmanager
async def piped(socket: Path | None, *words: str, **env: str) -> AsyncGenerator[Piped]:
    """Start a command in pipes; killed at the end if it still runs."""
    process = await anyio.open_process(
        [*PROGRAM, *words],
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment(socket, **env),
    )
    async with process:
        try:
            yield Piped(process)
        finally:
            if process.returncode is None:
                process.kill()


async def code_after_reader_left(
    socket: Path | None, *words: str, meanwhile: Callable[[], Awaitable[object]]
) -> int:
    """Start a command, read a little of it, hang up; `meanwhile` makes it say more."""
    ours, theirs = os.pipe()
    process = await anyio.open_process(
        [*PROGRAM, *words], stdout=theirs, stderr=PIPE, env=environment(socket)
    )
    os.close(theirs)
    async with process:
        await anyio.wait_readable(ours)
        os.close(ours)
        await meanwhile()
        assert process.stderr is not None
        said = b"".join([chunk async for chunk in process.stderr])
        assert said == b"", said
        return await process.wait()


class Typist:
    """A command on a pseudo-terminal, as a person sees it."""

    def __init__(self, process: Process, screen: int) -> None:
        self.pid = process.pid
        self._process = process
        self._screen = screen
        self.seen = ""

    async def until(self, text: str) -> str:
        """Look at the screen until `text` stands there; returns all that was seen."""
        while text not in self.seen:
            if not await self._look():
                raise AssertionError(f"{text!r} never came; the screen shows: {self.seen}")
        return self.seen

    async def type(self, text: str) -> None:
        """Type."""
        await anyio.wait_writable(self._screen)
        os.write(self._screen, text.encode())

    async def rest(self) -> int:
        """Watch to the end; the exit code."""
        while await self._look():
            pass
        code = await self._process.wait()
        assert "Traceback" not in self.seen, self.seen
        return code

    async def _look(self) -> bool:
        await anyio.wait_readable(self._screen)
        try:
            data = os.read(self._screen, 65_536)
        except OSError:  # how a terminal says that nobody writes to it any more
            return False
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@asynccontextmanager
async def typist(
    socket: Path | None, *words: str, env: Mapping[str, str] | None = None
) -> AsyncGenerator[Typist]:
    """Start a command on a terminal of its own; killed at the end if it still runs."""
    screen, theirs = pty.openpty()
    # Its own session, with this terminal in control: Ctrl-C is typed, not sent.
    process = await anyio.open_process(
        [sys.executable, "-c", _TAKE_TERMINAL, *PROGRAM, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=environment(socket, **(env or {})),
    )
    os.close(theirs)
    async with process:
        try:
            yield Typist(process, screen)
        finally:
            if process.returncode is None:
                process.kill()
            os.close(screen)


_TAKE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
