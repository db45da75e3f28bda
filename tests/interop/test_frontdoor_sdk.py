"""Editors built on the official SDKs, served by the front door."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.interop.peers import peer
from tests.support.daemon import running_daemon

PROGRAMS = Path(__file__).parent / "programs"
SCRIPT = """
ON prompt "hello"
    MSG "hello back. "
ON prompt "ask"
    PERM c1 yes:allow_once:Yes no:reject_once:No
    MSG "chosen ${OUTCOME}. "
ON prompt "wait"
    MSG "working"
    STAY
"""

EDITORS: dict[str, Callable[[], list[str]]] = {
    "python-0.9": lambda: _python("sdk-python-0.9"),
    "python": lambda: _python("sdk-python"),
    "typescript": lambda: [
        "node", str(PROGRAMS / "typescript_client.mjs"), str(peer("sdk-typescript"))
    ],
}  # fmt: skip


def _python(name: str) -> list[str]:
    return [str(peer(name, "bin/python")), str(PROGRAMS / "python_client.py")]


@pytest.mark.timeout(90)
@pytest.mark.parametrize("command", EDITORS.values(), ids=EDITORS.keys())
async def test_an_editor_on_an_official_sdk_is_served_whole(
    command: Callable[[], list[str]],
) -> None:
    """It talks, is asked, stops a turn and what waits behind it, and loads the past afterwards."""
    argv = command()
    async with running_daemon(SCRIPT) as daemon:
        door = [sys.executable, "-m", "acphost", "acp", "--agent", "fake", "--no-autostart"]
        done = await anyio.run_process(
            [*argv, str(daemon.work), *door],
            env={**daemon.environ, "ACPHOST_SOCKET": str(daemon.socket)},
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        told = json.loads(done.stdout)
    assert told == {
        "loads": True,
        "stops": ["end_turn", "end_turn", "cancelled", "cancelled"],
        "text": "hello back. chosen yes. working",
        "users": "helloaskwait",
        "past": "hello back. chosen yes. working",
    }
