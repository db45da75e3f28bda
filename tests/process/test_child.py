"""Real children, well-behaved and otherwise."""

import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

import acphost
from acphost.errors import AgentUnavailableError, ConnectionLostError
from acphost.ids import mint
from acphost.transport import processes
from acphost.transport.child import Child, ChildSpec, Exit, spawn
from acphost.transport.processes import Launch, Process
from tests.support.patience import PATIENCE

#: Ignores EOF and TERM, and says so once it does.
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True);"
FOREVER = "import time; time.sleep(1000)"
#: Starts `python -c {code}` and prints its pid once it has spoken.
LAUNCHER = """
import subprocess, sys
p = subprocess.Popen([sys.executable, "-c", {code!r}], stdout=subprocess.PIPE, **{options!r})
p.stdout.readline()
print(p.pid, flush=True)
"""


def spec(*argv: str, env: dict[str, str] | None = None, drain_grace: float = 5) -> ChildSpec:
    return ChildSpec(
        argv=argv,
        cwd="/",
        env={"PATH": os.environ["PATH"]} if env is None else env,
        launch_id=mint("launch"),
        drain_grace=drain_grace,
    )


def python(code: str, drain_grace: float = 5) -> ChildSpec:
    return spec(sys.executable, "-c", code, drain_grace=drain_grace)


@asynccontextmanager
async def running(what: ChildSpec) -> AsyncIterator[Child]:
    with anyio.fail_after(PATIENCE):
        child = spawn(what)
        try:
            yield child
        finally:
            assert await child.stop(eof_grace=0, term_grace=0) == []


async def line(child: Child) -> bytes:
    """The next line; these children never say more than one at a time."""
    text = b""
    while not text.endswith(b"\n"):
        data = await child.read_stdout()
        assert data, "ended early"
        text += data
    return text[:-1]


async def everything(read: Callable[[], object]) -> bytes:
    text = b""
    while data := await read():  # type: ignore[misc]  # a bound async method
        text += data
    return text


def process(pid: int) -> Process:
    birth = processes.birth(pid)
    assert birth is not None
    return Process(pid, birth)


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


# -- talking --------------------------------------------------------------------------------------


async def test_what_is_written_comes_back() -> None:
    async with running(spec("cat")) as child:
        await child.write(b"hello\n")
        assert await line(child) == b"hello"
        child.close_stdin()
        assert await child.read_stdout() == b""
        assert await child.wait() == Exit(0, None)


async def test_environment_and_directory_are_exactly_those_given() -> None:
    value = "a\nb$HOME `x` \udce9"
    what = spec("env", "-0", env={"PATH": os.environ["PATH"], "V": value})
    async with running(what) as child:
        text = await everything(child.read_stdout)
    assert set(os.fsdecode(text).rstrip("\0").split("\0")) == {
        f"PATH={os.environ['PATH']}",
        f"V={value}",
        f"ACPHOST_LAUNCH={what.launch_id}",
    }


async def test_a_write_larger_than_the_pipe_arrives_whole_while_output_is_read() -> None:
    data = os.urandom(3_000_000)
    received = b""
    async with running(spec("cat")) as child, anyio.create_task_group() as tasks:
        tasks.start_soon(child.write, data)
        while len(received) < len(data):
            received += await child.read_stdout()
    assert received == data


async def test_five_megabytes_on_stderr_do_not_block_the_child() -> None:
    code = "import sys; sys.stderr.write('e' * 5_000_000); print('done')"
    async with running(python(code)) as child:
        sizes: list[int] = []

        async def drain() -> None:
            while data := await child.read_stderr():
                sizes.append(len(data))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            assert await line(child) == b"done"
        assert sum(sizes) == 5_000_000


async def test_a_last_line_without_newline_is_read_after_the_exit() -> None:
    async with running(spec("sh", "-c", "printf 'one\ntwo'; exit 3")) as child:
        assert await child.wait() == Exit(3, None)
        assert await everything(child.read_stdout) == b"one\ntwo"


