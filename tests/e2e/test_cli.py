"""The commands, as a person and as a script use them, against a real daemon and the demo agent."""

import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from acphost.demo.throwaway import Throwaway
from tests.support.demo_daemon import demo_daemon
from tests.support.patience import PATIENCE
from tests.support.terminal import Finished, acphost, code_after_reader_left, piped, typist

#: One that goes on until it is stopped, one that does not stop, one that is never installed.
AGENTS = """
[agents.tireless]
command = ["{python}", "-m", "acphost.demo.agent", "FOLDER/tireless.script"]

[agents.deaf]
command = ["{python}", "-m", "acphost.demo.agent", "FOLDER/deaf.script"]
cancel_grace = 600

[agents.absent]
command = ["no-such-program-anywhere"]
"""

TIRELESS = """\
INIT
ON prompt
    MSG "I am at it. "
    GATE FOLDER/tireless.go
"""

DEAF = """\
INIT
ON prompt
    MSG "I do not listen. "
    MARK FOLDER/deaf.started
    GATE FOLDER/deaf.go
    MSG "Now I am done."
ON cancel KEEP
    MARK FOLDER/deaf.cancelled
"""


@pytest.fixture
async def daemon(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Throwaway]:
    async with demo_daemon(monkeypatch, AGENTS, tireless=TIRELESS, deaf=DEAF) as started:
        yield started


async def say(daemon: Throwaway, *words: str, stdin: str = "") -> Finished:
    """Run a command of this daemon in its work folder."""
    return await acphost(daemon.socket, *words, stdin=stdin, cwd=daemon.work)


async def sessions(daemon: Throwaway) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads((await say(daemon, "ls", "--json")).out)["items"]
    return listed


# -- send -----------------------------------------------------------------------------------------


async def test_the_answer_is_on_stdout_and_everything_else_on_stderr(daemon: Throwaway) -> None:
    done = await say(daemon, "send", "--agent", "demo", "good", "morning")
    assert done.out == "Hello! You said: “good morning”. This was prompt 1 of the session.\n"
    session_id = str((await sessions(daemon))[0]["sessionId"])
    assert session_id in done.err
    assert f"acphost send --session {session_id[-8:]}" in done.err
    assert "thought: A short and friendly answer will do." in done.err
    assert "✓ Answer it" in done.err
    assert done.code == 0


async def test_a_session_goes_on_by_a_few_characters_or_by_its_folder(daemon: Throwaway) -> None:
    await say(daemon, "send", "--agent", "demo", "one")
    session_id = str((await sessions(daemon))[0]["sessionId"])
    second = await say(daemon, "send", "--session", session_id[-6:], "two")
    third = await say(daemon, "send", "--continue", "three")
    assert "prompt 2 of the session" in second.out
    assert "prompt 3 of the session" in third.out
    assert len(await sessions(daemon)) == 1


async def test_nothing_to_continue_is_said(daemon: Throwaway) -> None:
    done = await say(daemon, "send", "--continue", "hello")
    assert (done.code, done.out) == (1, "")
    assert "no session" in done.err


async def test_a_message_may_come_from_a_pipe(daemon: Throwaway) -> None:
    dash = await say(daemon, "send", "--agent", "demo", "-", stdin="from a pipe")
    bare = await say(daemon, "send", "--agent", "demo", stdin="without a dash")
    assert "“from a pipe”" in dash.out
    assert "“without a dash”" in bare.out


async def test_json_is_one_event_a_line_up_to_the_end_of_the_run(daemon: Throwaway) -> None:
    done = await say(daemon, "send", "--agent", "demo", "--json", "hello")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert events[0]["kind"] == "run.created"
    assert events[-1]["kind"] == "run.completed"
    assert {event["schema"] for event in events} == {"mnote.ai_run_event.v1"}
    assert "".join(
        event["payload"]["content"]["text"] for event in events if event["kind"] == "message.delta"
    ).startswith("Hello!")


async def test_without_an_agent_named_the_one_that_can_be_started_is_taken(
    daemon: Throwaway,
) -> None:
    await anyio.Path(daemon.folder, "deaf.go").touch()
    done = await say(daemon, "send", "hello")
    assert done.code == 0
    # Not `absent`, which would be first by its name, and the bundled one only if there is no other.
    assert done.err.startswith("deaf ")


@pytest.mark.parametrize(
    ("text", "said"), [("please fail", "told to fail"), ("please crash", "interrupted")]
)
async def test_a_run_that_does_not_complete_ends_with_1(
    daemon: Throwaway, text: str, said: str
) -> None:
    done = await say(daemon, "send", "--agent", "demo", text)
    assert done.code == 1
    assert said in done.err


