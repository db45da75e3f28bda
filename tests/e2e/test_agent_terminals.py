"""Commands that agents run through the host: answered at once, bounded, ended, and remembered."""

import json
from typing import Any

import pytest

from tests.support.daemon import Daemon, eventually, is_alive, payload, running_daemon

ALLOWED = {"terminals": {"run": "allow"}}


def create(line: str, *, save: str = "created", more: str = "") -> str:
    """A step that starts a command; its id is in ${TERMINAL}."""
    given = f'{{"sessionId": "${{SESSION}}", "command": {json.dumps(line)}{more}}}'
    return f"    ASK terminal/create {given} save=${{DIR}}/{save}"


def about(method: str, *, save: str, terminal: str = "${TERMINAL}", more: str = "") -> str:
    """A step about a terminal."""
    given = f'{{"sessionId": "${{SESSION}}", "terminalId": "{terminal}"}}'
    return f"    ASK terminal/{method} {given} save=${{DIR}}/{save}{more}"


def script(*steps: str) -> str:
    """An agent that does this at each prompt."""
    return "\n".join(["ON prompt", *steps])


async def told(daemon: Daemon, name: str) -> Any:  # noqa: ANN401  it is JSON
    """What the host answered."""
    answer = json.loads(await daemon.marked(name))
    return answer.get("result", answer.get("error"))


async def test_a_command_runs_while_the_agent_goes_on() -> None:
    """Created at once; both streams in one, while it runs and after; waited for twice."""
    line = "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo three; exit 3"
    steps = script(
        create(line, more=', "env": [{"name": "SHOWN", "value": "hidden-value"}]'),
        about("wait_for_exit", save="w1", more=" nowait as=first").replace(" save=${DIR}/w1", ""),
        "    MARK ${DIR}/created-it",
        "    GATE ${DIR}/look",
        about("output", save="running"),
        "    MARK ${DIR}/work/go",
        "    AWAIT first save=${DIR}/w1",
        about("wait_for_exit", save="w2"),
        about("output", save="ended"),
        about("release", save="released"),
        about("output", save="after"),
    )
    async with running_daemon(steps, host=ALLOWED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "run")
        await daemon.marked("created-it")
        status = await daemon.status(session)
        daemon.open("look")
        await daemon.wait(run)

        assert status.jobs.running == 1
        running, ended = await told(daemon, "running"), await told(daemon, "ended")
        assert "exitStatus" not in running
        assert set(running["output"].split()) <= {"one", "two"}
        assert ended == {
            "output": "one\ntwo\nthree\n", "truncated": False,
            "exitStatus": {"exitCode": 3, "signal": None},
        }  # fmt: skip
        assert await told(daemon, "w1") == await told(daemon, "w2")
        assert await told(daemon, "w1") == {"exitCode": 3, "signal": None}
        assert await told(daemon, "released") == {}
        assert (await told(daemon, "after"))["code"] == -32002
        started, over = await daemon.events(run, "job.started", "job.ended")
        assert payload(started)["command"] == line
        assert payload(started)["env"] == ["SHOWN"]
        assert payload(over)["status"] == "failed"
        assert (payload(over)["exitCode"], payload(over)["output"]) == (3, "one\ntwo\nthree\n")
        assert "hidden-value" not in daemon.log()
        assert b"hidden-value" not in (daemon.state / "journal.db").read_bytes()


async def test_killed_is_not_released() -> None:
    """The id stays good for output and how it ended; one that ignores TERM is made to end."""
    steps = script(
        create("trap '' TERM; echo ready; while true; do sleep 0.05; done"),
        "    SET T ${TERMINAL}",
        "    REPEAT 200",
        about("output", save="x", terminal="${T}").replace("    ASK", "        ASK"),
        '        IF ${ANSWER} ~ "ready"',
        "            MARK ${DIR}/is-ready",
        "        PAUSE 20",
        about("kill", save="killed", terminal="${T}"),
        about("output", save="output", terminal="${T}"),
        about("wait_for_exit", save="exit", terminal="${T}"),
        about("kill", save="again", terminal="${T}"),
        about("release", save="released", terminal="${T}"),
        about("kill", save="after", terminal="${T}"),
    ).replace("REPEAT 200", "REPEAT 20")
    async with running_daemon(steps, host=ALLOWED) as daemon:
        run = await daemon.ask(await daemon.session(), "run")

        assert await told(daemon, "killed") == {}
        status = {"exitCode": None, "signal": "SIGKILL"}
        assert await told(daemon, "output") == {
            "output": "ready\n", "truncated": False, "exitStatus": status
        }  # fmt: skip
        assert await told(daemon, "exit") == status
        assert await told(daemon, "again") == {}
        assert (await told(daemon, "after"))["code"] == -32002
        kinds = [kind for kind in await daemon.kinds(run) if kind.startswith("job.")]
        assert kinds == ["job.started", "job.updated", "job.ended"]