async def test_a_reader_that_comes_late_still_gets_all_that_was_said() -> None:
    """Back-pressure may have kept it from reading until long after the exit."""
    async with running(spec("sh", "-c", "head -c 60000 /dev/zero", drain_grace=0)) as child:
        await child.wait()
        child._end_of_drain()  # noqa: SLF001 - the moment the grace is over, without waiting for it
        assert len(await everything(child.read_stdout)) == 60000


async def test_a_write_to_a_child_that_exits_is_a_lost_connection() -> None:
    code = "import sys; sys.stdin.buffer.read(1)"
    async with running(python(code)) as child:
        with pytest.raises(ConnectionLostError):
            await child.write(b"x" * 10_000_000)
        with pytest.raises(ConnectionLostError):
            await child.write(b"more")
        assert (await child.wait()).code == 0


async def test_a_child_that_closed_its_stdin_is_a_lost_connection() -> None:
    async with running(spec("sh", "-c", "exec <&-; echo closed; exec sleep 1000")) as child:
        assert await line(child) == b"closed"
        with pytest.raises(ConnectionLostError):
            await child.write(b"x")
        assert child.exit is None


async def test_a_write_that_is_cancelled_half_way_leaves_no_half_line_to_build_on() -> None:
    async with running(spec("sh", "-c", "echo ready; exec sleep 1000")) as child:
        assert await line(child) == b"ready"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child.write, b"x" * 10_000_000)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        with pytest.raises(ConnectionLostError):
            await child.write(b"next\n")


async def test_a_blocked_write_ends_when_the_child_is_gone_but_its_stdin_is_held() -> None:
    what = spec("sh", "-c", "sleep 1000 & echo $!; exit 0", drain_grace=0)
    async with running(what) as child:
        await line(child)
        with pytest.raises(ConnectionLostError):
            await child.write(b"x" * 10_000_000)


# -- exits ----------------------------------------------------------------------------------------


async def test_a_signal_is_told_apart_from_a_code() -> None:
    async with running(spec("sh", "-c", "kill -9 $$")) as child:
        how = await child.wait()
        assert how == Exit(None, 9)
        assert str(how) == "was ended by SIGKILL"


async def test_waiting_does_not_depend_on_a_grandchild_that_holds_stdout() -> None:
    what = spec("sh", "-c", "sleep 1000 & echo $!; exit 4", drain_grace=0)
    async with running(what) as child:
        assert await child.wait() == Exit(4, None)
        grandchild = process(int(await line(child)))
        assert await child.read_stdout() == b"", "the end by grace, since there is no EOF"
        assert processes.is_alive(grandchild)
    assert not processes.is_alive(grandchild)


async def test_what_a_grandchild_says_within_the_grace_is_read() -> None:
    what = spec("sh", "-c", "exec 3<&0; (read x <&3; echo late) & exit 0")
    async with running(what) as child:
        await child.wait()
        await child.write(b"go\n")
        assert await everything(child.read_stdout) == b"late\n"


async def test_many_can_wait_for_the_exit() -> None:
    async with running(spec("cat")) as child, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(child.wait)
        await anyio.wait_all_tasks_blocked()
        child.close_stdin()


# -- stop -----------------------------------------------------------------------------------------


async def test_eof_is_enough_for_a_child_that_listens() -> None:
    async with running(spec("cat")) as child:
        assert await child.stop(eof_grace=20, term_grace=20) == []
        assert child.exit == Exit(0, None)


async def test_term_is_enough_for_a_child_that_does_not() -> None:
    async with running(spec("sleep", "1000")) as child:
        assert await child.stop(eof_grace=0.05, term_grace=20) == []
        assert child.exit == Exit(None, signal.SIGTERM)


async def test_a_child_that_ignores_eof_and_term_is_killed() -> None:
    async with running(python(STUBBORN + FOREVER)) as child:
        await line(child)
        assert await child.stop(eof_grace=0.05, term_grace=0.05) == []
        assert child.exit == Exit(None, signal.SIGKILL)


