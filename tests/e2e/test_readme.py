"""The README's programs do what it says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.support.daemon import Daemon, running_daemon

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    """The one fenced block of the README in that language that contains a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    (found,) = [each for each in blocks if containing in each]
    return str(found)


async def shown_by(daemon: Daemon, *command: str) -> str:
    """What a program prints that finds the daemon as the README tells."""
    run = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            command,
            env={**daemon.environ, "ACPHOST_SOCKET": str(daemon.socket)},
            cwd=daemon.work,
            capture_output=True,
            text=True,
            timeout=25,
            check=False,
        )
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


async def test_the_ten_lines_of_python_hold_a_conversation() -> None:
    """Standard library only: subscribe, send, print until the end."""
    program = block("python", "events/subscribe")
    async with running_daemon(others={"demo": 'ON prompt\n    MSG "hello back"\n'}) as daemon:
        shown = await shown_by(daemon, sys.executable, "-I", "-c", program)
    lines = shown.splitlines()
    assert lines[0].strip() == "session.created"
    assert any("hello back" in line for line in lines)
    assert lines[-1].strip() == "run.completed"


async def test_nc_gets_its_answers_after_its_input_has_ended() -> None:
    """A half-closed client is still a client."""
    if shutil.which("nc") is None:
        pytest.skip("nc is not installed")
    async with running_daemon() as daemon:
        shown = await shown_by(daemon, "sh", "-c", block("sh", "nc -U"))
    assert '"hostInfo"' in shown
    assert '"nextCursor":null' in shown
