"""Files for agents: below the session's folders, by a person's leave, and each an event."""

import json
from typing import Any

import anyio
import pytest

from tests.support.config import STUBBORN
from tests.support.daemon import Daemon, facts, payload, running_daemon
from tests.support.wire import Wire

ASKS = """
ON prompt "read"
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/a.txt"}
    MSG ${ANSWER}
ON prompt "window"
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/a.txt",
        "line": 2, "limit": 1}
    MSG ${ANSWER}
ON prompt "write"
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/new/b.txt",
        "content": "é€😀\\n"}
    MSG ${ANSWER}
ON prompt "outside"
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/outside.txt"}
    MSG ${ANSWER}
"""
ALLOWED = {"files": {"write": "allow"}}


async def answer(daemon: Daemon, session: str, text: str) -> Any:  # noqa: ANN401  it is JSON
    """What the host answered to the agent."""
    return json.loads(await daemon.text(await daemon.ask(session, text)))


def asking(*params: str, method: str = "fs/read_text_file") -> str:
    """An agent that asks once for each prompt, and tells the answer."""
    lines = []
    for number, given in enumerate(params, 1):
        lines += [f"ON prompt nth={number}", f"    ASK {method} {given}", "    MSG ${ANSWER}"]
    return "\n".join(lines)


async def test_an_agent_reads_what_is_in_its_folder() -> None:
    """The text as it is, a window of it, and an event for each that does not hold the content."""
    async with running_daemon(ASKS) as daemon:
        (daemon.work / "a.txt").write_bytes("one\r\nzwei é\r\ndrei".encode())
        session = await daemon.session()
        whole = await daemon.ask(session, "read")
        window = await answer(daemon, session, "window")

        assert json.loads(await daemon.text(whole))["result"] == {
            "content": "one\r\nzwei é\r\ndrei"
        }
        assert window["result"] == {"content": "zwei é\r\n"}
        (event,) = await daemon.events(whole, "evidence")
        assert facts(event) == {"evidence": "file_read"}
        assert payload(event) == {
            "method": "fs/read_text_file", "path": str(daemon.work / "a.txt"), "line": None,
            "limit": None, "from": "disk", "bytes": 18,
        }  # fmt: skip


async def test_text_and_names_are_utf8_whatever_the_locale() -> None:
    """A daemon of a service manager has no locale; files are read and written all the same."""

    def prepare(daemon: Daemon) -> None:
        daemon.environ = {
            name: value for name, value in daemon.environ.items() if not name.startswith("L")
        }
        daemon.environ["LC_ALL"] = "C"
        (daemon.work / "Öl.txt").write_text("é€😀\n", encoding="utf-8")

    script = """
ON prompt
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/Öl.txt"}
    MSG ${ANSWER}
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/ß.txt",
        "content": "ß😀"}
"""
    async with running_daemon(script, host=ALLOWED, prepare=prepare) as daemon:
        run = await daemon.ask(await daemon.session(), "read")

        assert json.loads(await daemon.text(run))["result"] == {"content": "é€😀\n"}
        assert (daemon.work / "ß.txt").read_bytes() == "ß😀".encode()


async def test_what_cannot_be_read_is_told_with_the_protocols_numbers() -> None:
    """Missing, relative, odd windows, another folder: each has its own answer, none ends a turn."""
    params = [
        '{"sessionId": "${SESSION}", "path": "${DIR}/work/nobody"}',
        '{"sessionId": "${SESSION}", "path": "a.txt"}',
        '{"sessionId": "${SESSION}", "path": "${DIR}/work/a.txt", "line": 0}',
        '{"sessionId": "${SESSION}", "path": "${DIR}/work/a.txt", "limit": 1.5}',
        '{"sessionId": "${SESSION}", "path": "${DIR}/work/a.txt", "limit": -1}',
        '{"sessionId": "${SESSION}", "path": "${DIR}/work/../outside.txt"}',
        '{"sessionId": "${SESSION}", "path": "/proc/self/environ"}',
        '{"sessionId": "${SESSION}"}',
    ]
    async with running_daemon(asking(*params)) as daemon:
        (daemon.work / "a.txt").write_text("a")
        (daemon.folder / "outside.txt").write_text("secret")
        session = await daemon.session()
        errors = [(await answer(daemon, session, str(n)))["error"] for n in range(len(params))]

        codes = [error["code"] for error in errors]
        assert codes == [-32002, -32602, -32602, -32602, -32602, -32050, -32050, -32602]
        assert "$.line" in errors[2]["message"]
        assert errors[5]["data"]["code"] == "path_not_granted"
        assert errors[5]["data"]["roots"] == [str(daemon.work)]
        assert "secret" not in json.dumps(errors)