async def test_a_stopped_process_is_ended_too() -> None:
    async with running(spec("sh", "-c", "echo up; kill -STOP $$")) as child:
        await line(child)
        assert await child.stop(eof_grace=0.05, term_grace=0.05) == []


@pytest.mark.parametrize("options", [{}, {"start_new_session": True}], ids=["group", "setsid"])
async def test_a_grandchild_goes_with_its_launcher(options: dict[str, bool]) -> None:
    code = LAUNCHER.format(code=STUBBORN + FOREVER, options=options) + STUBBORN + FOREVER
    async with running(python(code)) as child:
        grandchild = process(int((await line(child)).split()[0]))
        assert processes.is_alive(grandchild)
        assert await child.stop(eof_grace=0.05, term_grace=0.05) == []
        assert not processes.is_alive(grandchild)


@pytest.mark.parametrize("options", [{}, {"start_new_session": True}], ids=["group", "setsid"])
async def test_a_grandchild_is_found_when_its_launcher_is_gone(options: dict[str, bool]) -> None:
    code = LAUNCHER.format(code=STUBBORN + FOREVER, options=options)
    async with running(python(code)) as child:
        grandchild = process(int(await line(child)))
        await child.wait()
        assert processes.is_alive(grandchild)
        assert await child.stop(eof_grace=5, term_grace=0.05) == []
        assert not processes.is_alive(grandchild)


async def test_a_descendant_without_mark_and_group_goes_with_its_parent() -> None:
    """It left the group and threw its environment away: its parent is what tells that it is ours.

    The parent leaves at EOF, so that it must have been looked for before.
    """
    script = "setsid env -i sleep 1000 & echo $!; exec cat"
    async with running(spec("sh", "-c", script)) as child:
        stray = process(int(await line(child)))
        assert await child.stop(eof_grace=20, term_grace=0.05) == []
        assert not processes.is_alive(stray)


async def test_a_child_blocked_on_full_pipes_still_sees_eof() -> None:
    code = """
import os, sys, threading
for fd in (1, 2):
    threading.Thread(target=os.write, args=(fd, b"x" * 5_000_000)).start()
sys.stdin.read()
"""
    async with running(python(code)) as child:
        assert await child.stop(eof_grace=20, term_grace=0) == []
        assert child.exit == Exit(0, None)


async def test_who_still_reads_when_it_is_stopped_sees_the_end() -> None:
    async with running(spec("sleep", "1000")) as child, anyio.create_task_group() as tasks:
        seen: list[bytes] = []

        async def read() -> None:
            seen.append(await child.read_stdout())

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        await child.stop(eof_grace=0, term_grace=20)
        await anyio.wait_all_tasks_blocked()
        assert seen == [b""]


async def test_stopping_twice_is_stopping_once() -> None:
    async with running(spec("sleep", "1000")) as child:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(lambda: child.stop(eof_grace=0.05, term_grace=20))
        assert await child.stop(eof_grace=20, term_grace=20) == []
        assert child.exit == Exit(None, signal.SIGTERM)


async def test_a_stop_that_is_cancelled_is_finished_all_the_same() -> None:
    async with running(python(STUBBORN + FOREVER)) as child:
        await line(child)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await child.stop(eof_grace=0.05, term_grace=0.05)
        assert child.exit == Exit(None, signal.SIGKILL)


async def test_nothing_stays_behind_no_zombie_and_no_descriptor() -> None:
    before = open_descriptors()
    for _ in range(3):
        async with running(spec("sh", "-c", "sleep 1000 & echo; wait")) as child:
            await line(child)
        assert processes.birth(child.pid) is None
    assert open_descriptors() == before


