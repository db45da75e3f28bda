"""A local socket that leads to a daemon on another machine, for as long as it is needed.

OpenSSH carries it; when an ssh ends, the next one takes its place, and whoever uses the socket goes
on from its cursors.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from acphost.errors import AgentUnavailableError, DaemonUnreachableError
from acphost.ids import mint
from acphost.remote.ssh import There, answer, forwarding, program, question
from acphost.transport.child import Child, ChildSpec, spawn
from acphost.transport.command import run_command

#: Seconds before ssh is started again: it doubles while that does not help.
FIRST_DELAY, LAST_DELAY = 0.2, 30.0
#: A connection that held so long was a good one.
GOOD = 30.0
#: The time ssh has for the first time, name resolution and keys included.
PATIENCE = 30.0
_LOOK_AGAIN = 0.02
_KEPT = 4096


class Tunnel:
    """One ssh after the other, forwarding one socket."""

    def __init__(self, host: str, here: Path, argv: list[str], environ: Mapping[str, str]) -> None:
        self.host = host
        #: The socket on this machine.
        self.here = here
        self._argv = _tied_to_us(argv)
        self._environ = environ
        self._said = bytearray()

    @property
    def said(self) -> str:
        """What ssh last complained about, on one line."""
        return " ".join(self._said.decode(errors="replace").split())

    async def run(self, opened: anyio.Event) -> None:
        """Keep it open until cancelled; `opened` once it is for the first time.

        Raises DaemonUnreachableError if it cannot be opened the first time.
        """
        delay = FIRST_DELAY
        while True:
            since = anyio.current_time()
            await self._once(opened)
            if not opened.is_set():
                raise DaemonUnreachableError(f"ssh to {self.host} failed: {self.said}")
            if anyio.current_time() - since > GOOD:
                delay = FIRST_DELAY
            await anyio.sleep(delay)
            delay = min(2 * delay, LAST_DELAY)

    async def opened(self, opened: anyio.Event) -> None:
        """Wait until it is for the first time. Raises DaemonUnreachableError if it takes long."""
        with anyio.move_on_after(PATIENCE):
            await opened.wait()
            return
        raise DaemonUnreachableError(f"ssh to {self.host} does not open the way: {self.said}")

    async def _once(self, opened: anyio.Event) -> None:
        """One ssh, from its start to its end."""
        spec = ChildSpec(
            argv=self._argv, cwd=os.sep, env=self._environ, launch_id=mint("ssh"), drain_grace=0.2
        )
        self._said.clear()
        child = spawn(spec)
        child.close_stdin()
        try:
            async with anyio.create_task_group() as tasks:
                if not opened.is_set():
                    tasks.start_soon(self._await_socket, opened)
                # Up to the end of what it says, which comes after the end of the process.
                await self._listen(child)
                tasks.cancel_scope.cancel()
        finally:
            await child.stop(eof_grace=0, term_grace=1)

    async def _listen(self, child: Child) -> None:
        while said := await child.read_stderr():
            self._said += said
            del self._said[:-_KEPT]

    async def _await_socket(self, opened: anyio.Event) -> None:
        # ssh makes it once it has been let in; nothing tells of it.
        while not self.here.exists():  # noqa: ASYNC110
            await anyio.sleep(_LOOK_AGAIN)
        opened.set()


def _tied_to_us(argv: list[str]) -> list[str]:
    """Where the system can, ssh ends with this process however that ends."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--", *argv] if setpriv else argv


async def ask(host: str, environ: Mapping[str, str]) -> There:
    """Where the socket is on another machine. Raises DaemonUnreachableError."""
    try:
        done = await run_command(question(program(environ), host), environ, patience=PATIENCE)
    except AgentUnavailableError as exc:
        raise DaemonUnreachableError(f"no ssh to reach {host} with: {exc}") from exc
    except TimeoutError:
        raise DaemonUnreachableError(f"ssh to {host} does not answer") from None
    if done.code:
        raise DaemonUnreachableError(f"ssh to {host} failed: {done.said}")
    return answer(done.stdout)


@asynccontextmanager
async def tunnel(host: str, socket: str, environ: Mapping[str, str]) -> AsyncGenerator[Tunnel]:
    """A tunnel to a socket of another machine, open for the length of the block.

    Raises DaemonUnreachableError.
    """
    # Private from the first instant, and short enough for a socket's name.
    folder = Path(tempfile.mkdtemp(prefix="acphost-", dir=environ.get("XDG_RUNTIME_DIR") or None))
    here = folder / "s"
    failure: Exception | None = None
    try:
        made = Tunnel(host, here, forwarding(program(environ), host, here, socket), environ)
        async with anyio.create_task_group() as tasks:
            opened = anyio.Event()
            tasks.start_soon(made.run, opened)
            try:
                await made.opened(opened)
                yield made
            except Exception as exc:  # raised below: a task group would wrap it
                failure = exc
            tasks.cancel_scope.cancel()
    except* DaemonUnreachableError as group:
        failure = failure or group.exceptions[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if failure is not None:
        raise failure
