"""Agents built on the official SDKs, hosted: what others take for the protocol, we do too."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.peers import peer
from tests.support.daemon import Daemon, payload, running_daemon

PROGRAMS = Path(__file__).parent / "programs"


def _python(name: str) -> list[str]:
    return [str(peer(name, "bin/python")), str(PROGRAMS / "python_agent.py")]


def _typescript() -> list[str]:
    return ["node", str(PROGRAMS / "typescript_agent.mjs"), str(peer("sdk-typescript"))]


AGENTS: dict[str, Callable[[], list[str]]] = {
    "python-0.9": lambda: _python("sdk-python-0.9"),
    "python": lambda: _python("sdk-python"),
    "typescript": _typescript,
}


@pytest.mark.parametrize("command", AGENTS.values(), ids=AGENTS.keys())
async def test_an_agent_on_an_official_sdk_is_hosted_whole(
    command: Callable[[], list[str]],
) -> None:
    """It answers, asks, is stopped, is killed, and goes on in a new process where it was."""
    argv = command()

    def prepare(daemon: Daemon) -> None:
        store = str(daemon.folder / "sdk.store")
        daemon.configure(agent={"command": [*argv, store], "init_timeout": 30, "cancel_grace": 5})

    async with running_daemon(prepare=prepare) as daemon:
        session = await daemon.session()
        first = await daemon.ask(session, "one")
        assert (first.status, await daemon.text(first)) == (
            "completed", "you said one, before that []",
        )  # fmt: skip

        asked = await daemon.send(session, "ask")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "y")
        await daemon.wait(asked)
        assert await daemon.text(asked) == "answered y"
        assert (await daemon.kinds(asked))[-2:] == ["message.delta", "run.completed"]

        waits = await daemon.send(session, "wait")
        async with daemon.client.subscribe(run_id=waits.host_run_id) as events:
            async for event in events:
                if event.kind == "message.delta":
                    break
        await daemon.cancel(waits)
        assert (await daemon.wait(waits)).status == "cancelled"

        process = (await daemon.client.processes(session))[0]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        last = await daemon.ask(session, "two")
        assert (last.status, last.continuity) == ("completed", "replay_seen")
        assert await daemon.text(last) == "you said two, before that ['one', 'ask', 'wait']"
        (loaded,) = await daemon.history(session, "binding.loaded")
        assert payload(loaded)["replayCount"] == 6
