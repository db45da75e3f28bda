"""An agent that dies: told at once, with its last words; what it had answered counts."""

import os
import shlex
import signal
from datetime import datetime

from tests.support.config import STUBBORN
from tests.support.daemon import eventually, is_alive, payload, running_daemon
from tests.support.terminal import acphost


async def test_it_dies_in_mid_turn() -> None:
    """Interrupted at once, with exit code and stderr; the queue is held; the next send goes on."""
    script = """
ON prompt "die"
    MSG "a"
    ERR "panic: x\\n"
    EXIT 3
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "die")
        after = await daemon.ask(session, "q")

        assert (run.status, run.error_code) == ("interrupted", "agent_exited")
        assert run.error is not None
        assert "code 3" in run.error
        (ended,) = await daemon.events(run, "run.interrupted")
        assert payload(ended)["exitCode"] == 3
        assert "panic: x" in payload(ended)["stderr"]
        (said,) = await daemon.events(run, "message.delta")
        took = datetime.fromisoformat(ended.created_at) - datetime.fromisoformat(said.created_at)
        assert took.total_seconds() < 1
        assert await daemon.text(run) == "a"
        assert after.status == "completed"
        assert daemon.prompts() == ["die", "q"]


async def test_what_waits_goes_on_after_a_death_where_that_is_configured() -> None:
    """`on_interrupted = "continue"`: the next run gets another process, the cut one nothing."""
    script = 'ON prompt "die"\n    MARK ${DIR}/begun\n    GATE ${DIR}/go\n    EXIT 3\n'
    async with running_daemon(script, host={"queue": {"on_interrupted": "continue"}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "die")
        await daemon.marked("begun")
        after = await daemon.send(session, "q")
        daemon.open("go")

        assert (await daemon.wait(after)).status == "completed"
        assert (await daemon.run(run)).status == "interrupted"
        assert daemon.prompts() == ["die", "q"]


async def test_it_dies_with_all_kinds_of_things_open() -> None:
    """A question, a form, a command, a call: all are closed, and its session goes on elsewhere."""
    form = '{"sessionId": "${SESSION}", "mode": "form", "message": "?", "requestedSchema": {}}'
    command = (
        '{"sessionId": "${SESSION}", "command": "sh",'
        ' "args": ["-c", "echo $$ > new; mv new pid; exec sleep 300"]}'
    )
    script = f"""
ON prompt "die"
    CALL c1 in_progress title=Dig kind=execute
    PERM c1 yes:allow_once no:reject_once nowait
    ASK elicitation/create {form} nowait
    ASK terminal/create {command}
    GATE ${{DIR}}/go
    EXIT 3
ON prompt "recall"
    RECALL first
"""
    async with running_daemon(script, host={"terminals": {"run": "allow"}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "die")
        pid = int(await daemon.marked("work/pid"))
        await daemon.has_event(session, "elicitation.requested")
        daemon.open("go")
        ended = await daemon.wait(run)

        assert (ended.status, ended.error_code) == ("interrupted", "agent_exited")
        await eventually(lambda: not is_alive(pid))
        assert {each.status for each in await daemon.questions(session, "all")} == {"expired"}
        (closed,) = await daemon.events(run, "tool.failed")
        assert closed.synthetic
        assert (await daemon.get(session)).status == "held"
        again = await daemon.ask(session, "recall")
        assert again.continuity in ("resumed", "replay_seen")
        assert await daemon.text(again) == "die"


async def test_its_last_words_are_never_missing() -> None:
    """Deaths at once in several sessions: code and stderr are always both there."""
    script = 'ON prompt\n    ERR "panic: x\\n"\n    EXIT 3\n'
    restart = {"limit": 100, "window": 1}
    async with running_daemon(script, agent={"process": "per_session", "restart": restart}) as d:
        runs = [await d.send(await d.session(), "die") for _ in range(4)]
        for run in runs:
            await d.wait(run)
            (ended,) = await d.events(run, "run.interrupted")
            assert (payload(ended)["exitCode"], payload(ended)["stderr"]) == (3, "panic: x")


async def test_it_answers_and_leaves() -> None:
    """A turn whose answer was read is done, whatever the exit code."""
    script = """
ON prompt
    BATCH
        MSG "last"
        END
    EXIT 7
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "q")

        assert run.status == "completed"
        assert await daemon.text(run) == "last"
        await daemon.has_event(session, "binding.lost")
        assert (await daemon.get(session)).status == "idle"


async def test_its_answer_has_no_newline() -> None:
    """The last line counts also when it is not terminated."""
    script = """
ON prompt
    BATCH unterminated
        MSG "last"
        END
    EXIT 0
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "q")

        assert run.status == "completed"
        assert await daemon.text(run) == "last"


async def test_it_closes_its_stdout_and_lives_on() -> None:
    """Nothing can come any more: interrupted, the process is ended, the next prompt works."""
    script = """
ON prompt "close"
    MSG "a"
    CLOSE stdout
    STAY
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "close")
        after = await daemon.ask(session, "q")

        assert run.status == "interrupted"
        assert after.status == "completed"
        assert not is_alive(daemon.launches()[0])


