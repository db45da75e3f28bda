"""A daemon on another machine, which is this one, through a real sshd."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, eventually, is_alive, running_daemon
from tests.support.editor import editor
from tests.support.sshd import Sshd, remote_environ, sshd, why_not

pytestmark = pytest.mark.timeout(120)

STEPS = """
ON prompt
    MSG "one "
    MARK ${DIR}/one
    GATE ${DIR}/two
    MSG "two "
    MARK ${DIR}/three
    GATE ${DIR}/four
    MSG "three"
"""


class Afar:
    """Commands of this machine, a daemon of the other."""

    def __init__(self, daemon: Daemon, server: Sshd, folder: Path) -> None:
        self.daemon = daemon
        self.server = server
        #: Where local ends of tunnels are.
        self.runtime = folder / "here"
        self.runtime.mkdir(mode=0o700)
        self.environ = {
            **daemon.environ,
            "ACPHOST_SSH": server.command,
            "XDG_RUNTIME_DIR": str(self.runtime),
        }

    def command(self, *words: str, host: str | None = None) -> list[str]:
        return [sys.executable, "-m", "acphost", "--host", host or self.server.host, *words]

    def run(self, *words: str, host: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, host=host), env=self.environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(*words), env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tunnels(self) -> list[int]:
        """The ssh processes that forward."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"-L" in words and str(self.server.config).encode() in words:
                found.append(int(folder.name))
        return [pid for pid in found if is_alive(pid)]

    def check(self) -> None:
        """Nothing is left on this machine."""
        assert self.tunnels() == []
        assert list(self.runtime.iterdir()) == []


@asynccontextmanager
async def afar(folder: Path, script: str = "", **environ: str) -> AsyncIterator[Afar]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    there = folder / "there"
    there.mkdir(mode=0o700)
    async with running_daemon(script) as daemon:
        seen = {**remote_environ(there), "ACPHOST_SOCKET": str(daemon.socket), **environ}
        with sshd(folder, seen) as server:
            yield Afar(daemon, server, folder)


async def test_a_session_on_another_machine(short_dir: Path) -> None:
    """Its socket is found by asking there; folders begin at the home there; nothing is left."""
    async with afar(short_dir) as far:
        far.daemon.work.joinpath("deep").mkdir()
        sent = far.run("send", "--agent", "fake", "--cwd", str(far.daemon.work / "deep"), "hello")
        assert sent.returncode == 0, sent.stderr + far.server.log()
        (session,) = json.loads(far.run("ls", "--json").stdout)["items"]
        assert session["cwd"] == str(far.daemon.work / "deep")
        status = json.loads(far.run("status", "--json").stdout)
        assert far.run("session", "rename", session["sessionId"], "Far").stdout.endswith(": Far\n")
        assert far.run("usage").stdout.startswith("ID ")
        assert far.run("grants").returncode == 0
        assert status["socket"] == f"{far.server.host}:{far.daemon.socket}"
        far.check()


async def test_an_editor_has_its_conversation_on_another_machine(short_dir: Path) -> None:
    """Its front door carries ssh, goes on when that is killed, and leaves nothing behind."""
    async with afar(short_dir, STEPS) as far:
        command = far.command("acp", "--agent", "fake")
        async with editor(far.daemon, command=command, environ=far.environ) as zed:
            session = await zed.new()
            request = await zed.begin(session, "hello")
            await zed.shows(session, "one ")
            (tunnel,) = far.tunnels()
            os.kill(tunnel, signal.SIGKILL)
            far.daemon.open("two")
            far.daemon.open("four")
            assert (await zed.answer(request))["result"]["stopReason"] == "end_turn"
            assert zed.said(session) == "one two three"
            assert await zed.close() == 0
        far.check()


async def test_an_editor_is_told_that_the_other_machine_cannot_be_reached(short_dir: Path) -> None:
    """Every request is answered with what ssh says, and never by a daemon of this machine."""
    async with afar(short_dir) as far:
        command = far.command("acp", host="nowhere.invalid")
        environ = {**far.environ, "ACPHOST_SOCKET": str(far.daemon.socket)}
        async with editor(far.daemon, command=command, environ=environ) as zed:
            for _ in range(2):
                error = await zed.error("session/new", cwd=zed.work, mcpServers=[])
                assert "ssh to nowhere.invalid failed" in error["message"]
            assert await zed.close() == 0


async def test_the_answer_survives_the_ssh_that_carries_it(short_dir: Path) -> None:
    """ssh is killed in mid-answer, then the daemon: each piece is shown once, none is missing."""
    async with afar(short_dir, STEPS) as far:
        work = str(far.daemon.work)
        following = far.begin("send", "--agent", "fake", "--cwd", work, "hello")
        await far.daemon.marked("one")
        (tunnel,) = far.tunnels()
        os.kill(tunnel, signal.SIGKILL)
        far.daemon.open("two")
        await far.daemon.marked("three")
        await eventually(lambda: bool(far.tunnels()))
        os.kill(far.tunnels()[0], signal.SIGKILL)
        await eventually(lambda: bool(far.tunnels()))
        far.daemon.open("four")
        out, err = following.communicate(timeout=60)
        assert following.returncode == 0, err
        assert out.split() == ["one", "two", "three"]
        far.check()


async def test_ssh_does_not_outlive_a_command_that_is_killed(short_dir: Path) -> None:
    """kill -9 of the command: where the system can, its ssh goes with it."""
    async with afar(short_dir, STEPS) as far:
        following = far.begin("send", "--agent", "fake", "--cwd", str(far.daemon.work), "hello")
        await far.daemon.marked("one")
        assert len(far.tunnels()) == 1
        following.kill()
        following.communicate()
        await eventually(lambda: not far.tunnels())
        far.daemon.open("two")
        far.daemon.open("four")


async def test_what_ssh_says_is_told(short_dir: Path) -> None:
    """No such host, and no daemon behind the socket: the exit code says unreachable."""
    async with afar(short_dir) as far:
        nowhere = far.run("ls", host="nowhere.invalid")
        assert nowhere.returncode == 69
        assert "nowhere.invalid" in nowhere.stderr
        silent = far.run("ls", "--socket", str(short_dir / "no-socket"))
        assert silent.returncode == 69
        assert str(short_dir / "no-socket") in silent.stderr
        far.check()


async def test_a_machine_without_acphost_in_its_path(short_dir: Path) -> None:
    """Then the socket is where the rules put it, or where --socket says."""
    async with afar(short_dir, PATH="/usr/bin:/bin") as far:
        assert far.run("ls").returncode == 0
        assert far.run("ls", "--socket", str(far.daemon.socket)).returncode == 0