ADOPTING = """
import anyio, os, sys
from acphost.transport import processes
from acphost.transport.child import ChildSpec, spawn

async def main():
    assert processes.set_subreaper()
    script = "setsid sh -c 'echo up; exec sleep 1000' & exec sleep 1000"
    argv = ["sh", "-c", script]
    child = spawn(ChildSpec(argv=argv, cwd="/", env=os.environ, launch_id="launch_x"))
    await child.read_stdout()
    assert await child.stop(eof_grace=0, term_grace=0) == []
    try:
        print(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("none left")

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to us")
async def test_dead_orphans_that_were_handed_to_us_are_collected() -> None:
    """In a process of its own, since there is no way back from being a subreaper."""
    what = python(ADOPTING)
    root = Path(acphost.__file__).parents[1]
    async with running(replace(what, env={**what.env, "PYTHONPATH": str(root)})) as child:
        assert await everything(child.read_stdout) == b"none left\n", await child.read_stderr()


# -- what an earlier daemon left ------------------------------------------------------------------


def launch_of(child: Child) -> Launch:
    return Launch(child.launch_id, child.pid, child.birth, child.pgid, processes.boot_id())


async def test_a_recorded_launch_is_ended_with_all_it_started() -> None:
    code = LAUNCHER.format(code=STUBBORN + FOREVER, options={"start_new_session": True})
    async with running(python(code + FOREVER)) as child:
        grandchild = process(int(await line(child)))
        assert await processes.end_launch(launch_of(child), term_grace=0.05) == []
        assert not processes.is_alive(grandchild)
        assert (await child.wait()).signal is not None


@pytest.mark.parametrize(
    "as_recorded",
    [
        lambda launch: launch._replace(birth="1", launch_id="launch_other"),
        lambda launch: launch._replace(boot_id="another boot"),
    ],
    ids=["reused pid", "before the last boot"],
)
async def test_a_stranger_with_a_recorded_pid_is_left_alone(
    as_recorded: Callable[[Launch], Launch],
) -> None:
    async with running(spec("cat")) as child:
        assert await processes.end_launch(as_recorded(launch_of(child)), term_grace=0) == []
        await child.write(b"alive\n")
        assert await line(child) == b"alive"


async def test_a_signal_reaches_exactly_the_process_that_was_meant() -> None:
    async with running(spec("cat")) as child:
        stranger = Process(child.pid, "1")
        assert not processes.send(stranger, signal.SIGKILL)
        await processes.wait_gone([stranger], 20)
        assert child.exit is None
        assert processes.send(Process(child.pid, child.birth), signal.SIGKILL)
        assert await child.wait() == Exit(None, signal.SIGKILL)


# -- what cannot be started -----------------------------------------------------------------------


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    def make(text: str, mode: int = 0o755) -> str:
        path = tmp_path / "agent"
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return make


async def test_a_missing_interpreter_is_not_a_missing_program(script: Callable[..., str]) -> None:
    for words in ("/no/such/interpreter -x", "/usr/bin/env nodexyz", "/usr/bin/env -S nodexyz"):
        with pytest.raises(AgentUnavailableError) as caught:
            spawn(spec(script(f"#! {words}\n")))
        assert caught.value.details["interpreter"] in {"/no/such/interpreter", "nodexyz"}


async def test_a_script_without_a_first_line_for_the_system_is_told(
    script: Callable[..., str],
) -> None:
    with pytest.raises(AgentUnavailableError) as caught:
        spawn(spec(script("echo hello\n")))
    assert "#!" in str(caught.value)


async def test_no_descriptors_left_is_survived() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = open_descriptors()
    held: list[int] = []
    for spare in range(6):
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        try:
            held += _all_descriptors()
            for _ in range(spare):
                os.close(held.pop())
            with pytest.raises(AgentUnavailableError) as caught:
                spawn(spec("/bin/cat"))
            assert "too many files" in str(caught.value)
        finally:
            for descriptor in held:
                os.close(descriptor)
            held.clear()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert open_descriptors() == before


def _all_descriptors() -> list[int]:
    taken: list[int] = []
    while True:
        try:
            taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            return taken


async def test_an_argument_no_program_can_be_given_is_refused() -> None:
    with pytest.raises(AgentUnavailableError):
        spawn(spec("cat", "a\0b"))
    with pytest.raises(AgentUnavailableError):
        spawn(spec("cat", "x" * 10_000_000))
