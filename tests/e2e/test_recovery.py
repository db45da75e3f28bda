"""kill -9 of the daemon, at every phase: what was accepted is kept, what is unknown is said."""

import itertools
import json
import os
import resource
import signal
import sqlite3
import sys
from typing import Any

import anyio
import pytest

from acphost.client.client import Client
from acphost.errors import ConflictError, ConnectionLostError
from acphost.transport import cgroups
from acphost.wire.host import Run
from tests.support import uncontained
from tests.support.config import STUBBORN, Table
from tests.support.daemon import Daemon, eventually, is_alive, payload, running_daemon, started
from tests.support.terminal import Finished, acphost

pytestmark = pytest.mark.anew

GATED = """
ON prompt "go on"
    MSG "ok"
ON prompt
    CALL c1 in_progress
    MSG "half "
    MARK ${DIR}/begun
    GATE ${DIR}/go
    UPD c1 completed
    MSG "whole"
"""


async def interrupted_run(daemon: Daemon) -> tuple[str, Run]:
    """A session whose run was cut by a kill -9 of the daemon, and then started again."""
    session = await daemon.session()
    run = await daemon.send(session, "work")
    await daemon.marked("begun")
    await daemon.has_event(session, "message.delta")
    await daemon.restart()
    return session, await daemon.run(run)


async def test_a_run_in_flight_is_interrupted_and_never_sent_again() -> None:
    """Its outcome is unknown; what came is kept; the queue is held until somebody says so."""
    async with running_daemon(GATED) as daemon:
        session, run = await interrupted_run(daemon)

        assert (run.status, run.error_code) == ("interrupted", "host_restarted")
        assert await daemon.text(run) == "half "
        kinds = await daemon.kinds(run)
        assert kinds[-2:] == ["tool.failed", "run.interrupted"]
        (abandoned,) = await daemon.events(run, "tool.failed")
        assert abandoned.synthetic
        seen = await daemon.get(session)
        assert (seen.status, seen.status_reason) == ("held", "host_restarted")
        assert run.recovery is not None
        assert run.recovery.was_running
        active = await daemon.client.active_run(session)
        assert active.run is not None
        assert active.run.host_run_id == run.host_run_id
        assert daemon.prompts() == ["work"]


async def test_the_next_message_loads_the_agents_session() -> None:
    """A new send ends the hold; the new process is given the old session, and remembers."""
    script = GATED.replace('    MSG "ok"', "    RECALL first")
    script = 'INIT {"agentCapabilities": {"sessionCapabilities": {"resume": null}}}\n' + script
    async with running_daemon(script) as daemon:
        session, run = await interrupted_run(daemon)
        after = await daemon.ask(session, "go on")

        assert (after.status, after.continuity) == ("completed", "replay_seen")
        assert await daemon.text(after) == "work"
        assert daemon.prompts() == ["work", "go on"]
        assert len(daemon.heard("session/load")) == 1
        evidence = await daemon.history(session, "evidence")
        assert {payload(each)["sessionUpdate"] for each in evidence} >= {"user_message_chunk"}
        await daemon.client.dismiss(run.host_run_id)


async def test_a_person_at_a_terminal_sees_what_was_cut_and_decides() -> None:
    """`acphost recover`: what was asked, the last event, files; tried again, or dismissed."""
    call = {
        "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit", "kind": "edit",
        "locations": [{"path": "/tmp/notes.txt"}],
    }  # fmt: skip
    script = f"""
ON prompt "edit"
    UPDATE {json.dumps(call)}
    MSG "half"
    STAY
ON prompt
    MSG "ok"
"""
    async with running_daemon(script) as daemon:

        async def say(*words: str) -> Finished:
            done = await acphost(daemon.socket, *words, cwd=daemon.work)
            assert done.code == 0, done.err
            return done

        assert "no run" in (await say("recover")).err
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        await daemon.has_event(session, "message.delta")
        await daemon.restart()

        shown = await say("recover")
        assert run.host_run_id[-8:] in shown.out
        for word in ("host_restarted", "edit", "message.delta", "/tmp/notes.txt"):
            assert word in shown.out, shown.out
        assert "/tmp/notes.txt" in (await say("status", session)).out
        assert "acphost recover" in (await say("queue", session)).err
        (told,) = json.loads((await say("recover", session, "--json")).out)["items"]
        assert told["recovery"]["filesTouched"] == ["/tmp/notes.txt"]

        daemon.rewrite('ON prompt\n    MSG "ok"\n')
        tried = await say("recover", run.host_run_id, "resume", "--with-history")
        assert "is tried again as run_" in tried.out
        child = await daemon.client.run(tried.out.split()[-1])
        assert (await daemon.wait(child)).status == "completed"
        assert child.parent_run_id == run.host_run_id
        assert "no run" in (await say("recover")).err


