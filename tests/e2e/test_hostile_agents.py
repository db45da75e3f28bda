"""Agents that mean harm, or are as bad as if they did: the daemon and its other sessions go on."""

from pathlib import Path

import pytest

from acphost.rpc.nesting import MAX_DEPTH
from tests.support.config import STUBBORN
from tests.support.daemon import Daemon, eventually, payload, running_daemon

FAR_TOO_DEEP = [MAX_DEPTH + 1, 880, 930, 950, 970, 990, 5000]


def nested(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


def raw(text: str) -> str:
    return f"    RAW '{text}\\n'"


#: One value in each place where somebody reads on. UPDATE and IN stand for what all of them have.
EVERYWHERE = """
{"method":"session/update","params":{IN,"update":{UPDATE"agent_message_chunk","content":DEEP}}}
{"method":"session/update","params":{IN,"update":{UPDATE"tool_call","toolCallId":"c","x":DEEP}}}
{"method":"session/update","params":{IN,"update":{UPDATE"plan","entries":DEEP}}}
{"method":"session/update","params":{IN,"update":{UPDATE"usage_update","used":DEEP}}}
{"method":"session/update","params":{IN,"update":{UPDATE"config_option_update","x":DEEP}}}
{"method":"_x/y","params":DEEP}
{"id":"p-NUMBER","method":"session/request_permission","params":{IN,"toolCall":DEEP}}
{"id":"e-NUMBER","method":"elicitation/create","params":{IN,"requestedSchema":DEEP}}
{"id":"f-NUMBER","method":"fs/read_text_file","params":{IN,"path":DEEP}}
{"id":"u-NUMBER","method":"_x/unknown","params":{IN,"x":DEEP}}
{"id":98765,"result":DEEP}
{"id":98765,"error":{"code":1,"message":"m","data":DEEP}}
DEEP
"""


def everywhere(depth: int) -> str:
    """The lines, so deeply nested."""
    text = EVERYWHERE.strip().replace("UPDATE", '"sessionUpdate":')
    text = text.replace("IN,", '"sessionId":"${SESSION}",')
    text = text.replace("NUMBER", str(depth)).replace("DEEP", nested(depth))
    return "\n".join(map(raw, text.splitlines()))


async def test_nesting_that_no_reader_follows_is_noise() -> None:
    """Whatever is nested too deeply is refused at the border, at any depth; nothing breaks."""
    lines = "\n".join(everywhere(depth) for depth in FAR_TOO_DEEP)
    async with running_daemon(f'ON prompt "deep"\n{lines}\n    MSG "ok"\n') as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "deep")

        assert run.status == "completed"
        assert await daemon.text(run) == "ok"
        assert not await daemon.events(run, "tool.started", "plan.updated", "permission.requested")
        answered = {line.get("id") for line in daemon.heard() if "error" in line}
        for depth in FAR_TOO_DEEP:
            assert {f"{letter}-{depth}" for letter in "pefu"} <= answered


async def test_as_deep_as_is_let_in_is_read_by_all() -> None:
    """The deepest value that passes the border reaches the journal and every client."""
    value = nested(MAX_DEPTH - 4)
    line = (
        '{"method":"session/update","params":{"sessionId":"${SESSION}","update":'
        f'{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","rawInput":{{"x":{value}}}}}}}}}'
    )
    async with running_daemon(f'ON prompt "deep"\n{raw(line)}\n    MSG "ok"\n') as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "deep")

        (started,) = await daemon.events(run, "tool.started")
        assert b"[[[[" in bytes(started.payload)


@pytest.mark.parametrize("depth", [MAX_DEPTH, 900, 960, 5000])
async def test_an_answer_nobody_can_read_is_an_answer(depth: int) -> None:
    """The run fails and says why; it does not wait for another answer."""
    line = '{"id":${#ID},"result":{"stopReason":"end_turn","usage":DEEP}}'
    script = f'ON prompt "deep"\n{raw(line.replace("DEEP", nested(depth)))}\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "deep")

        assert run.status == "failed"
        assert "nested" in str(run.error)
        assert (await daemon.ask(session, "next")).status == "completed"


SECRETS = {"MY_API_KEY": "sk-never-to-be-seen-1", "DB_PASSWORD": "never-to-be-seen-2"}


def told_in(daemon: Daemon) -> list[Path]:
    """The files of the daemon in which one of the secrets stands."""
    values = [value.encode() for value in SECRETS.values()]
    files = [
        place for place in (daemon.folder / "log", *daemon.state.rglob("*")) if place.is_file()
    ]
    return [file for file in files if any(value in file.read_bytes() for value in values)]


TELL = "key ${MY_API_KEY} and ${DB_PASSWORD}"


