"""`acphost logs` finds the log, wherever it goes."""

import json
import os
import subprocess
import sys
from typing import BinaryIO

import anyio
import pytest

from tests.support.daemon import Daemon, eventually, running_daemon

pytestmark = pytest.mark.anew


def acphost(daemon: Daemon, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "acphost", *words, *daemon.flags],
        env={**daemon.environ, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def begun(
    command: list[str], environ: dict[str, str], output: BinaryIO
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, env=environ, stdout=output)


async def test_a_log_in_a_file() -> None:
    """Entries as a person reads them, or as they are; N of them, from a daemon's stderr here."""
    async with running_daemon("") as daemon:
        for _ in range(2):
            await daemon.restart()
        shown = acphost(daemon, "logs")
        assert shown.stdout.count(" info     ready socket=") == 3
        (line,) = acphost(daemon, "logs", "--json", "-n", "1").stdout.splitlines()
        assert json.loads(line)["event"] == "ready"


async def test_a_log_of_its_own() -> None:
    """`serve --log`: kept in the state folder by that name, it is found without a daemon too."""
    async with running_daemon("") as daemon:
        await daemon.stop()
        log = daemon.state / "daemon.log"
        daemon.flags += ["--log", str(log)]
        await daemon.start()
        assert log.exists()
        daemon.flags = daemon.flags[:-2]
        assert "ready" in acphost(daemon, "logs").stdout
        await daemon.stop()
        assert "stopping" in acphost(daemon, "logs").stdout


@pytest.mark.parametrize(("variable", "is_plain"), [("NO_COLOR", True), ("SOME_COLOR", False)])
async def test_a_log_on_a_terminal(variable: str, *, is_plain: bool) -> None:
    """A warning is yellow there, unless the person wants no colours."""
    async with running_daemon("") as daemon:
        await daemon.stop()
        ours, theirs = os.openpty()
        daemon.environ |= {variable: "1", "TERM": "xterm"}
        daemon.wrapper = ["sh", "-c", f'exec "$@" 2>{os.ttyname(theirs)}', "sh"]
        daemon.configure(nonsense=1)
        await daemon.start()
        seen = ""
        while "nonsense" not in seen:
            await anyio.wait_readable(ours)
            seen += os.read(ours, 65536).decode()
        os.close(ours)
        os.close(theirs)
        assert ("\x1b[" not in seen) is is_plain


async def test_trouble_with_agents() -> None:
    async with running_daemon('ON prompt\n    ERR "out of luck\\n"\n    EXIT 70\n') as daemon:
        assert "no trouble" in acphost(daemon, "logs", "--trouble").stdout
        await daemon.ask(await daemon.session(), "hi")
        assert "acp_stderr fake " in acphost(daemon, "logs", "--trouble").stdout
        told = json.loads(acphost(daemon, "logs", "--trouble", "--json").stdout)
        assert told["items"][0]["text"] == "out of luck"


async def test_following_it() -> None:
    """`-f` goes on until it is stopped."""
    async with running_daemon("") as daemon:
        command = [sys.executable, "-m", "acphost", "logs", "-f", *daemon.flags]
        with daemon.path("shown").open("wb") as shown:
            following = begun(command, daemon.environ, shown)
        try:
            await eventually(lambda: "ready" in daemon.path("shown").read_text())
            daemon.configure(nonsense=1)
            await eventually(lambda: "nonsense" in daemon.path("shown").read_text())
        finally:
            os.kill(following.pid, 2)
            assert following.wait() == 130
        daemon.configure()


async def test_a_log_that_nobody_keeps() -> None:
    """It is said where it went, and how it would be kept."""
    async with running_daemon("") as daemon:
        await daemon.stop()
        daemon.wrapper = ["sh", "-c", 'exec "$@" 2>/dev/null', "sh"]
        await daemon.start()
        shown = acphost(daemon, "logs")
        assert shown.returncode == 1
        assert "service install" in shown.stderr
        await daemon.stop()
        config = str(daemon.folder / "config")
        gone = acphost(daemon, "logs", XDG_CONFIG_HOME=config)
        assert "no log was kept" in gone.stderr


#: Its stderr is a pipe that is full, and that nobody reads.
STUCK = """
import fcntl, os, sys
out, into = os.pipe()
os.set_inheritable(out, True)
os.set_blocking(into, False)
try:
    while os.write(into, b"x" * 65536):
        pass
except BlockingIOError:
    pass
os.set_blocking(into, True)
os.dup2(into, 2)
os.execv(sys.argv[1], sys.argv[1:])
"""


async def test_a_log_that_nobody_takes_holds_up_nothing() -> None:
    """Ctrl-S in its terminal, a pager, a stuck collector: the daemon serves as ever."""

    def prepare(daemon: Daemon) -> None:
        daemon.wrapper = [sys.executable, "-c", STUCK]

    async with running_daemon(prepare=prepare) as daemon:
        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"
        await daemon.client.reload()
