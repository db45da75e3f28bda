"""A disk that takes its time: what waits for it waits together, and nobody else does."""

import sys
from collections.abc import Callable
from statistics import median

import anyio
import pytest

from tests.support import slow_disk
from tests.support.daemon import Daemon, running_daemon
from tests.support.steps import chunks

pytestmark = pytest.mark.timeout(90)

#: What a good client waits for an answer, or so many times as long as on a quiet disk: the machine
#: may have other things to do.
PROMPT_ANSWER, TIMES = 0.1, 20


def taking(seconds: float) -> Callable[[Daemon], None]:
    """Each commit takes so long."""

    def prepare(daemon: Daemon) -> None:
        count = str(daemon.path("commits"))
        daemon.wrapper = [
            sys.executable, slow_disk.__file__, str(seconds), count, *daemon.wrapper
        ]  # fmt: skip

    return prepare


async def commits(daemon: Daemon) -> int:
    """How many there were so far."""
    return (await anyio.Path(daemon.path("commits")).stat()).st_size


async def test_many_events_are_one_commit_and_nobody_waits_for_it() -> None:
    """3,000 chunks at 20 ms for each commit: in a hundred of them, and the status answers."""
    script = f'ON prompt "flood"\n    GATE ${{DIR}}/go\n{chunks(3_000, 3)}'
    async with running_daemon(script, prepare=taking(0.02)) as daemon, daemon.connect() as other:

        async def ask() -> float:
            began = anyio.current_time()
            await other.ping()
            await other.stats()
            return anyio.current_time() - began

        session = await daemon.session()
        quiet = [await ask() for _ in range(20)]
        run = await daemon.send(session, "flood")
        await daemon.hears("session/prompt")
        before, busy = await commits(daemon), []
        daemon.open("go")
        async with anyio.create_task_group() as tasks:

            async def follow() -> None:
                await daemon.wait(run)
                tasks.cancel_scope.cancel()

            tasks.start_soon(follow)
            while True:
                busy.append(await ask())
        assert len(await daemon.events(run, "message.delta")) == 3_000
        assert await commits(daemon) - before <= 100
        assert median(busy) < max(PROMPT_ANSWER, TIMES * median(quiet))


async def test_a_slow_disk_reaches_the_agent_as_a_pipe_that_is_not_read() -> None:
    """5,000 chunks at 50 ms for each commit: none is lost, and memory stays bounded."""
    script = f'ON prompt "flood"\n{chunks(5_000, 4_000)}'
    async with running_daemon(script, prepare=taking(0.05)) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "warm up")
        before = daemon.memory()
        run = await daemon.ask(session, "flood")

        assert daemon.memory() - before < 40 << 20
        assert run.status == "completed"
        assert len(await daemon.events(run, "message.delta")) == 5_000
