"""Agent processes as they are shown, and how a person ends them."""

import json
import os
import sys

import pytest

from tests.support.config import STUBBORN
from tests.support.daemon import Daemon, eventually, facts, is_alive, payload, running_daemon
from tests.support.terminal import Finished, acphost

pytestmark = pytest.mark.anew

SCRIPT = """
ON prompt ~"stay$"
    MSG "a"
    MARK ${DIR}/staying
    STAY
ON prompt "ask"
    CALL c1 pending kind=edit
    PERM c1 yes:allow_once no:reject_once
    MSG "decided"
ON prompt
    MSG "an answer"
"""
#: A launcher that starts the agent below it, and one more that leaves its group.
LAUNCHER = """\
import os, subprocess, sys
away = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(os.environ["DIR"] + "/away", "w").write(str(away.pid))
sys.exit(subprocess.call(sys.argv[1:]))
"""


#: The system counts the births of processes in these.
A_TICK = 20


async def say(daemon: Daemon, *words: str) -> Finished:
    return await acphost(daemon.socket, *words, cwd=daemon.work)


async def test_an_agent_with_what_it_started() -> None:
    """The launcher, the agent below it, and a grandchild that made a session of its own."""

    def prepare(daemon: Daemon) -> None:
        (daemon.folder / "launcher.py").write_text(LAUNCHER)
        command = [sys.executable, str(daemon.folder / "launcher.py"), *daemon.command()]
        daemon.configure(agent={"command": command})

    async with running_daemon(SCRIPT, prepare=prepare) as daemon:
        assert await daemon.client.processes() == []
        session = await daemon.session()
        await daemon.ask(session, "hello")
        away = int(daemon.path("away").read_text())
        (record,) = await daemon.client.processes()
        (agent,) = daemon.launches()

        assert (record.agent_id, record.state, record.session_ids) == ("fake", "live", [session])
        assert record.pid not in (None, agent)
        assert (record.memory_bytes or 0) > 1_000_000
        assert 0 <= record.age_ms < 60_000
        below = {each.pid: each for each in record.descendants}
        assert set(below) == {agent, away}
        assert below[away].command == "sleep 1000"
        assert below[away].memory_bytes > 0
        assert all(0 <= each.age_ms <= record.age_ms + A_TICK for each in below.values())
        assert record.left_group == [away]
        (same,) = await daemon.client.processes(session)
        assert same.launch_id == record.launch_id

        shown = await say(daemon, "ps")
        assert str(record.pid) in shown.out
        assert "own group" in next(line for line in shown.out.splitlines() if str(away) in line)
        assert "1 agent, 2 processes below them" in shown.err
        listed = json.loads((await say(daemon, "ps", "--json")).out)["items"]
        assert [each["launchId"] for each in listed] == [record.launch_id]

        killed = await say(daemon, "ps", "--kill", session)
        assert killed.code == 0, killed.err
        assert str(record.pid) in killed.out
        assert not any(map(is_alive, [record.pid or 0, agent, away]))
        assert await daemon.client.processes() == []
        again = await daemon.ask(session, "hello again")
        assert (again.status, again.continuity) == ("completed", "resumed")


async def test_another_session_has_none() -> None:
    """Asked for one session, only its processes are told."""
    async with running_daemon(SCRIPT) as daemon:
        session, other = await daemon.session(), await daemon.session()
        await daemon.ask(session, "hello")

        assert len(await daemon.client.processes(session)) == 1
        served = await daemon.client.processes(other)
        assert [each.session_ids for each in served] in ([], [[session]])


