"""The front door without a daemon, with one that is started for it, and over a restart."""

import os
import signal
import subprocess
import sys

import anyio

from tests.support.daemon import eventually, is_alive, running_daemon
from tests.support.editor import editor

WAIT = """
ON prompt "wait"
    MSG "working"
    GATE ${DIR}/gate
    MSG " done"
"""


async def test_a_restart_of_the_daemon_is_not_noticed_by_the_editor() -> None:
    """The open prompt is answered by the run's real end, and the session goes on."""
    async with running_daemon(WAIT) as daemon, editor(daemon) as zed:
        session, request = await zed.busy()
        await daemon.restart()
        answer = await zed.answer(request)
        assert answer["result"]["stopReason"] == "end_turn"
        assert "Interrupted" in zed.said(session)
        assert (await zed.prompt(session, "hello"))["stopReason"] == "end_turn"
        assert zed.said(session).count("working") == 1


async def test_a_waiting_prompt_survives_the_daemon() -> None:
    """It is held behind the interrupted turn, and answered when it has run."""
    async with running_daemon(WAIT) as daemon, editor(daemon) as zed:
        session, first = await zed.busy()
        second = await zed.queued(daemon, session)
        await daemon.restart()
        await zed.answer(first)
        assert not zed.is_answered(second)
        await daemon.client.queue_release(session)
        assert (await zed.answer(second))["result"]["stopReason"] == "end_turn"


async def test_without_a_daemon_every_request_is_answered_with_the_reason() -> None:
    """Instead of dying; and once there is one, the editor is served."""
    async with running_daemon() as daemon:
        await daemon.stop()
        async with editor(daemon, "--no-autostart", greet=False) as zed:
            error = await zed.error("initialize", protocolVersion=1)
            assert "acphost serve" in error["message"]
            assert error["data"]["details"] == error["message"]  # all that Toad shows
            await daemon.start(is_followed=False)
            await zed.initialize()
            await daemon.stop()
            error = await zed.error("session/list")
            assert error["data"]["code"] == "daemon_unreachable"
            await daemon.start(is_followed=False)
            assert "sessions" in await zed.result("session/list")
            assert await zed.close() == 0


async def test_two_editors_start_one_daemon_between_them() -> None:
    """Detached, with a lock; it outlives both."""
    async with running_daemon(check=False) as daemon:
        await daemon.stop()
        flags = ["acp", *daemon.flags, "--agent", "fake"]
        command = [sys.executable, "-m", "acphost", *flags]
        async with (
            editor(daemon, command=command) as first,
            editor(daemon, command=command) as second,
        ):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first.new)
                tasks.start_soon(second.new)
            assert await first.close() == 0
            assert await second.close() == 0
        async with daemon.connect() as client:
            pid = client.info.host_info.pid
            assert len((await client.list_sessions()).items) == 2
            await client.shutdown()
        await eventually(lambda: not _runs(pid))
        assert (daemon.state / "daemon.log").read_text().count('"ready"') == 1


async def test_a_daemon_that_died_under_a_prompt_is_started_again() -> None:
    """By whoever waits for the answer, which then comes."""
    async with running_daemon(WAIT, check=False) as daemon:
        command = [sys.executable, "-m", "acphost", "acp", *daemon.flags, "--agent", "fake"]
        async with editor(daemon, command=command) as zed:
            session, request = await zed.busy()
            await daemon.kill()
            assert (await zed.answer(request))["result"]["stopReason"] == "end_turn"
            assert "Interrupted" in zed.said(session)
            assert await zed.close() == 0
        async with daemon.connect() as client:
            pid = client.info.host_info.pid
            await client.shutdown()
        await eventually(lambda: not _runs(pid))


async def test_no_daemon_is_started_where_the_configuration_forbids_it() -> None:
    """`autostart = false` counts as much as the flag."""
    async with running_daemon(host={"autostart": False}, check=False) as daemon:
        await daemon.stop()
        command = [sys.executable, "-m", "acphost", "acp", *daemon.flags]
        async with editor(daemon, command=command) as zed:
            error = await zed.error("session/new", cwd=zed.work, mcpServers=[])
            assert "autostart" in error["message"]
            assert await zed.close() == 0


async def test_a_daemon_that_cannot_start_is_told_with_its_own_words() -> None:
    """The editor shows what the log says."""
    async with running_daemon(check=False) as daemon:
        await daemon.stop()
        store = daemon.state / "journal.db"
        kept = store.read_bytes()
        store.write_bytes(b"no store")
        command = [sys.executable, "-m", "acphost", "acp", *daemon.flags]
        async with editor(daemon, command=command) as zed:
            error = await zed.error("session/new", cwd=zed.work, mcpServers=[])
            assert "did not start" in error["message"]
            assert "journal.db" in error["message"]
            assert await zed.close() == 0
        store.write_bytes(kept)


async def test_start_runs_a_daemon_in_the_background_once() -> None:
    """`acphost start` prints where it listens, again and again."""
    async with running_daemon(check=False) as daemon:
        await daemon.stop()
        command = [sys.executable, "-m", "acphost", "start", *daemon.flags]
        for _ in range(2):
            done = await anyio.run_process(command, env=daemon.environ)
            assert done.stdout.decode().strip() == str(daemon.socket)
        async with daemon.connect() as client:
            pid = client.info.host_info.pid
            await client.shutdown()
        await eventually(lambda: not _runs(pid))


def test_the_first_answer_comes_soon() -> None:
    """Within two and a half times what Python needs to load the two libraries it stands on."""
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    # As the installed script does it.
    program = "import sys; from acphost.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "acp", "--socket", "/nowhere/s"]
    bare = [sys.executable, "-c", "import anyio, msgspec; print()"]
    # Time on a processor, the least of several: what else the machine does says nothing here.
    times = [(_time(bare, b""), _time(command, hello)) for _ in range(5)]
    assert min(door for _, door in times) < 2.5 * min(base for base, _ in times)


def _time(command: list[str], hello: bytes) -> float:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(hello)
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime


def _runs(pid: int) -> bool:
    return is_alive(pid)