@pytest.mark.parametrize(
    "script",
    [
        f'ON prompt\n    RAW "{TELL}\\n"\n    ERR "{TELL}\\n"\n    EXIT 3\n',
        f'ON prompt\n    FAIL -32603 "{TELL}" {{"said": "{TELL}"}}\n',
        f'ON init\n    ERR "{TELL}\\n"\n    RAW "{TELL}\\n"\n    EXIT 3\n',
        f'ON init\n    FAIL -32603 "{TELL}" {{"said": "{TELL}"}}\n',
        f'ON new\n    FAIL -32603 "{TELL}"\n',
    ],
)
async def test_keys_in_diagnostics_are_told_nobody(script: str) -> None:
    """What an agent says outside of the protocol, or as an error, is kept without its keys."""

    def give(daemon: Daemon) -> None:
        given = {**daemon.agent_environ, "DB_PASSWORD": SECRETS["DB_PASSWORD"]}
        daemon.environ["MY_API_KEY"] = SECRETS["MY_API_KEY"]
        daemon.configure(agent={"env": given, "env_pass": ["MY_API_KEY"]})

    async with running_daemon(script, prepare=give) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        told = [run, await daemon.get(session), await daemon.status(session), daemon.seen]
        trouble = await daemon.client.trouble(session)

        assert run.status in ("failed", "interrupted")
        assert "***" in f"{told} {trouble}"
        for value in SECRETS.values():
            assert value not in f"{told} {trouble}"
    assert not told_in(daemon)


async def test_keys_in_the_output_of_a_command_are_told_nobody() -> None:
    """The agent hears all of it; the journal keeps it without what is secret."""
    script = """
ON prompt
    ASK terminal/create {"sessionId": "${SESSION}", "command": "echo key=$MY_API_KEY"}
    ASK terminal/wait_for_exit {"sessionId": "${SESSION}", "terminalId": "${TERMINAL}"}
    ASK terminal/output {"sessionId": "${SESSION}", "terminalId": "${TERMINAL}"} save=${DIR}/output
"""

    def give(daemon: Daemon) -> None:
        daemon.configure(agent={"env": {**daemon.agent_environ, **SECRETS}})

    host = {"terminals": {"run": "allow"}}
    async with running_daemon(script, host=host, prepare=give) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")

        assert SECRETS["MY_API_KEY"] in await daemon.marked("output")
        ended = await daemon.has_event(session, "job.ended")
        assert payload(ended)["output"] == "key=***\n"
    assert not told_in(daemon)


async def test_more_questions_than_anybody_can_answer() -> None:
    """A hundred are open at a time; the others are refused at once, and the daemon stays quick."""
    script = """
ON prompt "flood"
    REPEAT 3000
        CALL c${I} title="t${I}" kind=execute
        SEND {"id": "p${I}", "method": "session/request_permission", "params": {"sessionId":
            "${SESSION}", "toolCall": {"toolCallId": "gate-${I}", "title": "t"},
            "options": [{"optionId": "a", "name": "a", "kind": "allow_once"}]}}
    REPEAT 200
        SEND {"id": "e${I}", "method": "elicitation/create", "params": {"sessionId": "${SESSION}",
            "mode": "form", "message": "m", "requestedSchema": {"type": "object",
            "properties": {"a": {"type": "string"}}}}}
    MARK ${DIR}/asked
    GATE ${DIR}/go
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "flood")
        await daemon.marked("asked")
        # One too many is refused at once: after so many refusals no request is on its way.
        await eventually(lambda: sum("error" in line for line in daemon.heard()) == 2900 + 200)
        open_ones = await daemon.client.request(
            "permission/list", {"sessionId": session, "status": "pending", "limit": 500}, dict
        )
        daemon.open("go")

        assert (await daemon.wait(run)).status == "completed"
        assert len(open_ones["items"]) == 100
        refused = [line for line in daemon.heard() if "error" in line]
        assert len(refused) == 2900 + 200
        assert {line["error"]["data"]["code"] for line in refused} == {"overloaded"}
        assert (await daemon.ask(session, "next")).status == "completed"


async def test_it_closes_its_stdin_and_lives_on() -> None:
    """A prompt that it cannot have heard has failed, of known outcome; the next works at once."""
    script = """
ON prompt "close"
    CLOSE stdin
    MSG "a"
    END
    STAY
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session = await daemon.session()
        assert (await daemon.ask(session, "close")).status == "completed"
        lost = await daemon.ask(session, "lost")
        after = await daemon.ask(session, "after")

        assert lost.status == "failed"
        assert lost.error_code == "agent_exited"
        assert str(lost.error).endswith("send it again")
        assert after.status == "completed"
        assert not await daemon.history(session, "queue.held")