async def test_a_person_dismisses_a_cut_run_at_a_terminal() -> None:
    """Named by its session; afterwards there is nothing to decide, and the session is idle."""
    async with running_daemon(GATED) as daemon:
        session, _ = await interrupted_run(daemon)
        done = await acphost(daemon.socket, "recover", session, "dismiss", cwd=daemon.work)

        assert (done.code, "is over" in done.out) == (0, True), done.err
        assert (await daemon.get(session)).status == "idle"
        again = await acphost(daemon.socket, "recover", session, "dismiss", cwd=daemon.work)
        assert again.code == 1
        assert "no run of unknown outcome" in again.err
        assert (await acphost(daemon.socket, "recover", "--json")).out.strip()


async def test_dismissing_the_unknown_outcome() -> None:
    """Once a person has taken note there is nothing active, and the session is idle."""
    async with running_daemon(GATED) as daemon:
        session, run = await interrupted_run(daemon)
        dismissed = await daemon.client.dismiss(run.host_run_id)
        again = await daemon.client.dismiss(run.host_run_id)

        assert dismissed.dismissed_at is not None
        assert dismissed.recovery is None
        assert again.dismissed_at == dismissed.dismissed_at
        assert (await daemon.client.active_run(session)).run is None
        assert (await daemon.get(session)).status == "idle"
        after = await daemon.ask(session, "go on")
        with pytest.raises(ConflictError):
            await daemon.client.dismiss(after.host_run_id)


async def test_what_waits_keeps_its_place() -> None:
    """Pending runs survive in order; after a release they run, each of them once."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        await daemon.send(session, "work")
        await daemon.marked("begun")
        waiting = [await daemon.send(session, f"go on {n}") for n in range(3)]
        await daemon.restart()

        queue = await daemon.queue(session)
        assert [item.run_id for item in queue] == [run.host_run_id for run in waiting]
        assert {item.held_reason for item in queue} == {"host_restarted"}
        assert daemon.prompts() == ["work"]
        await daemon.client.queue_release(session)
        for run in waiting:
            assert (await daemon.wait(run)).status == "completed"
        assert daemon.prompts() == ["work", "go on 0", "go on 1", "go on 2"]


async def test_a_head_that_was_being_made_ready_stays_the_head() -> None:
    """Killed while the agent was starting: the prompt was never sent, and waits."""
    script = "ON new ONCE\n    MARK ${DIR}/new\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "first")
        await daemon.send(session, "second")
        await daemon.marked("new")
        daemon.rewrite("")
        await daemon.restart()

        assert (await daemon.run(run)).status == "pending"
        assert (await daemon.get(session)).status == "held"
        await daemon.ask(session, "third")
        assert daemon.prompts() == ["first", "second", "third"]


async def test_a_start_without_a_prompt_that_was_cut() -> None:
    """Killed while `start: true` was under way: afterwards the session is idle, not starting."""
    script = "ON new ONCE\n    MARK ${DIR}/new\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session(start=True)
        await daemon.marked("new")
        await daemon.is_status(session, "starting")
        daemon.rewrite("")
        await daemon.restart()

        assert (await daemon.get(session)).status == "idle"
        assert (await daemon.ask(session, "q")).status == "completed"


async def test_a_stop_that_was_not_confirmed() -> None:
    """Killed between the stop and its end: `cancel_unconfirmed`, as nobody knows."""
    script = GATED + "ON cancel KEEP\n    MARK ${DIR}/told\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "work")
        await daemon.marked("begun")
        await daemon.cancel(run)
        await daemon.marked("told")
        await daemon.restart()

        ended = await daemon.run(run)
        assert (ended.status, ended.error_code) == ("interrupted", "cancel_unconfirmed")


async def test_an_open_question_is_withdrawn() -> None:
    """Nobody waits for its answer any more; it is not pending after the restart."""
    script = "ON prompt\n    PERM c1 a:allow_once d:reject_once\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "work")
        await daemon.question(session)
        await daemon.restart()

        assert await daemon.questions(session) == []
        (expired,) = await daemon.questions(session, "expired")
        assert expired.host_run_id == run.host_run_id
        assert (await daemon.get(session)).status == "held"


async def test_a_hold_of_a_person_survives() -> None:
    """Held before the crash, held after it, with the person's reason."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        await daemon.client.queue_hold(session, "lunch")
        run = await daemon.send(session, "go on")
        await daemon.restart()

        seen = await daemon.get(session)
        assert seen.status == "held"
        assert seen.status_reason is not None
        assert "lunch" in seen.status_reason
        assert (await daemon.run(run)).status == "pending"


