"""An agent that cannot be had: why, in words that help, and nothing vanishes."""

import os
import resource
import stat
import sys
from typing import Any

import pytest

from acphost.provider.connection import STDERR_GRACE
from acphost.provider.process import DRAIN_GRACE
from acphost.wire.daemon import Reloaded
from tests.support.daemon import Daemon, payload, running_daemon

pytestmark = pytest.mark.anew


async def failing(daemon: Daemon, **agent: object) -> str:
    """The error of a run when the agent is configured like this."""
    daemon.configure(agent=agent)
    await daemon.restart()
    session = await daemon.session()
    run = await daemon.ask(session, "hi")
    assert (run.status, run.error_code) == ("failed", "agent_unavailable"), run
    seen = await daemon.get(session)
    assert seen.status == "failed"
    assert seen.status_reason == run.error
    assert daemon.heard("session/prompt") == []
    return run.error or ""


async def test_a_program_that_is_not_there() -> None:
    """The message names the program, where it was looked for, and what to change."""
    async with running_daemon("") as daemon:
        error = await failing(daemon, command=["no-such-agent"], path=["/nowhere/at/all"])
        assert "no-such-agent" in error
        assert "/nowhere/at/all" in error
        assert "path" in error


async def test_a_program_that_may_not_be_run() -> None:
    """Not executable: another message than a missing one."""
    async with running_daemon("") as daemon:
        program = daemon.path("agent")
        program.write_text("#!/bin/sh\n")
        error = await failing(daemon, command=[str(program)])
        assert "execut" in error


async def test_a_script_whose_interpreter_is_missing() -> None:
    """`#!/usr/bin/env nodexyz`: the interpreter is named, not the script alone."""
    async with running_daemon("") as daemon:
        program = daemon.path("agent")
        program.write_text("#!/usr/bin/env nodexyz\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        error = await failing(daemon, command=[str(program)])
        assert "nodexyz" in error


async def test_a_folder_that_has_gone() -> None:
    """The session's folder was removed after it was made: said as such; history is readable."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        daemon.work.rmdir()
        run = await daemon.ask(session, "hi")

        assert run.status == "failed"
        assert run.error is not None
        assert str(daemon.work) in run.error
        assert (await daemon.kinds(run))[-1] == "run.failed"


async def test_it_leaves_before_it_reads_anything() -> None:
    """Exit code and the last line of stderr are in the error; the whole tail in the event."""
    async with running_daemon('ERR "npm ERR! ENOTEMPTY\\n"\nEXIT 127\n') as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")

        assert (run.status, run.error_code) == ("failed", "agent_unavailable")
        assert run.error is not None
        assert "127" in run.error
        assert "ENOTEMPTY" in run.error
        (ended,) = await daemon.events(run, "run.failed")
        assert payload(ended)["exitCode"] == 127
        assert payload(ended)["stderr"] == "npm ERR! ENOTEMPTY"


async def test_it_leaves_while_what_it_started_keeps_its_pipes() -> None:
    """No end of its output ever comes: its exit counts, in less than a second, with its words."""
    script = 'ON init\n    SPAWN ${DIR}/child hold\n    ERR "panic: no disk\\n"\n    EXIT 3\n'
    async with running_daemon(script, agent={"init_timeout": 600}) as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.error is not None
        assert "code 3" in run.error
        assert "panic: no disk" in run.error
    assert DRAIN_GRACE + STDERR_GRACE < 1


async def test_it_never_answers_initialize() -> None:
    """The limit of that agent ends it, with all it had printed quoted; no session is bound."""
    # A shell is there in no time, so that it has printed before the limit on any machine.
    command = ["/bin/sh", "-c", 'echo "please wait..."; exec cat 3>&1 >"$DIR/heard"']
    async with running_daemon(agent={"command": command, "init_timeout": 1.5}) as daemon:
        ended = await daemon.ask(await daemon.session(), "hi")

        assert ended.error_code == "agent_unavailable"
        assert ended.error is not None
        assert "1.5 s" in ended.error
        assert "please wait" in ended.error
        heard = daemon.path("heard").read_text()
        assert "initialize" in heard
        assert "session/new" not in heard


async def test_it_takes_its_time() -> None:
    """Slow is not dead: within the limit it is waited for."""
    script = "ON init\n    MARK ${DIR}/asked\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.marked("asked")
        assert (await daemon.get(session)).status == "starting"
        daemon.open("go")

        assert (await daemon.wait(run)).status == "completed"


async def test_it_is_killed_while_it_starts() -> None:
    """By a signal: the message names it."""
    async with running_daemon("ON init\n    KILL KILL\n") as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.error is not None
        assert "signal 9" in run.error


async def test_it_speaks_another_version() -> None:
    """Refused, with both versions named."""
    async with running_daemon('INIT {"protocolVersion": 7}\n') as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.error is not None
        assert "version 7" in run.error


async def test_it_prints_noise_and_nothing_else() -> None:
    """Two million lines of it: bounded memory, and the last lines are quoted."""
    noise = "yes noise noise | head -n 2000000; exec cat 3>&1 >/dev/null"
    given = {"command": ["/bin/sh", "-c", noise], "init_timeout": 2}
    async with running_daemon(agent=given) as daemon:
        before = daemon.memory()
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.error_code == "agent_unavailable"
        assert run.error is not None
        assert "noise" in run.error
        assert daemon.memory() - before < 30 << 20


LOGIN = 'INIT {"authMethods": [{"id": "login", "name": "Login"}]}\n'


async def test_it_wants_a_login_first() -> None:
    """`auth_required` with the methods it offers; what was sent waits, nothing is retried."""
    script = LOGIN + 'ON new\n    FAIL -32000 "Authentication required"\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        seen = await daemon.is_status(session, "auth_required")

        assert seen.login is not None
        assert [method.id for method in seen.login.methods] == ["login"]
        assert (await daemon.run(run)).status == "pending"
        (told,) = await daemon.events(run, "error")
        assert payload(told)["code"] == "auth_required"
        assert payload(told)["methods"][0]["id"] == "login"
        assert len(daemon.heard("session/new")) == 1
        assert daemon.heard("session/prompt") == []
        daemon.rewrite(LOGIN)
        assert (await daemon.ask(session, "after the login")).status == "completed"
        assert daemon.prompts() == ["hi", "after the login"]


async def test_it_does_not_want_to() -> None:
    """-32000 in answer to a prompt is no login: the prompt is not sent again."""
    script = 'ON prompt "hi"\n    FAIL -32000 "the server is busy"\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        after = await daemon.ask(session, "q")

        assert (run.status, run.error_code) == ("failed", "agent_error")
        assert after.status == "completed"
        assert daemon.prompts() == ["hi", "q"]


async def test_the_path_comes_from_the_configuration() -> None:
    """A daemon with a bare environment finds the agent where `path` says."""
    async with running_daemon("") as daemon:
        folder = daemon.path("bin")
        folder.mkdir()
        program = folder / "my-agent"
        python, *rest = daemon.command()
        program.write_text(f"#!/bin/sh\nexec {python} {' '.join(rest)}\n")
        program.chmod(0o755)
        daemon.environ = {"HOME": os.environ["HOME"]}
        daemon.configure(agent={"command": ["my-agent"], "path": [str(folder), "/usr/bin", "/bin"]})
        await daemon.restart()

        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"


async def test_a_path_that_is_mended_counts_at_the_next_send() -> None:
    """Not found, then the folder is added to `path`: the same daemon finds it, once it is told."""

    def prepare(daemon: Daemon) -> None:
        folder = daemon.path("bin")
        folder.mkdir()
        program = folder / "my-agent"
        program.write_text(f"#!/bin/sh\nexec {' '.join(daemon.command())}\n")
        program.chmod(0o755)
        daemon.configure(agent={"command": ["my-agent"], "path": ["/usr/bin", "/bin"]})

    async with running_daemon("", prepare=prepare) as daemon:
        pid, session = daemon.pid, await daemon.session()
        missing = await daemon.ask(session, "one")
        assert (missing.status, missing.error_code) == ("failed", "agent_unavailable")
        assert "'my-agent' was not found in PATH /usr/bin:/bin" in (missing.error or "")
        daemon.configure(agent={"path": [str(daemon.path("bin")), "/usr/bin", "/bin"]})
        await daemon.client.request("host/reload", {}, Reloaded)

        assert (await daemon.ask(session, "two")).status == "completed"
        assert daemon.pid == pid


async def test_no_file_is_left_to_start_it_with() -> None:
    """The daemon is out of descriptors: the run says so, and with some more the next one works."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (daemon.descriptors() + 2, hard))
        failed = await daemon.ask(session, "one")
        assert (failed.status, failed.error_code) == ("failed", "agent_unavailable")
        assert "too many files open" in (failed.error or "")
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (hard, hard))

        assert (await daemon.ask(session, "two")).status == "completed"


