"""A disk that takes no writes any more, or answers with errors, under the whole daemon."""

import sys
from typing import Any

import anyio
import pytest

from acphost.errors import StorageError
from tests.support import broken_disk
from tests.support.daemon import Daemon, eventually, is_alive, running_daemon
from tests.support.patience import PATIENCE
from tests.support.steps import chunks
from tests.support.terminal import acphost

SCRIPT = f"""
ON prompt "much"
    MSG "first "
    MARK ${{DIR}}/begun
    GATE ${{DIR}}/go
{chunks(4_000, 2_000)}
"""


def breakable(daemon: Daemon) -> None:
    """Have it start on a disk that fails as the file `disk` says."""
    file = str(daemon.path("disk"))
    daemon.wrapper = [sys.executable, broken_disk.__file__, file, *daemon.wrapper]


async def storage(daemon: Daemon) -> dict[str, str]:
    """What the figures say of the store."""
    told: Any = (await daemon.client.stats())["storage"]
    return {name: str(value) for name, value in told.items()}


async def has_agents_wait(daemon: Daemon) -> None:
    """Wait until agents are not listened to any more."""
    with anyio.fail_after(PATIENCE):
        while True:
            figures: Any = await daemon.client.stats()
            if figures["journal"]["agentsWait"]:
                return
            await anyio.sleep(0.01)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("readonly", "readonly"),
        ("SQLITE_IOERR_FSYNC", "disk I/O error"),
        ("SQLITE_IOERR_READ", "disk I/O error"),
        ("SQLITE_CANTOPEN", "disk I/O error"),
    ],
)
async def test_what_cannot_be_written_waits_until_it_can(word: str, reason: str) -> None:
    """Alive and told; sends refused, the agent held; then it goes on, and all is there."""
    async with running_daemon(SCRIPT, prepare=breakable) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "much")
        await daemon.marked("begun")
        await daemon.has_event(session, "message.delta")
        daemon.path("disk").write_text(word)
        daemon.open("go")
        with anyio.fail_after(PATIENCE):
            while (await storage(daemon))["state"] != "error":  # noqa: ASYNC110  what is tested
                await anyio.sleep(0.02)

        assert reason in (await storage(daemon))["reason"]
        with pytest.raises(StorageError) as refused:
            await daemon.send(session, "refused")
        assert refused.value.retryable
        await has_agents_wait(daemon)
        assert reason in ((await daemon.client.status(session)).status_reason or "")
        shown = await acphost(daemon.socket, "status")
        assert (shown.code, reason in shown.out) == (0, True), shown.out
        (agent,) = daemon.launches()
        assert is_alive(agent)
        told: Any = (await daemon.client.stats())["journal"]
        assert all(int(event.offset) <= int(told["headOffset"]) for event in daemon.seen)

        daemon.path("disk").unlink()
        assert (await daemon.wait(run)).status == "completed"
        assert (await storage(daemon))["state"] == "ok"
        assert len(await daemon.events(run, "message.delta")) == 4_001
        assert (await daemon.ask(session, "after")).status == "completed"
        assert daemon.prompts() == ["much", "after"]
        await eventually(lambda: "storage.recovered" in [event.kind for event in daemon.seen])


async def test_a_disk_that_does_not_answer_is_shown() -> None:
    """What runs is not lost, agents are not listened to, and every status says why."""
    async with running_daemon(SCRIPT, prepare=breakable) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "much")
        await daemon.marked("begun")
        daemon.path("disk").write_text("stuck")
        daemon.open("go")
        await has_agents_wait(daemon)

        assert "the disk is slow" in ((await daemon.client.status(session)).status_reason or "")
        shown = await acphost(daemon.socket, "status")
        assert "too slow" in shown.out, shown.out

        daemon.path("disk").unlink()
        assert (await daemon.wait(run)).status == "completed"
        assert len(await daemon.events(run, "message.delta")) == 4_001
        assert "the disk" not in ((await daemon.client.status(session)).status_reason or "")