async def test_an_agent_that_cannot_be_started_is_explained(daemon: Throwaway) -> None:
    done = await say(daemon, "send", "--agent", "absent", "hello")
    assert done.code == 1
    assert "no-such-program-anywhere" in done.err
    unknown = await say(daemon, "send", "--agent", "nobody", "hello")
    assert unknown.code == 1
    assert "nobody" in unknown.err


async def test_a_second_message_says_that_it_waits(daemon: Throwaway) -> None:
    async with piped(daemon.socket, "send", "--agent", "deaf", "first") as first:
        await first.until("I do not listen.")
        session_id = str((await sessions(daemon))[0]["sessionId"])
        async with piped(daemon.socket, "send", "--session", session_id, "second") as second:
            await second.until("queued behind 1", "err")
            await anyio.Path(daemon.folder, "deaf.go").touch()
            assert (await first.rest())[0] == 0
            code, out, _ = await second.rest()
    assert code == 0
    assert out.endswith("Now I am done.\n")


# -- permissions ----------------------------------------------------------------------------------


async def test_at_a_terminal_a_question_is_asked(daemon: Throwaway) -> None:
    async with typist(daemon.socket, "send", "--agent", "demo", "permission") as person:
        await person.until("choose 1-3:")
        assert "? Write notes.md" in person.seen
        await person.type("perhaps\n")
        await person.type("1\n")
        assert await person.rest() == 0
    assert f"answered by acphost (uid:{os.getuid()}): allow_once" in person.seen
    assert "✓ Write notes.md" in person.seen
    assert "nothing was touched" in person.seen


async def test_in_a_pipe_a_question_says_how_to_answer_it(daemon: Throwaway) -> None:
    async with piped(daemon.socket, "send", "--agent", "demo", "permission") as command:
        err = await command.until("answer with: acphost permit", "err")
        word = err.split("acphost permit ")[1].split()[0]
        listed = await say(daemon, "permit")
        assert word in listed.out
        assert "Write notes.md" in listed.out
        assert "allow_always" in listed.out
        assert json.loads((await say(daemon, "permit", "--json")).out)["items"][0]["status"] == (
            "pending"
        )
        refused = await say(daemon, "permit", word, "whatever")
        assert refused.code == 2
        undecided = await say(daemon, "permit", word)
        assert undecided.code == 2
        answered = await say(daemon, "permit", word, "reject")
        assert (answered.code, answered.out) == (0, "answered: Reject\n")
        code, out, _ = await command.rest()
    assert code == 0
    assert "I leave the file alone" in out
    assert (await say(daemon, "permit")).err == "nobody asks for anything\n"
    gone = await say(daemon, "permit", word, "allow")
    assert gone.code == 1


async def test_a_question_that_somebody_else_answers_is_taken_back(daemon: Throwaway) -> None:
    async with typist(daemon.socket, "send", "--agent", "demo", "permission") as person:
        await person.until("choose 1-3:")
        pending = json.loads((await say(daemon, "permit", "--json")).out)["items"]
        await say(daemon, "permit", pending[0]["permissionId"], "allow")
        assert await person.rest() == 0
    assert "nothing was touched" in person.seen


async def test_a_question_is_asked_again_of_whoever_attaches_later(daemon: Throwaway) -> None:
    async with piped(daemon.socket, "send", "--agent", "demo", "permission") as command:
        await command.until("answer with:", "err")
        session_id = str((await sessions(daemon))[0]["sessionId"])
        async with typist(daemon.socket, "attach", session_id) as person:
            await person.until("choose 1-3:")
            await person.type("no\n")
            await person.until("I leave the file alone")
            await person.type("\x03")
            assert await person.rest() == 130
        assert (await command.rest())[0] == 0


# -- stopping -------------------------------------------------------------------------------------


async def test_ctrl_c_stops_the_run_and_tells_how_it_ended(daemon: Throwaway) -> None:
    async with typist(daemon.socket, "send", "--agent", "tireless", "work") as person:
        await person.until("I am at it.")
        await person.type("\x03")
        assert await person.rest() == 130
    assert "stopping the run" in person.seen
    assert "cancelled" in person.seen
    assert (await sessions(daemon))[0]["lastRunStatus"] == "cancelled"


async def test_a_second_ctrl_c_leaves_the_run_alone(daemon: Throwaway) -> None:
    async with typist(daemon.socket, "send", "--agent", "deaf", "hello") as person:
        await person.until("I do not listen.")
        await person.type("\x03")
        await person.until("stopping the run")
        await person.type("\x03")
        assert await person.rest() == 130
    assert (await sessions(daemon))[0]["status"] == "stopping"
    await anyio.Path(daemon.folder, "deaf.go").touch()


