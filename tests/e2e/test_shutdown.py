"""The end of the daemon: turns may finish within a deadline, nothing is left, nothing is lost."""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from acphost.errors import ShuttingDownError, StorageError, StorageFullError
from tests.support.daemon import Daemon, eventually, is_alive, running_daemon, started
from tests.support.patience import NEVER, PATIENCE

pytestmark = pytest.mark.anew

GATED = """
ON prompt
    MSG "a"
    MARK ${DIR}/begun
    GATE ${DIR}/go
    MSG "b"
"""


async def test_a_turn_may_end_within_the_deadline() -> None:
    """SIGTERM: no new work, the open turn ends as usual, what waits is kept; exit 0."""
    async with running_daemon(GATED, host={"drain": {"timeout": NEVER}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        second = await daemon.send(session, "two")
        await daemon.marked("begun")
        daemon.signal(signal.SIGTERM)
        await eventually(lambda: "stopping" in daemon.log())
        with pytest.raises(ShuttingDownError):
            await daemon.send(session, "three")
        daemon.open("go")
        assert await daemon.exit_code() == 0
        await daemon.start()

        assert (await daemon.run(run)).status == "completed"
        assert (await daemon.run(second)).status == "pending"
        assert daemon.prompts() == ["one"]
        await daemon.client.queue_release(session)
        assert (await daemon.wait(second)).status == "completed"


async def test_a_turn_that_does_not_end_is_interrupted() -> None:
    """After the deadline: `host_shutdown`, the agent is gone, the queue is held at the return."""
    async with running_daemon(GATED, host={"drain": {"timeout": 0.2}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.marked("begun")
        await daemon.stop()
        agents = daemon.launches()
        await daemon.start()

        ended = await daemon.run(run)
        assert (ended.status, ended.error_code) == ("interrupted", "host_shutdown")
        assert not any(is_alive(pid) for pid in agents)
        seen = await daemon.get(session)
        assert (seen.status, seen.status_reason) == ("held", "host_shutdown")


async def test_a_second_signal_ends_it_at_once() -> None:
    """Nobody waits for the deadline, nor for an agent that ignores everything."""
    script = "IGNORE TERM\n" + GATED + "ON eof\n    STAY\n"
    async with running_daemon(script, host={"drain": {"timeout": NEVER}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.marked("begun")
        daemon.signal(signal.SIGTERM)
        await eventually(lambda: "stopping" in daemon.log())
        daemon.signal(signal.SIGTERM)
        assert await daemon.exit_code() == 0
        await daemon.start()

        assert (await daemon.run(run)).status == "interrupted"


async def test_stopping_while_an_agent_is_being_started() -> None:
    """It never answers `initialize`: the daemon does not wait for it, and the run stays pending."""
    script = "ON init\n    MARK ${DIR}/init\n    STAY\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.marked("init")
        await daemon.stop()
        daemon.rewrite("")
        await daemon.start()

        assert (await daemon.run(run)).status == "pending"
        await daemon.client.queue_release(session)
        assert (await daemon.wait(run)).status == "completed"


async def test_stopping_while_a_session_is_being_opened() -> None:
    """The same with `session/new` unanswered."""
    script = "ON new\n    MARK ${DIR}/new\n    STAY\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.marked("new")
        await daemon.stop()
        daemon.rewrite("")
        await daemon.start()

        assert (await daemon.run(run)).status == "pending"


async def test_shutdown_by_the_socket() -> None:
    """`host/shutdown` answers and drains; clients hear of it, and get their last events."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        daemon.open("go")
        await daemon.ask(session, "one")
        await daemon.client.shutdown()

        assert await daemon.exit_code() == 0
        last = {row.kind for row in daemon.journal.rows()[-3:]}
        assert last == {"host.stopping", "binding.closed", "agent.state"}


async def test_a_client_that_waits_is_told_before_the_daemon_goes() -> None:
    """`run/wait` is answered with what became of the run; then the connection is closed."""
    async with running_daemon(GATED) as daemon, daemon.wire() as wire:
        run = await daemon.send(await daemon.session(), "one")
        await daemon.marked("begun")
        wait = {"hostRunId": run.host_run_id}
        await wire.send({"id": "w", "method": "run/wait", "params": wait})
        daemon.signal(signal.SIGTERM)

        assert (await wire.answer("w"))["result"]["status"] == "interrupted"
        await wire.closed()
        assert await daemon.exit_code() == 0


async def test_one_daemon_for_one_state_directory() -> None:
    """A second start says who holds it and exits 3, also while the first is stopped."""
    async with running_daemon("") as daemon:
        daemon.signal(signal.SIGSTOP)
        try:
            second = daemon.launch()
            await eventually(lambda: second.poll() is not None)
        finally:
            daemon.signal(signal.SIGCONT)

        assert second.returncode == 3
        assert str(daemon.pid) in daemon.log()
        assert (await daemon.client.ping()).uptime_ms > 0


async def test_a_stale_socket_does_not_block_the_start() -> None:
    """After kill -9 the file is there and nobody listens: it is replaced."""
    async with running_daemon("") as daemon:
        await daemon.kill()
        assert daemon.socket.exists()
        await daemon.start()

        assert (await daemon.client.ping()).uptime_ms >= 0
        assert daemon.socket.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["file", "link"])
async def test_what_is_no_socket_of_ours_is_left_alone(kind: str) -> None:
    """A regular file or a link in the way: refused with the reason, and not touched."""
    async with running_daemon("") as daemon:
        await daemon.stop()
        if kind == "file":
            daemon.socket.write_text("mine")
        else:
            daemon.socket.symlink_to("/nowhere")
        refused = daemon.launch()
        await eventually(lambda: refused.poll() is not None)

        assert refused.returncode == 78
        assert daemon.socket.is_symlink() or daemon.socket.read_text() == "mine"
        daemon.socket.unlink()
        await daemon.start()


async def test_a_socket_file_that_was_deleted() -> None:
    """The daemon works on for those inside, and stops as ever."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        daemon.socket.unlink()
        daemon.open("go")

        assert (await daemon.ask(session, "one")).status == "completed"
        await daemon.stop()


LOCKER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.isolation_level = None
db.execute("BEGIN IMMEDIATE"); print("held", flush=True)
sys.stdin.readline(); db.execute("ROLLBACK")
"""


@contextmanager
def locked(daemon: Daemon) -> Iterator[None]:
    """Another program holds the lock of the store."""
    locker = started(sys.executable, "-c", LOCKER, str(daemon.journal.path))
    assert locker.stdin is not None
    assert locker.stdout is not None
    try:
        assert locker.stdout.readline() == "held\n"
        yield
        locker.stdin.write("\n")
        locker.stdin.flush()
    finally:
        locker.communicate()


async def test_another_program_holds_the_lock_of_the_store() -> None:
    """No error, nothing lost: what came meanwhile is committed when the lock is free."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.marked("begun")
        accepted: list[str] = []

        async def send() -> None:
            accepted.append((await daemon.send(session, "two")).host_run_id)

        async with anyio.create_task_group() as tasks:
            with locked(daemon):
                daemon.open("go")
                tasks.start_soon(send)
                with anyio.move_on_after(1.0):
                    await anyio.Event().wait()
                assert accepted == []
                assert (await daemon.run(run)).status == "running"  # only what is on disk is shown

        assert (await daemon.wait(run)).status == "completed"
        assert await daemon.text(run) == "ab"
        assert len(accepted) == 1


async def test_a_start_that_was_told_can_be_read() -> None:
    """`runtime/start` is answered when what the agent said of the session is in its history."""
    script = "ON new\n    MARK ${DIR}/new\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon, anyio.create_task_group() as tasks:
        session = await daemon.session()
        told: list[str] = []

        async def start() -> None:
            await daemon.client.start(session)
            told.extend(event.kind for event in await daemon.history(session))

        tasks.start_soon(start)
        await daemon.marked("new")
        with locked(daemon):
            daemon.open("go")
            with anyio.move_on_after(1.0):
                await anyio.Event().wait()
        await eventually(lambda: bool(told))
        assert "binding.started" in told


async def test_a_full_store_refuses_what_it_cannot_keep() -> None:
    """`ulimit -f`: the send is refused with a word to retry; the daemon lives, and says why."""
    script = "ON prompt\n    BIG 1M\n    BIG 1M\n    BIG 1M\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        daemon.limit_file_size(2 << 20)
        run = await daemon.send(session, "one")
        with anyio.fail_after(PATIENCE):
            while (await daemon.client.stats())["storage"]["state"] == "ok":  # type: ignore[index]
                pass
        with pytest.raises((StorageFullError, StorageError)):
            await daemon.send(session, "two")
        assert (await daemon.run(run)).status == "running"
        daemon.limit_file_size(resource.RLIM_INFINITY)
        assert (await daemon.wait(run)).status == "completed"

        assert len(await daemon.text(run)) == 3 << 20
        assert (await daemon.ask(session, "three")).status == "completed"


async def test_signals_that_come_in_the_last_moment_change_nothing() -> None:
    """However often and late it is told to end: exit 0, and the store is closed in order."""
    async with running_daemon("") as daemon:
        await daemon.ask(await daemon.session(), "hi")
        for _ in range(3):
            with anyio.fail_after(PATIENCE):
                while daemon.has_not_ended():
                    daemon.signal(signal.SIGTERM)
                    await anyio.sleep(0.002)
            assert await daemon.exit_code() == 0
            await daemon.start()


async def test_a_manager_that_signals_all_of_them_at_once() -> None:
    """TERM to the daemon and to every agent: the turns are interrupted, nothing is left, exit 0."""
    async with running_daemon(GATED, host={"drain": {"timeout": 5}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.marked("begun")
        daemon.signal(signal.SIGTERM)
        for pid in daemon.launches():
            os.kill(pid, signal.SIGTERM)
        assert await daemon.exit_code() == 0
        await daemon.start()

        assert (await daemon.run(run)).status == "interrupted"
        assert daemon.prompts() == ["one"]
