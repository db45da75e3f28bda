"""A command that has to wait says for what, and for how long."""

import signal

import anyio

from acphost.transport.lock import lock_holder
from tests.support.daemon import eventually, running_daemon
from tests.support.patience import PATIENCE
from tests.support.terminal import acphost, piped

GATED = """
ON prompt
    MARK ${DIR}/begun
    GATE ${DIR}/go
    MSG "done"
"""


async def test_stop_names_the_turn_it_waits_for() -> None:
    """And how not to wait for it."""
    async with running_daemon(GATED, host={"drain": {"timeout": 20}}) as daemon:
        session = await daemon.session()
        await daemon.send(session, "work")
        await daemon.marked("begun")
        with anyio.fail_after(PATIENCE):
            async with piped(daemon.socket, "stop") as command:
                said = await command.until("--force", "err")
                assert f"the turn of fake in session {session[-8:]} (running)" in said
                daemon.open("go")
                assert (await command.rest())[0] == 0
        assert await daemon.exit_code() == 0


async def test_a_daemon_on_its_way_up_is_waited_for() -> None:
    """It ends what the last one left before it takes connections: that is no absence."""
    script = "IGNORE TERM\nON eof\n    STAY\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        await daemon.kill()
        process = daemon.begin()
        await eventually(lambda: lock_holder(daemon.state) == process.pid)
        process.send_signal(signal.SIGSTOP)
        with anyio.fail_after(PATIENCE):
            async with piped(
                daemon.socket, "ls", "--json", ACPHOST_STATE_DIR=str(daemon.state)
            ) as command:
                await command.until("is starting", "err")
                process.send_signal(signal.SIGCONT)
                code, out, err = await command.rest()
        assert code == 0, err
        assert session in out
        process.terminate()
        await eventually(lambda: process.poll() is not None)
        await daemon.start()


async def test_send_says_that_the_agent_has_not_answered_yet() -> None:
    """An agent that is silent at `initialize`: what is going on, and for how long by now."""
    script = "ON init\n    GATE ${DIR}/go\n    INIT\n"
    async with running_daemon(script) as daemon:
        with anyio.fail_after(PATIENCE):
            async with piped(
                daemon.socket, "send", "--agent", "fake", "--cwd", str(daemon.work), "hi"
            ) as command:
                await command.until("fake is starting, and has not answered yet (", "err")
                daemon.open("go")
                code, out, _ = await command.rest()
        assert (code, out) == (0, "ok\n")


async def test_tables_keep_to_a_hundred_columns() -> None:
    """Long commands, reasons and titles are cut at the end of their line."""
    script = "ON new\n    FAIL -32603 " + "'" + "no " * 200 + "'\n"
    async with running_daemon(script, others={"long": GATED}) as daemon:
        failed = await daemon.session(title="t" * 500)
        await daemon.ask(failed, "hi")
        await daemon.send(await daemon.session("long"), "work")
        await daemon.marked("begun")
        for words in (["status"], ["ls"], ["ps"]):
            done = await acphost(daemon.socket, *words)
            assert done.code == 0
            assert max(len(line) for line in done.out.splitlines()) <= 100, done.out
        overview = (await acphost(daemon.socket, "status")).out
        assert "2, 1 of them at work, 1 with an agent that cannot be had" in overview
        daemon.open("go")