async def test_the_limit_of_files_is_raised_to_what_is_allowed() -> None:
    """A service manager starts us with a low one: it is told, with how many are open."""

    def prepare(daemon: Daemon) -> None:
        code = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512));"
        daemon.wrapper = [sys.executable, "-c", f"{code} os.execv(sys.argv[1], sys.argv[1:])"]

    async with running_daemon("", prepare=prepare) as daemon:
        figures: Any = (await daemon.client.stats())["descriptors"]
        assert figures["limit"] == 512
        assert 0 < figures["open"] < 64


async def test_the_agents_environment_is_an_allow_list() -> None:
    """What is not named does not reach the agent; what `env` and `env_pass` name does."""
    async with running_daemon('ON prompt\n    MSG "${SECRET:-none} ${PASSED:-none}"\n') as daemon:
        daemon.environ |= {"SECRET": "s", "PASSED": "p\nq"}
        daemon.configure(agent={"env_pass": ["PASSED"]})
        await daemon.restart()
        run = await daemon.ask(await daemon.session(), "hi")

        assert await daemon.text(run) == "none p\nq"


async def test_it_says_megabytes_on_stderr_before_it_greets() -> None:
    """All of it is read, none of it is protocol, and the end of it is in the error."""
    noise = 'ERR "{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"x/y\\"}\\n" times=150000\n'
    last = 'ERR "the last words\\n"\n'
    dies = f"{noise}{last}ON init\n    EXIT 3\n"
    async with running_daemon(f"{noise}{last}", others={"dies": dies}) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        failed = await daemon.ask(await daemon.session("dies"), "hi")

        assert run.status == "completed"
        assert await daemon.history(session, "evidence") == []
        assert failed.error is not None
        assert "the last words" in failed.error
        (ended,) = await daemon.events(failed, "run.failed")
        assert len(payload(ended)["stderr"]) < 1 << 16
