"""The extension for VS Code: type-checked, and all but its front against a real daemon."""

import os
import subprocess
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.interop.peers import peer
from tests.interop.test_nvim import SCRIPT
from tests.support.daemon import Daemon, eventually, running_daemon

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as JavaScript; every type in it has been checked."""
    modules = peer("vscode", "node_modules")
    out = tmp_path_factory.mktemp("vscode") / "out"
    command = [str(modules / ".bin" / "tsc"), "-p", str(EXTENSION), "--outDir", str(out)]
    run = subprocess.run(
        [*command, "--typeRoots", str(modules / "@types")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return out


async def node_tests(daemon: Daemon, compiled: Path, name: str) -> None:
    """Run a file of the extension's own tests with plain node."""
    environ = {
        **daemon.environ,
        "ACPHOST_SOCKET": str(daemon.socket),
        "ACPHOST_FOLDER": str(daemon.folder),
        "ACPHOST_OUT": str(compiled),
    }
    run = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            ["node", "--test", str(EXTENSION / "test" / name)],
            env=environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert os.linesep + "# fail 0" in run.stdout


async def test_streaming_questions_and_the_queue(compiled: Path) -> None:
    async with running_daemon(SCRIPT) as daemon:
        await node_tests(daemon, compiled, "chat.test.mjs")


async def test_the_daemon_dies_and_comes_back(compiled: Path) -> None:
    async with running_daemon(SCRIPT) as daemon, anyio.create_task_group() as tasks:
        tasks.start_soon(node_tests, daemon, compiled, "restart.test.mjs")
        await eventually(daemon.path("restarting").exists)
        await daemon.kill()
        await daemon.start()
