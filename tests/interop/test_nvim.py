"""Our plugin in a real Neovim, against a real daemon with the bundled agent."""

import json

import anyio
import pytest

from tests.interop.neovim import PLUGIN, Neovim, neovim
from tests.support.daemon import Daemon, eventually, running_daemon
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.timeout(90)

SCRIPT = """
ON prompt "permission"
    CALL w pending title="Write notes.md" kind=edit
    PERM w yes:allow_once:"Allow once" no:reject_once:Reject title="Write notes.md"
    UPD w completed
    MSG "It was ${OUTCOME}."

ON prompt "wait"
    MSG "before,"
    MARK ${DIR}/waits
    GATE ${DIR}/go
    MSG " after."

ON prompt "read"
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${CWD}/notes.txt"}
    MSG "It is ${ANSWER}"

ON prompt "crash"
    MSG "Goodbye."
    EXIT 70

ON prompt
    THOUGHT "Short."
    PLAN completed:"Answer"
    MSG "one\\ntw"
    MSG "o\\nthree"
"""


async def started(daemon: Daemon, editor: Neovim, text: str = "wait") -> None:
    """A turn that waits for `go`."""
    await editor.command(f"AcphostSend {text}")
    await daemon.marked("waits")


async def test_a_message_is_sent_and_its_answer_streams_in() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend hello there")
        lines = await editor.shows("three")
        assert lines == [
            "> hello there", "", "Short.", "", "✓ Answer", "", "one", "two", "three",
        ]  # fmt: skip
        await editor.says("fake · idle")
        await editor.command("AcphostSend again")
        lines = await editor.shows("> again")
        assert lines[:9] == (await editor.chat())[:9]
        await daemon.hears("session/prompt", 2)


async def test_a_selection_and_the_current_file_go_along_as_context() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        file = daemon.work / "code.py"
        file.write_text("one = 1\ntwo = 2\nthree = 3\n")
        await editor.command(f"edit {file}")
        await editor.command("2,3AcphostSend explain")
        heard = await daemon.hears("session/prompt")
        block, text = heard["params"]["prompt"]
        assert block["resource"]["text"] == "two = 2\nthree = 3\n"
        assert block["resource"]["uri"] == f"file://{file}#L2-L3"
        assert text == {"type": "text", "text": "explain"}
        await editor.says("idle")
        await editor.command("AcphostSend and the whole")
        heard = await daemon.hears("session/prompt", 2)
        assert heard["params"]["prompt"][0] == {
            "type": "resource_link", "uri": f"file://{file}", "name": "code.py",
        }  # fmt: skip
        await editor.says("idle")
        (session,) = (await daemon.client.list_sessions()).items
        runs = (await daemon.client.list_runs()).items
        assert {tuple(run.context_refs) for run in runs} == {("selection",), ("active_editor",)}
        assert session.cwd == str(daemon.work)


async def test_a_question_is_asked_and_answered() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend permission please")
        asked = await editor.is_asked()
        assert asked["prompt"] == "Write notes.md"
        assert [item["name"] for item in asked["items"]] == ["Allow once", "Reject"]
        await editor.says("1 to answer")
        await editor.choose(1)
        lines = await editor.shows("It was yes.")
        assert "? Write notes.md: yes by neovim" in lines
        assert "✓ Write notes.md" in lines
        await editor.says("fake · idle")


