"""A daemon in a temporary folder: started, killed, started again, and gone at the end."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from acphost.errors import DaemonUnreachableError, StartError
from acphost.ids import mint
from acphost.transport import dial
from acphost.transport.child import Child, ChildSpec, spawn

_START_TIMEOUT = 60.0
_LOOK_AGAIN = 0.02
_STOP_GRACE = 5.0
_STDERR_KEPT = 16_384

#: The agent keeps its own sessions there, so that a new process of it can load them.
_CONFIG = """\
[agents.demo]
env = {{ ACPHOST_FAKE_STORE = "{folder}/agent" }}
"""


class Throwaway:
    """A daemon that nobody else knows, with nothing in it but the bundled agent."""

    def __init__(self, folder: Path, tasks: TaskGroup) -> None:
        self.folder = folder
        self.socket = folder / "s"
        self.work = folder / "work"
        self._tasks = tasks
        self._child: Child | None = None
        self._stderr = bytearray()
        self.work.mkdir()
        (folder / "agent").mkdir()
        (folder / "config.toml").write_text(_CONFIG.format(folder=folder))

    @property
    def pid(self) -> int:
        """The process, dead or alive."""
        assert self._child is not None, "started first"
        return self._child.pid

    async def start(self) -> None:
        """Start it and wait until it takes connections. Raises StartError with its last words."""
        argv = [
            *(sys.executable, "-m", "acphost", "serve"),
            *("--socket", str(self.socket)),
            *("--state-dir", str(self.folder / "state")),
            *("--config", str(self.folder / "config.toml")),
        ]
        launch = ChildSpec(
            argv=argv, cwd=str(self.folder), env=dict(os.environ), launch_id=mint("demo")
        )
        self._stderr.clear()
        self._child = child = spawn(launch)
        self._tasks.start_soon(self._listen, child)
        with anyio.move_on_after(_START_TIMEOUT):
            while child.exit is None:
                if await self._answers():
                    return
                await anyio.sleep(_LOOK_AGAIN)
        said = self._stderr.decode(errors="replace").strip() or "nothing"
        raise StartError(f"the demo's daemon did not start; it said: {said}")

    async def kill(self) -> None:
        """`kill -9`, and nothing else."""
        assert self._child is not None, "started first"
        os.kill(self._child.pid, signal.SIGKILL)
        await self._child.wait()

    async def exit_code(self) -> int | None:
        """Wait for its end."""
        assert self._child is not None, "started first"
        return (await self._child.wait()).code

    async def end(self) -> None:
        """Make sure that nothing of it is left."""
        if self._child is not None and self._child.exit is None:
            # Two signals: the first asks it to let turns end, and nobody waits for them here.
            self._child.signal_group(signal.SIGTERM)
            self._child.signal_group(signal.SIGTERM)
            await self._child.stop(eof_grace=_STOP_GRACE, term_grace=_STOP_GRACE)

    async def _answers(self) -> bool:
        try:
            (await dial.connect(self.socket)).close()
        except DaemonUnreachableError:
            return False
        return True

    async def _listen(self, child: Child) -> None:
        """Drain what it says; the end of it is kept in case it does not start."""
        while said := await child.read_stderr():
            self._stderr += said
            del self._stderr[:-_STDERR_KEPT]


@asynccontextmanager
async def throwaway() -> AsyncGenerator[Throwaway]:
    """A folder and a daemon that are gone after the block, however it ends."""
    # Under /tmp by its short name: a socket's path has little room.
    folder = Path(tempfile.mkdtemp(prefix=f"acphost-show-{os.getpid()}-", dir="/tmp"))
    try:
        async with anyio.create_task_group() as tasks:
            daemon = Throwaway(folder, tasks)
            try:
                yield daemon
            finally:
                with anyio.CancelScope(shield=True):
                    await daemon.end()
            tasks.cancel_scope.cancel()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