async def test_an_idle_session_loses_its_binding_only() -> None:
    """Nothing was at work: nothing is held, and the next prompt goes on by load."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "go on")
        await daemon.restart()

        assert (await daemon.get(session)).status == "idle"
        (lost,) = await daemon.history(session, "binding.lost")
        assert payload(lost)["reason"] == "the daemon was restarted"
        assert (await daemon.status(session)).acp.live_binding is None  # type: ignore[union-attr]
        after = await daemon.ask(session, "go on again")
        assert after.continuity in ("resumed", "replay_seen")


async def test_recovery_twice_is_recovery_once() -> None:
    """A second restart, with nothing in between, changes nothing in the session."""
    async with running_daemon(GATED) as daemon:
        session, run = await interrupted_run(daemon)
        before = await daemon.get(session)
        await daemon.restart()
        await daemon.restart()

        assert (await daemon.get(session)).last_seq == before.last_seq
        assert (await daemon.run(run)).status == "interrupted"


async def test_a_message_that_was_repeated_after_the_crash_runs_once() -> None:
    """The client never heard that it was accepted, asks again under its id, gets the same run."""
    async with running_daemon(GATED) as daemon:
        session, run = await interrupted_run(daemon)
        again = await daemon.send(session, "work")

        assert again.host_run_id == run.host_run_id
        assert again.status == "interrupted"
        assert daemon.prompts() == ["work"]


async def test_killed_after_every_answer_something_is_accepted_for_good() -> None:
    """Whatever the client was told is there after the kill, and reaches the agent at most once."""
    async with running_daemon('ON prompt\n    MSG "ok"\n') as daemon:
        session = await daemon.session()
        accepted: list[str] = []
        number = itertools.count()

        async def press(client: Client) -> None:
            for _ in range(1000):
                run = await client.create_run(f"m{next(number)}", session_id=session)
                accepted.append(run.host_run_id)

        for _ in range(2):
            count = len(accepted)
            with anyio.move_on_after(10) as scope:
                async with daemon.connect(patience=0) as client, anyio.create_task_group() as tasks:
                    tasks.start_soon(_ignoring_loss, press, client)
                    await eventually(lambda count=count: len(accepted) >= count + 20)  # type: ignore[misc]
                    await daemon.kill()
            assert not scope.cancelled_caught
            await daemon.start()

        for run_id in accepted:
            assert (await daemon.client.run(run_id)).host_run_id == run_id
        sent = daemon.prompts()
        assert len(sent) == len(set(sent))


async def _ignoring_loss(work: object, client: Client) -> None:
    try:
        await work(client)  # type: ignore[operator]
    except ConnectionLostError:
        return


async def test_agents_of_a_killed_daemon_are_ended_at_the_next_start() -> None:
    """Three ignore the end of their input, and TERM, and what they started left their groups."""
    script = """
IGNORE TERM
ON prompt
    SPAWN ${DIR}/far-${PROMPT} setsid ignore-term hold
    MARK ${DIR}/begun-${PROMPT}
    GATE ${DIR}/never
ON eof
    STAY