@pytest.mark.anew
async def test_it_asks_without_end_and_reads_no_answer() -> None:
    """Answers that are not read are kept up to a limit; then the connection is over."""
    script = f"""
ON prompt "ask"
    STOPREADING
    REPEAT 4000
        SEND {{"id": "${{I}}{"x" * 20_000}", "method": "_x/unknown", "params": {{}}}}
    STAY
"""
    async with running_daemon(script, others={"good": ""}, agent=STUBBORN) as daemon:
        session, other = await daemon.session(), await daemon.session("good")
        run = await daemon.send(session, "ask")

        assert (await daemon.ask(other, "hi")).status == "completed"
        assert (await daemon.wait(run)).status == "interrupted"
        assert "reads" in str((await daemon.run(run)).error)
        assert daemon.memory() < 400 << 20
        assert (await daemon.ask(session, "next")).status == "completed"


async def test_an_error_as_long_as_a_book() -> None:
    """In lists and rows it is short; the event has the whole of it."""
    script = f"""
ON prompt "error"
    FAIL -32603 "begin {"m" * 10_000} end"
ON prompt "stop"
    END "{"s" * 10_000}"
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "error")
        stopped = await daemon.ask(session, "stop")

        (failed,) = await daemon.events(run, "run.failed")
        assert str(run.error).startswith("begin m")
        assert str(run.error).endswith("m end")
        assert len(str(run.error)) < 3000
        assert len(payload(failed)["agentError"]["message"]) > 10_000
        (completed,) = await daemon.events(stopped, "run.completed")
        assert len(str(stopped.stop_reason)) == 200
        assert len(payload(completed)["response"]["stopReason"]) == 10_000


async def test_a_flood_of_lines_that_are_no_protocol() -> None:
    """They cost time, and no other session waits for it; the turn behind them ends."""
    script = """
ON prompt "noise"
    RAW "debug: what is going on here\\n" times=60000
    MSG "ok"
"""
    async with running_daemon(script, others={"good": ""}) as daemon:
        session, other = await daemon.session(), await daemon.session("good")
        await daemon.ask(other, "before")
        run = await daemon.send(session, "noise")
        behind = await daemon.ask(other, "behind")

        assert behind.status == "completed"
        assert (await daemon.wait(run)).status == "completed"
        assert await daemon.text(run) == "ok"
        assert len(await daemon.events(run, "evidence")) <= 100


@pytest.mark.parametrize("path", ["a\\u0000b", "~\\u0000", "file://["])
async def test_paths_that_are_none(path: str) -> None:
    """In a question, a finished call, a file or a command: each is told of, none is a mistake."""
    said = f'"path": "{path}"'
    script = f"""
ON prompt "paths"
    CALL c1 completed kind=edit locations=[{{{said}}}]
    SEND {{"id": "p", "method": "session/request_permission", "params": {{
        "sessionId": "${{SESSION}}", "toolCall": {{"toolCallId": "c2", "kind": "edit",
        "locations": [{{{said}}}], "content": [{{"type": "diff", {said}, "newText": "x"}}]}},
        "options": [{{"optionId": "a", "name": "a", "kind": "allow_once"}}]}}}}
    MARK ${{DIR}}/asked
    GATE ${{DIR}}/go
    SEND {{"id": "r", "method": "fs/read_text_file", "params": {{"sessionId": "${{SESSION}}",
        {said}}}}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "paths")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "a")
        daemon.open("go")

        assert (await daemon.wait(run)).status == "completed"


async def test_a_path_that_no_other_program_could_follow() -> None:
    """Folder by folder it could be made, and nobody could delete it then."""
    script = f"""
ON prompt
    ASK fs/write_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/{"a/" * 2500}x",
        "content": "x"}} save=${{DIR}}/said
"""
    async with running_daemon(script, host={"files": {"write": "allow"}}) as daemon:
        await daemon.ask(await daemon.session(), "go")

        assert "too_large" in await daemon.marked("said")
        assert not list(daemon.work.iterdir())


async def test_a_command_that_no_system_can_start() -> None:
    """A word of it is too long: refused in a few words, and not kept."""
    script = f"""
ON prompt
    ASK terminal/create {{"sessionId": "${{SESSION}}",
        "command": "{"z" * 140_000}"}} save=${{DIR}}/said
"""
    async with running_daemon(script, host={"terminals": {"run": "allow"}}) as daemon:
        run = await daemon.ask(await daemon.session(), "go")

        assert run.status == "completed"
        assert "too_large" in await daemon.marked("said")
        assert sum(len(bytes(event.payload)) for event in await daemon.events(run)) < 5000