async def test_a_question_that_somebody_else_answers_goes() -> None:
    """The dialog that is still open then counts for nothing."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend permission please")
        await editor.is_asked()
        (question,) = (await daemon.client.list_decisions()).items
        await daemon.client.respond(question.permission_id, "no")
        lines = await editor.shows("It was no.")
        assert any(line.startswith("? Write notes.md: no by ") for line in lines)
        await editor.choose(1)
        await editor.says("fake · idle")
        assert "the question is closed" in str(await editor.lua("return _G.told"))
        await editor.command("AcphostPermission")
        assert "nothing is to be answered" in str(await editor.lua("return _G.told"))


async def test_a_dialog_that_was_closed_can_be_had_again() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend permission please")
        await editor.is_asked()
        await editor.choose(None)
        await editor.command("AcphostPermission")
        await editor.is_asked(2)
        await editor.choose(2)
        await editor.shows("It was no.")


async def test_a_form_is_filled_in_field_by_field() -> None:
    """What is required comes first; what is chosen is chosen, what is written becomes a number."""
    schema = {
        "type": "object", "required": ["branch", "count"],
        "properties": {
            "again": {"type": "boolean", "title": "Again?"},
            "branch": {"type": "string", "title": "Branch", "enum": ["main", "next"]},
            "count": {"type": "integer", "title": "Count"},
        },
    }  # fmt: skip
    form = {"sessionId": "${SESSION}", "mode": "form", "message": "Which branch?",
            "requestedSchema": schema}  # fmt: skip
    script = f"ON prompt\n    ASK elicitation/create {json.dumps(form)}\n    MSG ${{ANSWER}}\n"
    async with running_daemon(script) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend go")
        asked = await editor.is_asked()
        assert (asked["prompt"], asked["items"]) == ("Which branch?", ["Fill in", "Decline"])
        await editor.says("1 to answer")
        await editor.choose(1)
        assert (await editor.is_asked(2))["prompt"] == "Branch"
        await editor.choose(2)
        assert (await editor.is_asked(3))["prompt"] == "Count: "
        await editor.type("3")
        assert (await editor.is_asked(4))["prompt"] == "Again? (optional)"
        await editor.choose(None)
        lines = await editor.shows("? Which branch?: accept by neovim")
        await editor.says("fake · idle")
        (said,) = [line for line in await editor.chat() if line.startswith("{")]
        content = {"branch": "next", "count": 3}
        assert json.loads(said)["result"] == {"action": "accept", "content": content}
        assert lines[0] == "> go"


async def test_an_address_is_opened_by_whoever_says_so() -> None:
    page = {"sessionId": "${SESSION}", "mode": "url", "message": "Log in there",
            "url": "https://example.org/in", "elicitationId": "e1"}  # fmt: skip
    script = f"ON prompt\n    ASK elicitation/create {json.dumps(page)}\n    MSG ${{ANSWER}}\n"
    async with running_daemon(script) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend go")
        asked = await editor.is_asked()
        assert asked["items"] == ["Open https://example.org/in", "Decline"]
        await editor.choose(1)
        await editor.shows("? Log in there: accept by neovim")
        assert "open https://example.org/in" in await editor.lua("return _G.told")


async def test_a_waiting_message_is_changed_and_sent_next() -> None:
    """What else the prompt has stays with it."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await started(daemon, editor)
        await editor.command("AcphostSend second")
        await editor.command("AcphostSend third")
        await editor.says("running · 2 queued")
        await editor.command("AcphostQueue")
        await editor.is_asked()
        await editor.choose(2)
        await editor.is_asked(2)
        await editor.choose(2)
        await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'third,', 'and last' })")
        await editor.lua("vim.api.nvim_feedkeys(vim.keycode('<CR>'), 'x', false)")
        await eventually_queue(daemon, ["second", "third, and last"])
        await editor.command("AcphostQueue")
        await editor.is_asked(3)
        await editor.choose(2)
        await editor.is_asked(4)
        await editor.choose(3)
        await eventually_queue(daemon, ["third, and last", "second"])
        daemon.open("go")
        await editor.says("fake · idle")
        assert daemon.prompts() == ["wait", "third,\nand last", "second"]


async def eventually_queue(daemon: Daemon, previews: list[str]) -> None:
    """Wait until that is what waits."""
    (session,) = (await daemon.client.list_sessions()).items
    with anyio.fail_after(PATIENCE):
        while [each.preview for each in await daemon.queue(session.session_id)] != previews:  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_messages_wait_in_the_queue_and_can_be_taken_back() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await started(daemon, editor)
        await editor.command("AcphostSend second")
        await editor.command("AcphostSend third")
        await editor.says("running · 2 queued")
        shown = """
        local ns = vim.api.nvim_get_namespaces()["acphost.queue"]
        local buffer = require("acphost").place().chat.buffer
        local marks = vim.api.nvim_buf_get_extmarks(buffer, ns, 0, -1, { details = true })
        return vim.tbl_map(function(line) return line[1][1] end, marks[1][4].virt_lines)"""
        assert await editor.lua(shown) == ["  … 1: second", "  … 2: third"]
        await editor.command("AcphostQueue")
        await editor.is_asked()
        await editor.choose(1)
        asked = await editor.is_asked(2)
        assert asked["items"] == ["Take it back", "Change its text", "Send it next"]
        await editor.choose(1)
        await editor.says("1 queued")
        daemon.open("go")
        await editor.shows("> third", "three")
        await editor.says("fake · idle")
        assert daemon.prompts() == ["wait", "third"]


async def test_a_turn_is_stopped() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await started(daemon, editor)
        await editor.says("running")
        await editor.command("AcphostStop")
        await editor.shows("— cancelled")
        await editor.says("fake · idle")


async def test_neovim_dies_in_a_turn_and_comes_back_where_it_was() -> None:
    """The run that was at work is remembered; the rest of it comes once and in order."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await started(daemon, editor)
        await editor.shows("before,")
        run = (await daemon.client.list_runs()).items[0]
        file = editor.remembered()
        await editor.says("running")
        kept = json.loads(file.read_text())["activeRun"]
        assert kept["schema"] == "mnote.page_ai_active_run_snapshot.v1"
        assert kept["hostRunId"] == run.host_run_id
        editor.kill()
        daemon.open("go")
        await daemon.wait(run)
        await editor.start()
        await editor.command("Acphost")
        lines = await editor.shows("— while you were away")
        assert lines[:3] == ["> wait", "", "before,"]
        assert [line for line in lines if "after." in line] == [" after."]
        await editor.says("fake · idle")
        assert "activeRun" not in json.loads(file.read_text())


async def test_neovim_is_restarted_while_a_turn_goes_on() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await started(daemon, editor)
        await editor.shows("before,")
        await editor.quit()
        await editor.start()
        await editor.command("Acphost")
        await editor.shows("> wait", "before,")
        await editor.says("running")
        daemon.open("go")
        await editor.says("idle")
        assert "".join(await editor.chat()).count(" after.") == 1
        assert daemon.prompts() == ["wait"]


async def test_a_session_that_is_gone_is_forgotten() -> None:
    """What is remembered of another store shows nothing as running."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await started(daemon, editor)
        await editor.says("running")
        file = editor.remembered()
        editor.kill()
        kept = json.loads(file.read_text())
        file.write_text(json.dumps({**kept, "storeId": "another"}))
        await editor.start()
        await editor.command("Acphost")
        await eventually(lambda: not file.exists())
        await editor.says("fake · new")
        assert await editor.chat() == [""]
        daemon.open("go")