async def test_a_write_waits_for_a_person() -> None:
    """Asked about as an edit of that file; refused it fails, allowed it is done and told."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "write")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "reject_once")
        refused = await daemon.wait(run)
        run = await daemon.send(session, "write", requestId="again")
        again = await daemon.question(session)
        await daemon.client.respond(again.permission_id, "allow_once")
        allowed = await daemon.wait(run)

        assert json.loads(await daemon.text(refused))["error"]["data"]["code"] == (
            "permission_denied"
        )
        (requested,) = await daemon.events(refused, "permission.requested")
        call = payload(requested)["toolCall"]
        assert (call["kind"], call["title"]) == ("edit", "Write new/b.txt")
        assert call["locations"] == [{"path": str(daemon.work / "new/b.txt")}]
        assert requested.source == "mnote"
        assert question.kind == "permission"
        assert json.loads(await daemon.text(allowed))["result"] == {}
        assert (daemon.work / "new" / "b.txt").read_text(encoding="utf-8") == "é€😀\n"
        (changed,) = await daemon.events(allowed, "document.changed")
        told = payload(changed)
        assert (told["relativePath"], told["change"], told["by"]) == ("new/b.txt", "created", "fs")
        assert "é€" not in bytes(changed.payload).decode()


async def test_what_was_allowed_as_a_tool_call_is_not_asked_about_again() -> None:
    """Only in the same turn, and only for the file that the question named."""
    write = (
        '    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/%s",'
        ' "content": "x"}\n    MSG ${OUTCOME}\n'
    )
    script = (
        "ON prompt nth=1\n"
        "    CALL c1 pending kind=edit\n"
        '    PERM c1 y:allow_once n:reject_once kind=edit locations=[{"path":"${DIR}/work/a"}]\n'
        + write % "a"
        + "    UPD c1 completed\n"
        + "ON prompt nth=2\n"
        + write % "a"
    )
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "y")
        first = await daemon.wait(run)
        run = await daemon.send(session, "two")
        await daemon.client.respond((await daemon.question(session)).permission_id, "reject_once")
        second = await daemon.wait(run)

        assert await daemon.text(first) == "ok"
        assert len(await daemon.events(first, "permission.requested")) == 1
        assert await daemon.text(second) == "error"


async def test_what_was_allowed_for_the_session_is_not_asked_about_again() -> None:
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "write")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "allow_session")
        await daemon.wait(run)

        assert (await answer(daemon, session, "write"))["result"] == {}


async def test_rules_answer_for_a_person_here_too() -> None:
    """A write in the folders is a question like the agent's own, and so answered by the same."""
    rule = {"name": "edit here", "kinds": ["edit"], "paths": ["."], "answer": "allow_once"}
    async with running_daemon(ASKS, host={"policy": {"rules": [rule]}}) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "write")

        assert json.loads(await daemon.text(run))["result"] == {}
        (resolved,) = await daemon.events(run, "permission.resolved")
        assert payload(resolved)["rule"] == "edit here"


async def test_a_cancel_withdraws_the_question_and_answers_the_agent() -> None:
    """The agent is told no before it is told to stop, and nothing is written."""
    script = (
        ASKS
        + """
ON cancel KEEP
    MARK ${DIR}/cancelled
"""
    )
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "write")
        question = await daemon.question(session)
        await daemon.cancel(run)
        ended = await daemon.wait(run)

        (resolved,) = await daemon.events(ended, "permission.resolved")
        assert payload(resolved)["permissionId"] == question.permission_id
        assert payload(resolved)["outcome"] == "cancelled"
        assert await daemon.questions(session) == []
        assert not (daemon.work / "new").exists()


async def test_outside_of_the_folders_a_person_may_be_asked() -> None:
    """A decision of its own kind, for this file or for its folder as long as the session lives."""
    async with running_daemon(ASKS, host={"files": {"outside": "ask"}}) as daemon:
        (daemon.folder / "outside.txt").write_text("beyond")
        session = await daemon.session()
        run = await daemon.send(session, "outside")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "allow_session")
        first = await daemon.wait(run)
        again = await answer(daemon, session, "outside")

        assert question.kind == "path_access"
        assert json.loads(await daemon.text(first))["result"] == {"content": "beyond"}
        assert again["result"] == {"content": "beyond"}


async def test_a_file_outside_that_was_shown_and_allowed_may_be_written() -> None:
    """The agent has asked for that very file as a tool call: its neighbour stays closed."""
    script = """
ON prompt
    PERM c1 y:allow_once kind=edit rawInput={"path":"${DIR}/outside.txt"}
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/outside.txt", "content": "x"}
    MSG "${OUTCOME} "
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/other.txt", "content": "x"}
    MSG ${OUTCOME}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "write")
        await daemon.client.respond((await daemon.question(session)).permission_id, "y")
        await daemon.wait(run)

        assert await daemon.text(run) == "ok error"
        assert (daemon.folder / "outside.txt").read_text() == "x"
        assert not (daemon.folder / "other.txt").exists()


async def test_further_directories_of_the_session_count() -> None:
    async with running_daemon(ASKS) as daemon:
        (daemon.folder / "outside.txt").write_text("beyond")
        session = await daemon.session(additionalDirectories=[str(daemon.folder)])

        assert (await answer(daemon, session, "outside"))["result"] == {"content": "beyond"}


async def test_an_agent_that_dies_leaves_no_question() -> None:
    script = """