async def test_cancel_stops_what_a_session_runs(daemon: Throwaway) -> None:
    async with piped(daemon.socket, "send", "--agent", "tireless", "work") as command:
        await command.until("I am at it.")
        session_id = str((await sessions(daemon))[0]["sessionId"])
        done = await say(daemon, "cancel", session_id[-8:])
        assert done.code == 0
        assert done.out.endswith(": cancelled\n")
        code, _, err = await command.rest()
    assert code == 1  # somebody else stopped it
    assert "cancelled" in err
    idle = await say(daemon, "cancel", session_id)
    assert idle.code == 1
    assert "runs nothing" in idle.err


async def test_the_queue_can_be_seen_held_changed_and_released(
    daemon: Throwaway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with piped(daemon.socket, "send", "--agent", "deaf", "first") as first:
        await first.until("I do not listen.")
        session_id = str((await sessions(daemon))[0]["sessionId"])
        async with piped(daemon.socket, "send", "--session", session_id, "the second") as second:
            await second.until("queued behind 1", "err")
            listed = await say(daemon, "queue", session_id)
            assert "the second" in listed.out
            held = await say(daemon, "queue", session_id, "hold")
            assert "held" in held.err
            run = json.loads((await say(daemon, "queue", session_id, "--json")).out)["items"][0]
            edit = ("queue", session_id, "edit", str(run["runId"])[-8:])
            edited = await say(daemon, *edit, "in", "other", "words")
            assert "in other words" in edited.out
            monkeypatch.setenv("EDITOR", "sed -i s/other/better/")
            assert "in better words" in (await say(daemon, *edit)).out
            nowhere = await say(daemon, "queue", session_id, "move", run["runId"], "away")
            assert (nowhere.code, "first, last" in nowhere.err) == (2, True)
            assert (await say(daemon, "queue", session_id, "move", run["runId"])).code == 0
            released = await say(daemon, "queue", session_id, "release", "--json")
            assert [item["heldReason"] for item in json.loads(released.out)["items"]] == [None]
            await anyio.Path(daemon.folder, "deaf.go").touch()
            await first.rest()
            assert (await second.rest())[0] == 0
    assert (await say(daemon, "queue", session_id)).err == "nothing waits\n"


# -- attach ---------------------------------------------------------------------------------------


async def test_attach_shows_what_was_and_what_comes(daemon: Throwaway) -> None:
    await say(daemon, "send", "--agent", "demo", "the first")
    session_id = str((await sessions(daemon))[0]["sessionId"])
    async with piped(daemon.socket, "attach", session_id[-8:]) as follower:
        await follower.until("prompt 1 of the session.")
        await say(daemon, "send", "--session", session_id, "the second")
        out = await follower.until("prompt 2 of the session.")
        follower.interrupt()
        code, _, _ = await follower.rest()
    assert code == 130
    assert out.index("> the first") < out.index("> the second")


async def test_attach_begins_where_it_is_told(daemon: Throwaway) -> None:
    await say(daemon, "send", "--agent", "demo", "one")
    session = (await sessions(daemon))[0]
    session_id, last = str(session["sessionId"]), int(str(session["lastSeq"]))
    async with piped(daemon.socket, "attach", session_id, "--after", "now") as follower:
        await follower.until("following session", "err")
        await say(daemon, "send", "--session", session_id, "two")
        assert (await follower.until("prompt 2 of the session.")).startswith("> two\n")
    async with piped(
        daemon.socket, "attach", session_id, "--after", str(last), "--json"
    ) as follower:
        line = (await follower.until("\n")).splitlines()[0]
        assert int(json.loads(line)["seq"]) == last + 1
    wrong = await say(daemon, "attach", session_id, "--after", "x")
    assert wrong.code == 2
    future = await say(daemon, "attach", session_id, "--after", "99999")
    assert future.code == 1


# -- the daemon -----------------------------------------------------------------------------------


async def test_status_tells_the_daemon_and_a_session(daemon: Throwaway) -> None:
    await say(daemon, "send", "--agent", "demo", "hello")
    session_id = str((await sessions(daemon))[0]["sessionId"])
    overview = await say(daemon, "status")
    assert f"pid {daemon.pid}" in overview.out
    assert str(daemon.socket) in overview.out
    detail = await say(daemon, "status", session_id[-8:])
    assert session_id in detail.out
    assert "idle" in detail.out
    as_json = json.loads((await say(daemon, "status", session_id, "--json")).out)
    assert as_json["schema"] == "mnote.page_ai_runtime_status.v1"
    everything = json.loads((await say(daemon, "status", "--json")).out)
    assert everything["host"]["hostInfo"]["pid"] == daemon.pid


async def test_agents_tells_who_can_be_started(daemon: Throwaway) -> None:
    listed = await say(daemon, "agents")
    lines = {line.split()[0]: line for line in listed.out.splitlines()}
    assert " ready " in lines["demo"]
    assert "not ready" in lines["absent"]
    assert "no-such-program-anywhere" in lines["absent"]


async def test_ls_lists_and_filters(daemon: Throwaway, tmp_path: Path) -> None:
    assert (await say(daemon, "ls")).err.startswith("no sessions yet")
    await say(daemon, "send", "--agent", "demo", "hello")
    await say(daemon, "send", "--agent", "demo", "--cwd", str(tmp_path), "hello")
    assert len((await say(daemon, "ls")).out.splitlines()) == 3
    assert len((await say(daemon, "ls", "--here")).out.splitlines()) == 2
    assert (await say(daemon, "ls", "--agent", "deaf")).out == ""


async def test_stop_waits_until_the_daemon_is_gone(daemon: Throwaway) -> None:
    await say(daemon, "send", "--agent", "demo", "hello")
    done = await say(daemon, "stop")
    assert done.code == 0
    assert await daemon.exit_code() == 0
    again = await say(daemon, "stop")
    assert again.code == 69
    assert "acphost serve" in again.err


async def test_stop_with_force_does_not_wait_for_turns(daemon: Throwaway) -> None:
    async with piped(daemon.socket, "send", "--agent", "deaf", "hello") as command:
        await command.until("I do not listen.")
        assert (await say(daemon, "stop", "--force")).code == 0
        assert await daemon.exit_code() == 0


async def test_a_second_daemon_says_who_is_first(daemon: Throwaway) -> None:
    second = await acphost(
        None,
        *("serve", "--socket", str(daemon.folder / "other")),
        *("--state-dir", str(daemon.folder / "state")),
        *("--config", str(daemon.folder / "config.toml")),
    )
    assert second.code == 3
    assert second.out == ""
    assert str(daemon.pid) in second.err


async def test_a_configuration_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    done = await acphost(None, "serve", "--config", str(tmp_path / "config.toml"))
    assert done.code == 78
    assert "config.toml" in done.err


async def test_a_state_folder_that_cannot_be_used_is_nothing_to_start_again_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    state = str(tmp_path / "file" / "state")
    done = await acphost(None, "serve", "--state-dir", state, "--config", str(tmp_path))
    assert done.code == 78
    assert state in done.err


async def test_a_mistake_in_the_configuration_is_shown_in_the_status(daemon: Throwaway) -> None:
    config = anyio.Path(daemon.folder, "config.toml")
    await config.write_text(await config.read_text() + "[agents.x]\ncomand = ['x']\n")
    assert (await acphost(daemon.socket, "status")).code == 0
    with anyio.fail_after(PATIENCE):
        while "comand" not in (shown := await acphost(daemon.socket, "status")).out:  # noqa: ASYNC110
            await anyio.sleep(0.05)
    assert shown.code == 0


async def test_send_bridges_a_restart_of_the_daemon(daemon: Throwaway) -> None:
    async with piped(daemon.socket, "send", "--agent", "tireless", "work") as command:
        await command.until("I am at it.")
        await daemon.kill()
        await command.until("the daemon went away", "err")
        await daemon.start()
        code, _, err = await command.rest()
    assert code == 1
    assert "the daemon is back" in err
    assert "interrupted" in err


async def test_a_reader_that_leaves_is_no_error(daemon: Throwaway) -> None:
    await say(daemon, "send", "--agent", "demo", "hello")
    session_id = str((await sessions(daemon))[0]["sessionId"])
    code = await code_after_reader_left(
        daemon.socket,
        *("attach", session_id, "--json"),
        meanwhile=lambda: say(daemon, "send", "--session", session_id, "again"),
    )
    assert code == 141


# -- the demo -------------------------------------------------------------------------------------


def folders_of_demo(pid: int) -> list[Path]:
    return list(Path("/tmp").glob(f"acphost-show-{pid}-*"))


async def test_the_demo_shows_what_it_promises_and_leaves_nothing() -> None:
    async with piped(None, "demo") as command:
        await command.until(">")
        assert folders_of_demo(command.process.pid) != []
        code, out, err = await command.rest()
    assert code == 0, out
    assert err == ""
    assert out.count("✓") > 10
    assert "✗" not in out
    assert folders_of_demo(command.process.pid) == []


async def test_the_demo_cleans_up_when_it_is_interrupted() -> None:
    async with typist(None, "demo") as person:
        await person.until("piece 2 of 12")
        assert folders_of_demo(person.pid) != []
        await person.type("\x03")
        assert await person.rest() == 130
    assert folders_of_demo(person.pid) == []
