"""acpx, a client of somebody else, talks to the daemon through the front door."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from subprocess import CompletedProcess

import anyio
import pytest

from tests.interop.peers import peer
from tests.support.daemon import Daemon, eventually, is_alive, running_daemon

pytestmark = pytest.mark.timeout(120)

SCRIPT = """
ON prompt ~"^hello"
    MSG "hello back"
ON prompt "ask"
    PERM c1 yes:allow_once:Yes no:reject_once:No kind=edit
    MSG "chosen ${OUTCOME}"
ON prompt "wait"
    MSG "working"
    GATE ${DIR}/gate
    MSG " done"
ON prompt "before"
    MSG "before that: ${N}"
"""


class Acpx:
    """The program in a home of its own."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        home = daemon.folder / "home"
        home.mkdir()
        self._node = str(peer("acpx", "node_modules/.bin/node"))
        self._program = str(peer("acpx", "node_modules/acpx/dist/cli.js"))
        self._environ = {
            **daemon.environ,
            "HOME": str(home),
            "PATH": f"{peer('acpx', 'node_modules/.bin')}:{os.environ['PATH']}",
            "ACPHOST_SOCKET": str(daemon.socket),
        }

    async def run(self, *words: str, code: int = 0) -> str:
        """What it prints."""
        agent = f"{sys.executable} -m acphost acp --agent fake --no-autostart"
        done: CompletedProcess[bytes] = await anyio.run_process(
            [self._node, self._program, "--agent", agent, "--cwd", str(self._daemon.work),
             "--ttl", "20", *words],
            env=self._environ, cwd=self._daemon.work, check=False,
        )  # fmt: skip
        assert done.returncode == code, (done.stdout.decode(), done.stderr.decode())
        return done.stdout.decode()

    async def owner(self, name: str) -> int:
        """The process that it keeps for a session."""
        status = await self.run("status", "-s", name)
        (line,) = [each for each in status.splitlines() if each.startswith("pid:")]
        return int(line.split()[1])

    async def close(self, name: str) -> None:
        """End what it keeps running."""
        await self.run("sessions", "close", name)


@asynccontextmanager
async def acpx() -> AsyncGenerator[tuple[Daemon, Acpx]]:
    peer("acpx", "node_modules/.bin/node")
    async with running_daemon(SCRIPT) as daemon:
        yield daemon, Acpx(daemon)


async def test_it_runs_a_prompt_and_has_its_permission_answered() -> None:
    """`exec`, and with a policy that says yes."""
    async with acpx() as (_, client):
        assert "hello back" in await client.run("exec", "hello")
        assert "chosen yes" in await client.run("--approve-all", "exec", "ask")
        assert "chosen no" in await client.run("--deny-all", "exec", "ask", code=5)


async def test_a_named_session_lasts_over_the_end_of_its_process() -> None:
    """Its own process is killed; the next one opens the session again."""
    async with acpx() as (daemon, client):
        await client.run("sessions", "new", "--name", "desk")
        assert "hello back" in await client.run("prompt", "-s", "desk", "hello")
        pid = await client.owner("desk")
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: not is_alive(pid))
        assert "before that: 2" in await client.run("prompt", "-s", "desk", "before")
        assert len(daemon.launches()) == 1
        await client.close("desk")


async def test_a_second_prompt_waits_and_a_stop_stops() -> None:
    """Two at once in one session, then one that is cancelled."""
    async with acpx() as (daemon, client):
        session = (await client.run("sessions", "new", "--name", "desk")).strip()
        shown: dict[str, str] = {}

        async def prompt(text: str) -> None:
            shown[text] = await client.run("prompt", "-s", "desk", text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt, "wait")
            await daemon.is_status(session, "running")
            tasks.start_soon(prompt, "hello")
            daemon.open("gate")
        assert "working done" in shown["wait"]
        assert "hello back" in shown["hello"]
        assert daemon.prompts() == ["wait", "hello"]

        daemon.path("gate").unlink()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt, "wait")
            await daemon.is_status(session, "running")
            await client.run("cancel", "-s", "desk")
        seen = await daemon.get(session)
        assert seen.last_run_status == "cancelled"
        await client.close("desk")