async def test_the_daemon_dies_and_comes_back() -> None:
    """The editor goes on by itself; what was shown is not shown again."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend hello")
        before = await editor.shows("three")
        await editor.says("idle")
        await daemon.kill()
        await editor.says("no daemon")
        await editor.command("AcphostSend while it is away")
        await daemon.start()
        lines = await editor.shows("> while it is away")
        assert lines[: len(before)] == before
        await editor.says("fake · idle")
        assert daemon.prompts() == ["hello", "while it is away"]


async def test_an_interrupted_run_is_tried_once_more() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostSend crash")
        await editor.shows("Goodbye.")
        await editor.says("held")
        daemon.rewrite(SCRIPT.replace('ON prompt "crash"', 'ON prompt "never"'))
        await editor.command("AcphostResume")
        await editor.shows("three")
        await editor.says("idle")


async def test_a_daemon_that_is_not_there_is_waited_for() -> None:
    async with running_daemon(SCRIPT) as daemon:
        await daemon.stop()
        async with neovim(daemon) as editor:
            await editor.command("AcphostSend hello")
            told = await editor.until("return _G.told", bool)
            assert "acphost serve" in told[0]
            await daemon.start()
            await editor.shows("> hello", "three")


async def test_other_sessions_of_the_folder_can_be_chosen() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        session = await daemon.session()
        await daemon.ask(session, "from elsewhere")
        await editor.command("AcphostSend mine")
        await editor.shows("> mine")
        await editor.command("AcphostSessions")
        asked = await editor.is_asked()
        place = 1 + [item["sessionId"] for item in asked["items"]].index(session)
        await editor.choose(place)
        await editor.shows("> from elsewhere")
        assert "> mine" not in await editor.chat()
        await editor.command("AcphostNew")
        await editor.says("fake · new")
        await editor.command("AcphostSend a third")
        await editor.shows("> a third")
        assert len((await daemon.client.list_sessions()).items) == 3


async def test_what_is_not_saved_is_what_agents_read() -> None:
    """Only a buffer with changes answers; a clean one leaves it to the file."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        file = daemon.work / "notes.txt"
        file.write_text("one\ntwo\nthree\n")
        await editor.command(f"edit {file}")
        read = "return { require('acphost.buffers').read(vim.json.decode([==[%s]==])) }"
        whole = json.dumps({"path": str(file)})
        refused = await editor.lua(f"local _, e = unpack({read[7:] % whole}) return e")
        assert refused["code"] == -32002
        await editor.lua("vim.api.nvim_buf_set_lines(0, 1, 2, false, { 'TWO', 'two and a half' })")
        assert await editor.lua(read % whole) == [{"content": "one\nTWO\ntwo and a half\nthree\n"}]
        some = json.dumps({"path": str(file), "line": 2, "limit": 2})
        assert await editor.lua(read % some) == [{"content": "TWO\ntwo and a half\n"}]


async def test_an_agent_reads_what_is_not_saved() -> None:
    """The daemon asks the editor; where no buffer has changes the agent gets the file."""
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        file = daemon.work / "notes.txt"
        file.write_text("saved\n")
        await editor.command(f"edit {file}")
        await editor.command("AcphostSend read it")
        await editor.shows('It is {"result":{"content":"saved\\n"}}')
        await editor.says("idle")
        await editor.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'typed' })")
        await editor.command("AcphostSend read it again")
        await editor.shows('It is {"result":{"content":"typed\\n"}}')


async def test_a_message_of_several_lines() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("AcphostWrite")
        await editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'first', 'second' })")
        await editor.lua("vim.api.nvim_feedkeys(vim.keycode('<Esc><CR>'), 'x', false)")
        await editor.shows("> first", "> second", "three")
        assert daemon.prompts() == ["first\nsecond"]


async def test_the_help_and_the_health_check() -> None:
    async with running_daemon(SCRIPT) as daemon, neovim(daemon) as editor:
        await editor.command("checkhealth acphost")
        lines = await editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
        assert any(f"a daemon answers at {daemon.socket}" in line for line in lines)
        copy = daemon.folder / "doc"
        copy.mkdir()
        (copy / "acphost.txt").write_text((PLUGIN / "doc" / "acphost.txt").read_text())
        await editor.command(f"helptags {copy}")
        assert (copy / "tags").read_text().count(":Acphost") > 10