"""
    async with running_daemon(script, agent={**STUBBORN, "process": "per_session"}) as daemon:
        for name in ("x", "y", "z"):
            await daemon.send(await daemon.session(), name)
            await daemon.marked(f"begun-{name}")
        agents = daemon.launches()
        assert len(agents) == 3
        family = [*agents, *[int(await daemon.marked(f"far-{name}")) for name in "xyz"]]
        await daemon.kill()
        assert all(map(is_alive, family))
        await daemon.start()

        assert not any(map(is_alive, family))


@pytest.mark.skipif(
    cgroups.home() is None,
    reason="control groups: this machine lets us make none (cgroup v2 is read-only or absent)",
)
async def test_what_shed_every_mark_is_ended_at_the_next_start() -> None:
    """It threw its environment away, left the group and lost its parent; the daemon was killed."""
    shed = '(env -i setsid sh -c \'echo $$ >"$0"; exec sleep 1000\' "$DIR/stray" &)'

    def prepare(daemon: Daemon) -> None:
        command = ["sh", "-c", f'{shed}; exec "$@"', "sh", *daemon.command()]
        daemon.configure(agent={"command": command})

    async with running_daemon(prepare=prepare) as daemon:
        session = await daemon.session()
        assert (await daemon.ask(session, "hi")).status == "completed"
        stats: Any = await daemon.client.stats()
        assert stats["containment"] == "cgroup"
        await daemon.marked("stray")
        await eventually(lambda: daemon.path("stray").read_text().endswith("\n"))
        stray = int(daemon.path("stray").read_text())
        (group,) = daemon.control_groups()
        await daemon.kill()
        assert is_alive(stray)
        await daemon.start()

        assert not is_alive(stray)
        assert not group.exists()


SHEDS = """
import os, subprocess, sys
stray = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={})
open(os.environ["DIR"] + "/stray", "w").write(str(stray.pid))
sys.exit(subprocess.call(sys.argv[1:]))
"""


def shedding(daemon: Daemon) -> None:
    """Its agent is below a launcher that starts something with no mark, in a session of its own.

    There are no control groups either, which would tell.
    """
    daemon.wrapper = [sys.executable, uncontained.__file__, *daemon.wrapper]
    (daemon.folder / "launcher.py").write_text(SHEDS)
    launcher = [sys.executable, str(daemon.folder / "launcher.py"), *daemon.command()]
    daemon.configure(agent={"command": launcher})


def ledgered(daemon: Daemon) -> list[int]:
    """The pids of what was seen to come of launches that have not ended."""
    asked = "SELECT descendants FROM processes WHERE ended_at IS NULL"
    told = [row["descendants"] or "[]" for row in daemon.journal.query(asked)]
    return [pid for each in told for pid, _, _ in json.loads(each)]


async def test_what_was_seen_to_come_of_an_agent_is_ended_at_the_next_start() -> None:
    """No mark, no group of its launch, its parent gone: the ledger has its pid and birth."""
    async with running_daemon(GATED, prepare=shedding) as daemon:
        await daemon.ask(await daemon.session(), "go on")
        stray = int(daemon.path("stray").read_text())
        (agent,) = daemon.launches()
        await eventually(lambda: {stray, agent} <= set(ledgered(daemon)))
        await daemon.kill()
        await eventually(lambda: not is_alive(agent))
        assert is_alive(stray)
        await daemon.start()

        assert not is_alive(stray)
        assert ledgered(daemon) == []


async def test_without_descriptors_the_ledger_is_not_brought_up_to_date() -> None:
    """There is none left to look at the system with: told in the log, and nothing ends for it."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "work")
        await daemon.marked("begun")
        soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, hard))
        daemon.open("go")
        assert (await daemon.wait(run)).status == "completed"
        await eventually(lambda: "descendants_not_seen" in daemon.log())
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (soft, hard))

        assert (await daemon.ask(session, "go on")).status == "completed"


async def test_a_stranger_with_the_pid_of_a_ledgered_descendant_lives() -> None:
    """Its birth is another: no signal, and it is shown as nobody's."""
    stranger = started(sys.executable, "-c", "import signal; signal.pause()")
    try:
        async with running_daemon(GATED, prepare=shedding) as daemon:
            await daemon.ask(await daemon.session(), "go on")
            stray = int(daemon.path("stray").read_text())
            await eventually(lambda: stray in ledgered(daemon))
            await daemon.kill()
            os.kill(stray, signal.SIGKILL)
            with sqlite3.connect(daemon.journal.path) as journal:
                journal.execute(
                    "UPDATE processes SET descendants = ?", (f'[[{stranger.pid},"1",1]]',)
                )
            journal.close()
            await daemon.start()

            assert stranger.poll() is None
            assert await daemon.client.processes() == []
    finally:
        stranger.kill()
        stranger.communicate()