ON prompt
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/b",
        "content": ""} nowait
    GATE ${DIR}/die
    KILL
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "write")
        await daemon.question(session)
        daemon.open("die")
        ended = await daemon.wait(run)

        assert ended.status == "interrupted"
        assert await daemon.questions(session) == []
        (expired,) = await daemon.questions(session, "expired")
        assert expired.host_run_id == ended.host_run_id


async def test_an_agent_may_take_a_request_back() -> None:
    """Answered all the same, and the question that it had led to is withdrawn."""
    script = """
ON prompt
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/b",
        "content": ""} nowait as=w id="w-1"
    GATE ${DIR}/go
    NOTIFY $/cancel_request {"requestId": "w-1"}
    AWAIT w save=${DIR}/answer
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "write")
        question = await daemon.question(session)
        daemon.open("go")
        ended = await daemon.wait(run)

        assert json.loads(await daemon.marked("answer"))["error"]["code"] == -32800
        assert await daemon.questions(session) == []
        (expired,) = await daemon.questions(session, "expired")
        assert expired.permission_id == question.permission_id
        assert ended.status == "completed"
        assert not (daemon.work / "b").exists()


# -- editors --------------------------------------------------------------------------------------


async def serve(editor: Wire, result: object, heard: list[dict[str, Any]]) -> None:
    """Answer whatever the daemon asks of this client."""
    while True:
        frame = await editor.read()
        if "method" in frame and "id" in frame:
            heard.append(frame)
            reply = {"jsonrpc": "2.0", "id": frame["id"]}
            await editor.send({**reply, **({"result": result} if result is not None else {
                "error": {"code": -32002, "message": "not open here"}})})  # fmt: skip


@pytest.mark.parametrize(("result", "text"), [({"content": "unsaved"}, "unsaved"), (None, "disk")])
async def test_an_editor_of_the_session_is_asked_before_the_disk(result: object, text: str) -> None:
    """What it has in its buffer counts; what it does not have is read from the file."""
    offer = {"fs": {"readTextFile": True, "writeTextFile": True}}
    async with (
        running_daemon(ASKS, host=ALLOWED) as daemon,
        daemon.wire(capabilities=offer) as editor,
    ):
        (daemon.work / "a.txt").write_text("disk")
        session = await daemon.session()
        await editor.result("events/subscribe", {"scope": {"sessionId": session}, "after": "now"})
        heard: list[dict[str, Any]] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, editor, result, heard)
            read = await answer(daemon, session, "read")
            written = await answer(daemon, session, "write")
            tasks.cancel_scope.cancel()

        assert read["result"] == {"content": text}
        assert written["result"] == {}
        assert [frame["method"] for frame in heard] == ["fs/read_text_file", "fs/write_text_file"]
        assert heard[0]["params"] == {"sessionId": session, "path": str(daemon.work / "a.txt")}
        assert heard[1]["params"]["content"] == "é€😀\n"
        on_disk = (daemon.work / "new" / "b.txt").exists()
        assert on_disk == (result is None)


async def test_what_an_editor_has_is_no_more_than_one_answer_may_be() -> None:
    """A huge buffer is refused like a huge file."""
    offer = {"fs": {"readTextFile": True}}
    host = {"files": {**ALLOWED["files"], "max_read_bytes": 65536}}
    async with (
        running_daemon(ASKS, host=host) as daemon,
        daemon.wire(capabilities=offer) as editor,
    ):
        (daemon.work / "a.txt").write_text("disk")
        session = await daemon.session()
        await editor.result("events/subscribe", {"scope": {"sessionId": session}, "after": "now"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, editor, {"content": "é" * 32769}, [])
            refused = await answer(daemon, session, "read")
            tasks.cancel_scope.cancel()
        assert "more than 65536 bytes" in refused["error"]["message"]


async def test_the_daemons_own_files_are_nobodys() -> None:
    """Its store and its secrets, also where the session's folder holds them, and through a link."""
    own = ["state/journal.db", "state/secrets/x.json", "work/link"]
    reads = [f'{{"sessionId": "${{SESSION}}", "path": "${{DIR}}/{path}"}}' for path in own]
    async with running_daemon(asking(*reads), host={"files": {"read": "allow"}}) as daemon:
        (daemon.work / "link").symlink_to(daemon.journal.path)
        session = await daemon.session(cwd=str(daemon.folder))
        for number in range(len(own)):
            refused = (await answer(daemon, session, f"read {number}"))["error"]
            assert "belongs to the daemon" in refused["message"], refused
