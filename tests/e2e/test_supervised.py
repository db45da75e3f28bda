"""A daemon under a service manager: its socket, its reports, its end."""

import signal
from pathlib import Path

import pytest

from tests.support.daemon import eventually, running_daemon
from tests.support.service_manager import notify_socket, wrapper

pytestmark = pytest.mark.anew


async def test_it_serves_on_the_socket_it_was_handed() -> None:
    """The manager's file stays when the daemon goes; the next daemon is handed a new one here."""
    async with running_daemon("") as daemon:
        await daemon.stop()
        daemon.wrapper = wrapper(daemon.socket)
        await daemon.start()
        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"
        await daemon.stop()
        assert daemon.socket.exists()
        daemon.socket.unlink()


async def test_a_socket_at_another_place_is_refused_with_an_exit_that_no_restart_cures() -> None:
    async with running_daemon("") as daemon:
        await daemon.stop()
        daemon.wrapper = wrapper(Path(f"{daemon.socket}-other"))
        process = daemon.launch()
        await eventually(lambda: process.poll() is not None)
        assert process.returncode == 78
        assert "service install" in daemon.log()
        daemon.wrapper = []
        await daemon.start()


async def test_the_manager_hears_how_it_fares() -> None:
    """READY once clients are admitted, signs of life in time, STOPPING with the time it takes."""
    async with running_daemon("") as daemon:
        await daemon.stop()
        with notify_socket(f"{daemon.folder}/notify") as manager:
            daemon.environ |= {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "200000"}
            await daemon.start()
            ready = await manager.hears("READY=1")
            assert f"STATUS=serving {daemon.socket}, 0 agents" in ready
            await daemon.ask(await daemon.session(), "hi")
            await manager.hears("WATCHDOG=1")
            await manager.hears("WATCHDOG=1")
            daemon.signal(signal.SIGTERM)
            stopping = await manager.hears("STOPPING=1")
            assert "EXTEND_TIMEOUT_USEC=" in stopping
            assert await daemon.exit_code() == 0
            assert any("1 agents" in message for message in manager.told)