async def test_it_closes_its_stdin_and_talks_on() -> None:
    """A prompt that cannot be written has an end all the same, by a stop at the latest."""
    script = """
ON prompt "close"
    MSG "a"
    MARK ${DIR}/begun
    CLOSE stdin
    STAY
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "close")
        await daemon.marked("begun")
        await daemon.cancel(run)
        await daemon.wait(run)

        assert (await daemon.ask(session, "q")).status == "completed"


async def test_it_is_killed_while_idle() -> None:
    """One restart, the session restored, the prompt sent once."""
    async with running_daemon('ON prompt\n    MSG "ok"\n') as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        os.kill(daemon.launches()[0], signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        after = await daemon.ask(session, "two")

        assert after.status == "completed"
        assert after.continuity in ("resumed", "replay_seen")
        assert len(daemon.launches()) == 2
        assert daemon.prompts() == ["one", "two"]


async def test_it_is_killed_and_the_next_prompt_comes_before_that_is_noticed() -> None:
    """Whichever is first: answered, of unknown outcome, or never heard; and never sent twice."""
    async with running_daemon('ON prompt\n    MSG "ok"\n') as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        os.kill(daemon.launches()[0], signal.SIGKILL)
        after = await daemon.ask(session, "two")

        assert after.status in ("completed", "interrupted", "failed")
        sent = daemon.prompts()
        assert len(sent) == len(set(sent))
        assert after.status != "failed" or sent == ["one"]


async def test_it_leaves_a_child_that_will_not_go() -> None:
    """The next binding is made when nothing of the old one is left, and the old end spares it."""
    script = """
ON prompt "die"
    SPAWN ${DIR}/child ignore-term
    GATE ${DIR}/child
    EXIT 1
ON prompt
    MSG "ok"
    MARK ${DIR}/begun
    GATE ${DIR}/go
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session = await daemon.session()
        died = await daemon.ask(session, "die")
        child = int(await daemon.marked("child"))
        run = await daemon.send(session, "q")
        await daemon.marked("begun")
        await eventually(lambda: not is_alive(child))
        daemon.open("go")
        ended = await daemon.wait(run)

        assert died.status == "interrupted"
        assert ended.status == "completed"
        assert len(await daemon.history(session, "binding.lost")) == 1


async def test_a_launcher_that_ignores_everything() -> None:
    """`sh -c 'agent & wait'`: what it started is ended with it when the daemon stops."""
    script = """
IGNORE TERM
ON prompt
    SPAWN ${DIR}/child ignore-term
    GATE ${DIR}/child
ON eof
    STAY
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        inner = shlex.join(daemon.command())
        launcher = f"trap '' TERM; exec 3<&0; {inner} <&3 & wait"
        daemon.configure(agent={"command": ["/bin/sh", "-c", launcher]})
        await daemon.restart()
        await daemon.ask(await daemon.session(), "q")
        child = int(await daemon.marked("child"))
        (agent,) = daemon.launches()
        await daemon.stop()

        assert not is_alive(child)
        assert not is_alive(agent)


async def test_an_agent_that_cannot_start_is_not_tried_for_ever() -> None:
    """After the limit it rests: nothing is spawned, the message says until when, and the cure."""
    async with running_daemon("INIT\n", agent={"restart": {"limit": 2, "window": 60}}) as daemon:
        daemon.configure(agent={"command": ["/bin/sh", "-c", "echo x >> $DIR/spawned; exit 1"]})
        await daemon.restart()
        session = await daemon.session()
        runs = [await daemon.ask(session, f"q{n}") for n in range(4)]

        assert {run.status for run in runs} == {"failed"}
        assert {run.error_code for run in runs} == {"agent_unavailable"}
        assert len(daemon.path("spawned").read_text().splitlines()) == 2
        assert runs[3].error is not None
        assert "rests" in runs[3].error
        assert "acphost ps --kill SESSION" in runs[3].error
        assert (await daemon.get(session)).status == "failed"
        agents = {agent.agent_id: agent for agent in (await daemon.client.agents()).agents}
        assert agents["fake"].health.state == "failed"
        assert agents["demo"].health.state == "ready"

        shown = await acphost(daemon.socket, "ps", "--kill", session)
        assert shown.code == 0, shown.err
        assert (await daemon.ask(session, "once more")).status == "failed"
        assert len(daemon.path("spawned").read_text().splitlines()) == 3


async def test_an_agent_that_dies_young_again_and_again_rests_with_its_last_words() -> None:
    """It greets and is gone, each time: at the limit the message says what it said last."""
    script = 'ON new\n    ERR "out of credit\\n"\n    EXIT 4\n'
    async with running_daemon(script, agent={"restart": {"limit": 2, "window": 60}}) as daemon:
        session = await daemon.session()
        *_, last = [await daemon.ask(session, f"q{n}") for n in range(3)]

        assert last.status == "failed"
        assert "rests (the last time: " in (last.error or "")
        assert "exited with code 4; it said last: out of credit" in (last.error or "")
        assert len(daemon.launches()) == 2


async def test_one_send_to_an_agent_that_cannot_start_is_one_spawn() -> None:
    """A run is failed by the first failure: no retry storm, and what waits behind it is kept."""
    async with running_daemon("") as daemon:
        fails = [
            "/bin/sh",
            "-c",
            "echo x >> $DIR/spawned; while ! [ -e $DIR/go ]; do :; done; exit 1",
        ]
        daemon.configure(agent={"command": fails})
        await daemon.restart()
        session = await daemon.session()
        first = await daemon.send(session, "a")
        second = await daemon.send(session, "b")
        daemon.open("go")
        await daemon.wait(first)

        assert len(daemon.path("spawned").read_text().splitlines()) == 1
        assert (await daemon.run(second)).status == "pending"
        assert (await daemon.queue(session))[0].held_reason == "agent_unavailable"