@pytest.mark.parametrize("limit", [100, 101, 102, 103])
async def test_the_end_of_a_long_output_is_kept(limit: int) -> None:
    """As many bytes as were asked for, whole characters, and told that something is missing."""
    steps = script(
        create(
            "i=0; while [ $i -lt 1000 ]; do printf '€'; i=$((i+1)); done; printf x",
            more=f', "outputByteLimit": {limit}',
        ),
        about("wait_for_exit", save="exit"),
        about("output", save="output"),
    )
    async with running_daemon(steps, host=ALLOWED) as daemon:
        await daemon.ask(await daemon.session(), "run")

        assert await told(daemon, "output") == {
            "output": "€" * ((limit - 1) // 3) + "x", "truncated": True,
            "exitStatus": {"exitCode": 0, "signal": None},
        }  # fmt: skip


TREE = "sleep 300 & echo $! >> pids; (setsid sleep 300 & echo $! >> pids); echo $$ >> pids; wait"


async def tree(daemon: Daemon) -> list[int]:
    """The processes of TREE, once all of them are there."""
    path = daemon.work / "pids"
    await eventually(lambda: path.exists() and len(path.read_text().split()) == 3)
    return [int(pid) for pid in path.read_text().split()]


async def test_release_ends_all_that_a_command_has_started() -> None:
    """Also what left its group; and how it ended can still be seen."""
    steps = script(create(TREE), "    GATE ${DIR}/go", about("release", save="released"))
    async with running_daemon(steps, host=ALLOWED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "run")
        pids = await tree(daemon)
        shown = await daemon.client.request("runtime/processes", {}, dict)
        daemon.open("go")
        await daemon.wait(run)

        assert [is_alive(pid) for pid in pids] == [False] * 3
        states = [item["state"] for item in shown["items"]]
        assert states == ["live", "live"]
        (ended,) = await daemon.events(run, "job.ended")
        assert payload(ended)["signal"] in {"SIGTERM", "SIGKILL"}


async def test_commands_end_with_their_agent() -> None:
    """One that dies, and one that is reset, leave nothing behind; a new one begins without."""
    steps = (
        script(create(TREE), "    GATE ${DIR}/die", "    KILL").replace("prompt", 'prompt "one"')
        + "\n"
        + script(create("sleep 300 & echo $! > last; wait"), "    STAY").replace(
            "prompt", 'prompt "two"'
        )
    )
    async with running_daemon(steps, host=ALLOWED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        pids = await tree(daemon)
        daemon.open("die")
        ended = await daemon.wait(run)
        await eventually(lambda: not any(map(is_alive, pids)))
        await daemon.client.queue_release(session)
        await daemon.send(session, "two")
        path = daemon.work / "last"
        await eventually(lambda: path.exists() and bool(path.read_text().strip()))
        last = int(path.read_text())
        await daemon.client.request("runtime/reset", {"sessionId": session}, dict)
        await eventually(lambda: not is_alive(last))

        assert ended.status == "interrupted"
        assert (await daemon.status(session)).jobs.running == 0


async def test_commands_of_a_killed_daemon_are_ended_by_the_next() -> None:
    """And are shown as ended: nobody knows how."""
    steps = script(create(TREE), "    STAY")
    async with running_daemon(steps, host=ALLOWED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "run")
        pids = await tree(daemon)
        await daemon.has_event(session, "job.started")  # the kill is not to come before it is kept
        await daemon.restart()

        await eventually(lambda: not any(map(is_alive, pids)))
        started, ended = await daemon.events(run, "job.started", "job.ended")
        assert payload(ended)["jobId"] == payload(started)["jobId"]
        assert (payload(ended)["status"], ended.synthetic) == ("failed", True)


async def test_a_person_may_end_commands() -> None:
    """The agent sees how it ended; with none left that is said."""
    steps = script(create("sleep 300"), about("wait_for_exit", save="exit"), "    STAY")
    async with running_daemon(steps, host=ALLOWED) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "run")
        await daemon.has_event(session, "job.started")
        (job,) = (await daemon.client.list_jobs(session)).items
        stopped = await daemon.client.stop_job(job.job_id)
        nothing = await daemon.client.stop_jobs()

        assert (job.status, job.host_run_id, job.title) == (
            "running", run.host_run_id, "sleep 300"
        )  # fmt: skip
        assert stopped.status == "failed"
        assert (nothing.stopped, nothing.message) == (0, "no command is running")
        assert (await told(daemon, "exit"))["signal"] == "SIGTERM"
        updated = await daemon.has_event(session, "job.updated")
        assert payload(updated)["by"]["actorId"].startswith("uid:")


async def test_a_command_waits_for_a_person() -> None:
    """Asked about with the whole line; refused nothing runs; consent in the turn is enough."""
    steps = (
        script(create("touch made")).replace("prompt", 'prompt "one"')
        + "\n"
        + script(
            '    PERM c1 y:allow_once n:reject_once kind=execute rawInput={"command":"touch made"}',
            create("touch made"),
            about("wait_for_exit", save="exit"),
        ).replace("prompt", 'prompt "two"')
    )
    async with running_daemon(steps) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "reject_once")
        await daemon.wait(run)
        refused = await told(daemon, "created")
        was_made = (daemon.work / "made").exists()
        run = await daemon.send(session, "two")
        await daemon.client.respond((await daemon.question(session)).permission_id, "y")
        await daemon.wait(run)

        (requested,) = await daemon.events(run, "permission.requested")
        assert refused["data"]["code"] == "permission_denied"
        assert not was_made
        assert payload(requested)["toolCall"]["toolCallId"] == "c1"
        assert (daemon.work / "made").exists()


