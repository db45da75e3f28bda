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
from tests.support.patience import PATIENCE

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
            timeout=PATIENCE,
            check=False,
        )
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


async def test_the_ten_lines_of_python_follow_a_conversation() -> None:
    """Standard library only: greet, subscribe, send, and print what comes."""
    program = block("python", "events/subscribe")
    async with running_daemon(others={"demo": 'ON prompt\n    MSG "hello back"\n'}) as daemon:
        shown = ""
        async with await anyio.open_process(
            [sys.executable, "-u", "-I", "-c", program],
            env={**daemon.environ, "ACPHOST_SOCKET": str(daemon.socket)},
            cwd=daemon.work,
        ) as following:
            assert following.stdout is not None
            with anyio.fail_after(PATIENCE):
                while "run.completed" not in shown:
                    shown += (await following.stdout.receive()).decode()
            following.terminate()
    assert shown.count("hello back") == 1
    answers = [line for line in shown.splitlines() if '"id":' in line]
    assert len(answers) == 3
    assert not [line for line in answers if '"error":{' in line]


async def test_nc_gets_its_answers_after_its_input_has_ended() -> None:
    """A half-closed client is still a client."""
    if shutil.which("nc") is None:
        pytest.skip("nc is not installed")
    async with running_daemon() as daemon:
        shown = await shown_by(daemon, "sh", "-c", block("sh", "nc -U"))
    assert '"hostInfo"' in shown
    assert '"nextCursor":null' in shown


async def test_the_socket_is_found_by_its_status() -> None:
    """What the two examples take from the environment is exported by one command."""
    command = block("sh", "export ACPHOST_SOCKET")
    async with running_daemon() as daemon:
        acphost = f'acphost() {{ {sys.executable} -m acphost "$@"; }}\n'
        shown = await shown_by(daemon, "bash", "-c", f'{acphost}{command}echo "$ACPHOST_SOCKET"')
    assert shown.strip() == str(daemon.socket)


async def test_the_bot_answers_agents_and_tells_how_runs_end() -> None:
    """Twenty lines on the client, over a restart of the daemon."""
    program = block("python", "from acphost.client import connect")
    script = 'ON prompt\n    PERM c1 yes:allow_once:Yes no:reject_once:No\n    MSG "${OUTCOME}"\n'
    async with running_daemon(script) as daemon:
        shown = ""
        async with await anyio.open_process(
            [sys.executable, "-u", "-c", program],
            env={**daemon.environ, "ACPHOST_SOCKET": str(daemon.socket)},
            cwd=daemon.work,
        ) as bot:
            assert bot.stdout is not None
            await until_connected(daemon, 2)
            session = await daemon.session()
            rule = {"name": "yes", "agents": ["fake"], "answer": "allow_once"}
            ruled = await daemon.session(policy=[rule])
            assert (await daemon.ask(ruled, "a rule is faster")).status == "completed"
            assert (await daemon.ask(session, "first")).status == "completed"
            await daemon.restart()
            assert (await daemon.ask(session, "second")).status == "completed"
            with anyio.fail_after(PATIENCE):
                while shown.count("run.completed") < 3:
                    shown += (await bot.stdout.receive()).decode()
            bot.terminate()
    assert shown.count("permission.requested") == 3


async def until_connected(daemon: Daemon, count: int) -> None:
    """Wait until so many clients are connected."""
    with anyio.fail_after(PATIENCE):
        while (await daemon.client.stats())["connections"] != count:  # noqa: ASYNC110  of another process
            await anyio.sleep(0.01)