async def test_what_an_agent_left_when_it_died_is_ended_with_it() -> None:
    """The launcher is killed: what it had started without a mark has nobody left to tell of it."""
    async with running_daemon(GATED, prepare=shedding) as daemon:
        await daemon.ask(await daemon.session(), "go on")
        stray = int(daemon.path("stray").read_text())
        await eventually(lambda: stray in ledgered(daemon))
        (record,) = await daemon.client.processes()
        assert record.pid is not None
        assert stray in record.left_group
        os.kill(record.pid, signal.SIGKILL)

        await eventually(lambda: not is_alive(stray))
        await eventually(lambda: ledgered(daemon) == [])


async def test_a_stranger_with_a_recorded_pid_lives() -> None:
    """The ledger names a pid that somebody else has by now: birth and mark differ, no signal."""
    stranger = started(sys.executable, "-c", "import signal; signal.pause()")
    try:
        async with running_daemon(GATED) as daemon:
            session = await daemon.session()
            await daemon.ask(session, "go on")
            await daemon.kill()
            for pid in daemon.launches():
                os.kill(pid, signal.SIGKILL)
            with sqlite3.connect(daemon.journal.path) as journal:
                journal.execute(
                    "UPDATE processes SET pid = ?, pgid = ?", (stranger.pid, stranger.pid)
                )
            journal.close()
            await daemon.start()

            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()


CONTINUE: Table = {"queue": {"on_interrupted": "continue"}}


async def test_what_waits_goes_on_by_itself_where_that_is_configured() -> None:
    """`on_interrupted = "continue"`: the cut run stays unknown and is not sent again."""
    async with running_daemon(GATED, host=CONTINUE) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "work")
        await daemon.marked("begun")
        waiting = [await daemon.send(session, f"go on {n}") for n in range(3)]
        await daemon.restart()

        for each in waiting:
            assert (await daemon.wait(each)).status == "completed"
        assert daemon.prompts() == ["work", "go on 0", "go on 1", "go on 2"]
        cut = await daemon.run(run)
        assert cut.status == "interrupted"
        assert cut.recovery is not None
        assert (await daemon.get(session)).status == "held"
        assert not await daemon.history(session, "queue.held")


async def test_what_waits_goes_on_after_a_stop_of_the_daemon_where_that_is_configured() -> None:
    """The drain is over before the run: nothing further starts, until the next daemon does."""
    async with running_daemon(GATED, host=CONTINUE) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "work")
        await daemon.marked("begun")
        waiting = await daemon.send(session, "go on")
        await daemon.stop()
        assert daemon.prompts() == ["work"]
        await daemon.start()

        assert (await daemon.wait(waiting)).status == "completed"
        assert (await daemon.run(run)).error_code == "host_shutdown"
        assert daemon.prompts() == ["work", "go on"]


async def test_where_it_goes_on_a_session_with_nothing_waiting_is_held() -> None:
    """Nobody knows what became of the run: that is never called idle."""
    async with running_daemon(GATED, host=CONTINUE) as daemon:
        session, run = await interrupted_run(daemon)

        assert (await daemon.get(session)).status == "held"
        assert (await daemon.ask(session, "go on")).status == "completed"
        await daemon.client.dismiss(run.host_run_id)
        assert (await daemon.get(session)).status == "idle"


async def test_where_it_goes_on_a_person_has_the_last_word() -> None:
    """Held by hand, to be held after the run, or stopped: what waits is not sent by itself."""
    script = GATED + "ON cancel KEEP\n    MARK ${DIR}/told\n"
    async with running_daemon(script, host=CONTINUE) as daemon:
        held, after, stopped = [await daemon.session() for _ in range(3)]
        runs = [
            await daemon.send(held, "work"),
            await daemon.send(after, "work", holdAfter=True),
            await daemon.send(stopped, "work"),
        ]
        for run in runs:
            await daemon.has_event(run.session_id, "message.delta")
        for session in (held, after, stopped):
            await daemon.send(session, "go on")
        await daemon.client.queue_hold(held, "lunch")
        await daemon.client.cancel(runs[2].host_run_id)
        await daemon.marked("told")
        await daemon.restart()

        reasons = [(await daemon.get(each)).status_reason for each in (held, after, stopped)]
        assert reasons == ["user: lunch", "user: holdAfter", "cancel_unconfirmed"]
        assert daemon.prompts() == ["work"] * 3