async def test_rules_answer_for_a_person_here_too() -> None:
    """One for a command by its words; more in the line is still asked about."""
    rule = {"name": "touch", "commands": ["touch made"], "answer": "allow_once"}
    steps = script(
        create("touch made", save="allowed"), about("wait_for_exit", save="exit"),
        create("touch made; touch more", save="asked"),
    )  # fmt: skip
    async with running_daemon(steps, host={"policy": {"rules": [rule]}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "run")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "reject_once")
        await daemon.wait(run)

        assert (await told(daemon, "exit"))["exitCode"] == 0
        assert (await told(daemon, "asked"))["data"]["code"] == "permission_denied"
        assert (daemon.work / "made").exists()
        assert not (daemon.work / "more").exists()


async def test_what_cannot_be_run_is_told() -> None:
    """No such program, a folder outside, too many terminals, an id that nobody has."""
    steps = script(
        create("no-such-program", save="missing"),
        create("pwd", save="outside", more=', "cwd": "/"'),
        create("pwd", save="relative", more=', "cwd": "sub"'),
        create("pwd", save="shape", more=', "env": {"A": "b"}'),
        about("output", save="unknown", terminal="term_x"),
        create("pwd", save="good", more=', "args": ["-P"]'),
        create("pwd", save="many"),
    )
    host = {"terminals": {"run": "allow", "limit": 1}}
    async with running_daemon(steps, host=host) as daemon:
        await daemon.ask(await daemon.session(), "run")

        names = ("missing", "outside", "relative", "shape", "unknown", "many")
        answers = {name: await told(daemon, name) for name in names}
        codes = [answers[name]["code"] for name in names]
        assert codes == [-32050, -32050, -32602, -32602, -32002, -32050]
        assert "no-such-program" in answers["missing"]["message"]
        assert answers["outside"]["data"]["code"] == "path_not_granted"
        assert answers["many"]["data"]["code"] == "overloaded"
        assert (await told(daemon, "good"))["terminalId"].startswith("term_")
