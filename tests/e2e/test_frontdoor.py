"""Any ACP editor, through `acphost acp`: a daemon, a scripted agent, and a scripted editor."""

from tests.support.daemon import running_daemon
from tests.support.editor import editor

TURN = """
ON prompt "hello"
    THOUGHT "let me see"
    MSG "hello "
    CALL c1 in_progress title="Read" kind=read
    UPD c1 completed
    MSG "back"
    END end_turn
ON prompt "wait"
    MSG "working"
    GATE ${DIR}/gate
    MSG " done"
ON prompt "ask"
    PERM c2 yes:allow_once:Yes no:reject_once:No
    MSG "chosen: ${OUTCOME}"
"""


async def test_an_editor_has_a_turn_and_its_updates_stand_before_its_answer() -> None:
    """New, prompt, answer: as with any agent."""
    async with running_daemon(TURN) as daemon, editor(daemon) as zed:
        session = await zed.new()
        request = await zed.begin(session, "hello")
        answer = await zed.answer(request)
        assert answer["result"]["stopReason"] == "end_turn"
        kinds = [update["sessionUpdate"] for update in zed.updates(session)]
        assert [kind for kind in kinds if kind != "available_commands_update"] == [
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
        assert zed.said(session) == "hello back"
        place = zed.place(request)
        assert all(message.get("method") != "session/update" for message in zed.messages[place:])
        assert await zed.close() == 0


async def test_an_update_never_comes_before_the_session_it_is_about() -> None:
    """The answer to session/new stands first, whatever the agent said while it was started."""
    told = '"sessionUpdate":"available_commands_update","availableCommands":[]'
    script = f"""
ON new
    UPDATE {{{told}}} session=s9
    ANSWER {{"sessionId":"s9"}}
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await zed.new()
        message = await zed.until(lambda each: each.get("method") == "session/update")
        assert message["params"]["sessionId"] == session
        before = zed.messages[: zed.messages.index(message)]
        assert any(each.get("result", {}).get("sessionId") == session for each in before)


async def test_load_tells_the_past_before_its_answer_and_an_editors_end_cancels_nothing() -> None:
    """One editor dies in mid-turn; the next one sees what was and what goes on."""
    async with running_daemon(TURN) as daemon:
        async with editor(daemon) as first:
            session = await first.new()
            await first.prompt(session, "hello")
            await first.begin(session, "wait")
            await first.shows(session, "working")
            assert await first.close() == 0
        async with editor(daemon) as second:
            request = await second.ask(
                "session/load", sessionId=session, cwd=second.work, mcpServers=[]
            )
            await second.answer(request)
            place = second.place(request)
            assert second.said(session, "user") == "hellowait"
            assert second.said(session) == "hello backworking"
            told = second.messages[:place]
            assert any(each.get("method") == "session/update" for each in told)
            daemon.open("gate")
            await second.shows(session, " done", after=place)


async def test_a_front_door_that_is_killed_leaves_the_turn_and_its_stream_goes_on_with_resume() -> (
    None
):
    """kill -9 in mid-turn; whoever resumes is told what comes from there on, and its end, once."""
    async with running_daemon(TURN) as daemon:
        async with editor(daemon) as first:
            session = await first.new()
            await first.begin(session, "wait")
            await first.shows(session, "working")
            first.process.kill()
            await first.process.wait()
        async with editor(daemon) as second:
            await second.load(session, "session/resume")
            assert second.said(session) == ""
            waiting = await second.begin(session, "hello")
            daemon.open("gate")
            assert (await second.answer(waiting))["result"]["stopReason"] == "end_turn"
            assert second.said(session) == " donehello back"
            ends = [
                each for each in second.updates(session) if "acphost/turn" in each.get("_meta", {})
            ]
            assert [each["_meta"]["acphost/turn"]["status"] for each in ends] == ["completed"]
        assert daemon.prompts() == ["wait", "hello"]


async def test_a_permission_is_asked_and_the_answer_reaches_the_agent() -> None:
    """The editor's own dialog."""
    async with running_daemon(TURN) as daemon, editor(daemon) as zed:
        session = await zed.new()
        request = await zed.begin(session, "ask")
        question = await zed.question()
        assert question["params"]["sessionId"] == session
        assert [option["optionId"] for option in question["params"]["options"]] == ["yes", "no"]
        await zed.choose(question, "yes")
        await zed.answer(request)
        assert zed.said(session) == "chosen: yes"


async def test_an_answer_that_was_not_offered_is_asked_for_once_more() -> None:
    """Its dialog is gone in the editor: without another the turn would wait for nobody."""
    async with running_daemon(TURN) as daemon, editor(daemon) as zed:
        session = await zed.new()
        request = await zed.begin(session, "ask")
        first = await zed.question()
        await zed.choose(first, "whatever")
        second = await zed.question(after=zed.messages.index(first) + 1)
        assert second["params"] == first["params"]
        await zed.choose(second, "no")
        await zed.answer(request)
        assert zed.said(session) == "chosen: no"


async def test_a_second_prompt_waits_and_a_stop_ends_both() -> None:
    """Both requests stay open; `session/cancel` answers each of them once."""
    async with running_daemon(TURN) as daemon, editor(daemon) as zed:
        session, first = await zed.busy()
        second = await zed.queued(daemon, session)
        await zed.notify("session/cancel", sessionId=session)
        assert (await zed.answer(first))["result"]["stopReason"] == "cancelled"
        assert (await zed.answer(second))["result"]["stopReason"] == "cancelled"
        assert daemon.prompts() == ["wait"]


async def test_a_second_prompt_is_answered_when_its_own_turn_is_over() -> None:
    """The queue is the daemon's; the editor sees two turns, one after the other."""
    async with running_daemon(TURN) as daemon, editor(daemon) as zed:
        session, first = await zed.busy()
        second = await zed.queued(daemon, session)
        assert not zed.is_answered(second)
        daemon.open("gate")
        await zed.answer(second)
        assert zed.place(first) < zed.place(second)
        assert zed.said(session) == "working donehello back"
        assert await zed.close() == 0