async def test_what_a_dead_daemon_left_is_gone_at_the_next_start() -> None:
    """An agent that ignores everything; a process that only has its old pid lives on."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.send(session, "stay")
        await daemon.marked("staying")
        (agent,) = daemon.launches()
        await daemon.restart()

        await eventually(lambda: not is_alive(agent))
        assert await daemon.client.processes() == []
        assert is_alive(os.getpid())


# -- ending a run, or a session's agent -----------------------------------------------------------


async def test_killing_a_run_of_an_agent_that_does_not_obey() -> None:
    """Asked first, then by force; the queue goes on with another process."""
    script = SCRIPT + 'ON cancel KEEP\n    NOTE "I heard it"\n'
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "stay")
        after = await daemon.send(session, "after")
        await daemon.marked("staying")
        killed = await say(daemon, "ps", "--kill", run.host_run_id)

        assert (killed.code, "cancelled" in killed.out) == (0, True), killed.err
        (ended,) = await daemon.events(run, "run.cancelled")
        assert facts(ended)["forced"] is True
        assert (await daemon.wait(after)).status == "completed"
        assert len(daemon.launches()) == 2


async def test_a_reset_ends_the_binding_and_keeps_the_queue() -> None:
    """The run is cancelled with its reason, the agent is gone, what waited goes on cold."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hello")
        run = await daemon.send(session, "stay")
        after = await daemon.send(session, "after")
        await daemon.marked("staying")
        (agent,) = daemon.launches()
        reset = await daemon.client.reset(session)

        assert (reset.session_id, reset.next, reset.queued) == (session, "cold", 1)
        assert reset.closed.pid == agent
        assert not is_alive(agent)
        ended = await daemon.wait(run)
        assert (ended.status, ended.error_code) == ("cancelled", "runtime_reset")
        assert await daemon.text(run) == "a"
        went_on = await daemon.wait(after)
        assert (went_on.status, went_on.continuity) == ("completed", "cold_resumed")
        kinds = [event.kind for event in await daemon.history(session)]
        assert kinds.index("run.cancelled") < kinds.index("binding.closed")
        assert kinds.index("binding.closed") < kinds.index("session.reset")
        (told,) = await daemon.history(session, "session.reset")
        assert payload(told)["closed"] == {"binding": reset.closed.binding, "pid": agent}
        assert not daemon.heard("session/resume")
        assert not daemon.heard("session/load")


async def test_a_reset_withdraws_questions() -> None:
    """Nobody waits for their answers any more; with `continue` the agent's session goes on."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "ask")
        await daemon.question(session)
        reset = await daemon.client.reset(session, next="continue")

        assert reset.closed.pid is not None
        assert (await daemon.wait(run)).error_code == "runtime_reset"
        (question,) = await daemon.questions(session, "expired")
        assert question.outcome is None
        assert (await daemon.get(session)).status == "idle"
        assert (await daemon.ask(session, "hello")).status == "completed"
        assert len(daemon.heard("session/resume")) == 1


async def test_a_reset_without_an_agent() -> None:
    """There is nothing to end, and the session works as before."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        reset = await daemon.client.reset(session)

        assert (reset.closed.binding, reset.closed.pid, reset.queued) == (None, None, 0)
        assert (await daemon.ask(session, "hello")).status == "completed"


async def test_a_reset_breaks_off_a_start_that_hangs() -> None:
    """The agent never answers `session/new`; the run that waits for it gets another process."""
    script = SCRIPT + "ON new\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hello")
        await daemon.hears("session/new")
        reset = await daemon.client.reset(session)
        await daemon.hears("session/new", 2)
        daemon.open("go")

        assert (reset.closed.pid, reset.queued) == (None, 1)
        assert (await daemon.wait(run)).status == "completed"
        assert daemon.prompts() == ["hello"]


async def test_a_process_that_serves_others_after_a_reset_is_alive() -> None:
    """Nobody new comes to it, and it ends with the last of those who are in it."""
    async with running_daemon(SCRIPT, agent={"process": "shared"}) as daemon:
        one, two = await daemon.session(), await daemon.session()
        await daemon.ask(one, "hello")
        await daemon.ask(two, "hello")
        await daemon.client.reset(one)

        (record,) = await daemon.client.processes()
        assert (record.state, record.session_ids) == ("live", [two])
        assert (await daemon.ask(two, "again")).status == "completed"
