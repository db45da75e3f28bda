"""Where the socket is: whose it is, who else may be there, and what is taken away at the end."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.support.daemon import eventually, running_daemon
from tests.support.terminal import acphost


@contextmanager
def foreign_listener(path: Path, *, full: bool) -> Iterator[int]:
    """Somebody else's socket in that place; full: nobody else gets into its line. Its inode."""
    listener = socket.socket(socket.AF_UNIX)
    crowd: list[socket.socket] = []
    try:
        listener.bind(str(path))
        listener.listen(0)
        while full:
            peer = socket.socket(socket.AF_UNIX)
            crowd.append(peer)
            peer.setblocking(False)
            try:
                peer.connect(str(path))
            except BlockingIOError:
                break
        yield path.stat().st_ino
    finally:
        for each in (listener, *crowd):
            each.close()


@pytest.mark.parametrize("full", [False, True], ids=["idle", "full"])
async def test_a_foreign_listener_in_its_place_is_not_taken_for_a_dead_daemon(full: bool) -> None:
    """The start is refused with the reason, and the other's file stays; gone, it works."""
    async with running_daemon() as daemon:
        await daemon.stop()
        with foreign_listener(daemon.socket, full=full) as inode:
            process = daemon.launch()
            await eventually(lambda: process.poll() is not None)
            assert process.returncode not in (0, -signal.SIGKILL)
            assert str(daemon.socket) in daemon.log()
            assert daemon.socket.stat().st_ino == inode
        await daemon.start()
        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"


async def test_at_its_end_it_removes_no_file_but_its_own() -> None:
    """A successor has bound there already: its file stays."""
    async with running_daemon() as daemon:
        daemon.socket.unlink()
        with foreign_listener(daemon.socket, full=False) as inode:
            await daemon.stop()
            assert daemon.socket.stat().st_ino == inode


async def test_without_its_file_it_can_still_be_stopped() -> None:
    """The file was deleted under it: the commands say so, and `stop` ends it by its pid."""
    async with running_daemon() as daemon:
        await daemon.ask(await daemon.session(), "hi")
        daemon.socket.unlink()
        status = await acphost(daemon.socket, "--state-dir", str(daemon.state), "status")
        assert status.code == 69
        assert f"pid {daemon.pid}) is at work, but its socket" in status.err
        elsewhere = await acphost(daemon.socket, "stop")
        assert elsewhere.code == 69
        second = daemon.launch()
        await eventually(lambda: second.poll() is not None)
        assert second.returncode == 3
        stopped = await acphost(daemon.socket, "--state-dir", str(daemon.state), "stop")
        assert (stopped.code, await daemon.exit_code()) == (0, 0)
        assert f"stopped (pid {daemon.pid})" in stopped.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user for this")
async def test_another_user_is_not_served_even_where_the_folder_is_open() -> None:
    """The kernel's word on who is there counts, not the mode of a file."""
    async with running_daemon() as daemon:
        daemon.folder.chmod(0o755)
        daemon.socket.chmod(0o666)
        os.seteuid(65534)
        try:
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(str(daemon.socket))
        finally:
            os.seteuid(0)
        with closing(peer):
            peer.settimeout(20)
            with suppress(BrokenPipeError):
                peer.sendall(b'{"jsonrpc":"2.0","id":1,"method":"host/ping"}\n')
            with suppress(ConnectionResetError):
                assert await anyio.to_thread.run_sync(peer.recv, 4096) == b""
        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"
