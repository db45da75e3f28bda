"""A disk that fills up under the whole daemon: it lives, says so, keeps its word, and goes on."""

import resource
import sys

import anyio
import pytest

from acphost.errors import StorageFullError
from tests.support.daemon import Daemon, eventually, is_alive, running_daemon
from tests.support.patience import PATIENCE
from tests.support.steps import chunks
from tests.support.terminal import acphost

#: Enough for the start and a few runs; a long turn does not fit.
ROOM = 600_000
#: Just enough for what SQLite shares between its connections.
NO_ROOM = 40_000


SCRIPT = f'ON prompt "much"\n{chunks(4_000, 1_000)}'


def limit_files(daemon: Daemon, size: int) -> None:
    """No file of the daemon may grow over this from here on."""
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def born_limited(size: int) -> list[str]:
    """A wrapper that has the daemon start like that."""
    code = (
        "import os, resource, sys;"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-c", code]


async def storage(daemon: Daemon) -> str:
    """What the status says about the store."""
    told = (await daemon.client.stats())["storage"]
    assert isinstance(told, dict)
    return str(told["state"])


async def is_full(daemon: Daemon) -> None:
    """Wait until it says so."""
    with anyio.fail_after(PATIENCE):
        while await storage(daemon) != "full":  # noqa: ASYNC110  the status is what is tested
            await anyio.sleep(0.02)


async def test_a_turn_runs_into_the_wall_and_goes_on_when_there_is_room() -> None:
    """Alive, told, sends refused; nothing was shown that is not kept; then gapless to the end."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "before")
        limit_files(daemon, ROOM)
        run = await daemon.send(session, "much")
        await is_full(daemon)

        with pytest.raises(StorageFullError):
            await daemon.send(session, "refused")
        assert (await daemon.client.run(run.host_run_id)).status == "running"
        seen = max(int(event.offset) for event in daemon.seen)
        (kept,) = daemon.journal.query("SELECT max(offset) AS head FROM events")
        assert seen <= kept["head"]
        (agent,) = daemon.launches()
        assert is_alive(agent)

        limit_files(daemon, resource.RLIM_INFINITY)
        assert (await daemon.wait(run)).status == "completed"
        assert await storage(daemon) == "ok"
        assert len(await daemon.events(run, "message.delta")) == 4_000
        assert daemon.launches() == [agent]
        after = await daemon.ask(session, "after")
        assert after.status == "completed"
        assert daemon.prompts() == ["before", "much", "after"]
        kinds = [event.kind for event in daemon.seen if event.session_id is None]
        assert "storage.degraded" in kinds
        assert "storage.recovered" in kinds


async def test_killed_on_a_full_disk_it_starts_and_says_so() -> None:
    """It answers its status and refuses the rest; with room again, all is put right by itself."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        limit_files(daemon, ROOM)
        run = await daemon.send(session, "much")
        await is_full(daemon)
        await daemon.kill()
        daemon.wrapper = born_limited(NO_ROOM)
        await daemon.start()

        assert await storage(daemon) == "full"
        with pytest.raises(StorageFullError):
            await daemon.get(session)
        with pytest.raises(StorageFullError):
            await daemon.send(session, "refused")

        shown = await acphost(daemon.socket, "status")
        assert (shown.code, "cannot be written" in shown.out) == (0, True), shown.err

        limit_files(daemon, resource.RLIM_INFINITY)
        with anyio.fail_after(PATIENCE):
            while await storage(daemon) != "ok":  # noqa: ASYNC110  the status is what is tested
                await anyio.sleep(0.02)
        await eventually(lambda: '"ready"' in daemon.log().rpartition("storage")[2])
        ended = await daemon.run(run)
        assert (ended.status, ended.error_code) == ("interrupted", "host_restarted")
        assert (await daemon.get(session)).status == "held"
        daemon.rewrite("")
        assert (await daemon.ask(session, "after")).status == "completed"


async def test_told_to_stop_on_a_full_disk_it_stops() -> None:
    """The second signal does not wait for room; what was not written was shown to nobody."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        limit_files(daemon, ROOM)
        await daemon.send(session, "much")
        await is_full(daemon)
        await daemon.client.shutdown(force=True)
        assert await daemon.exit_code() == 0
        daemon.wrapper = []
        await daemon.start()
        assert (await daemon.get(session)).status == "held"
