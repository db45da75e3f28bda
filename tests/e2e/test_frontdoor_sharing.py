"""Several clients on one session: editors through the front door, and others on the socket."""

import signal

from tests.support.daemon import payload, running_daemon
from tests.support.editor import editor

ASK = """
ON prompt ~"^ask"
    MSG "may I? "
    PERM c1 yes:allow_once:Yes no:reject_once:No
    MSG "${OUTCOME}"
    GATE ${DIR}/gate
    MSG ", done"
ON prompt ~"^wait"
    MSG "working"
    GATE ${DIR}/gate
"""


async def test_two_clients_see_both_users_once_and_share_the_permission() -> None:
    """One answers, the other's dialog goes; one dies, the turn goes on."""
    async with running_daemon(ASK) as daemon, editor(daemon) as zed:
        session = await zed.new()
        request = await zed.begin(session, "ask in zed")
        question = await zed.question()
        # The other client is on the socket, and answers.
        asked = await daemon.question(session)
        await daemon.client.respond(asked.permission_id, "yes")
        await zed.withdrawn(question)
        await zed.choose(question, "no")  # too late: an editor that does not know how to withdraw
        await zed.shows(session, "yes")
        run = await daemon.send(session, "hello from the socket")
        daemon.open("gate")
        await zed.answer(request)
        await daemon.wait(run)
        await zed.shows(session, "hello from the socket", who="user")
        ended = await zed.until(lambda each: "_meta" in each.get("params", {}).get("update", {}))
        assert ended["params"]["update"]["_meta"]["acphost/turn"]["status"] == "completed"
        assert zed.said(session, "user") == "hello from the socket"
        assert zed.said(session) == "may I? yes, doneok"
        users = await daemon.history(session, "message.user")
        told = [block["text"] for event in users for block in payload(event)["content"]]
        assert told == ["ask in zed", "hello from the socket"]


async def test_two_editors_share_a_session_and_one_dies_in_the_turn() -> None:
    """The second one sees the first one's prompt, answers its question, and outlives it."""
    async with running_daemon(ASK) as daemon, editor(daemon) as second:
        async with editor(daemon) as first:
            session = await first.new()
            await second.load(session)
            await first.begin(session, "ask")
            one, two = await first.question(), await second.question()
            assert second.said(session, "user") == "ask"
            assert first.said(session, "user") == ""
            await second.choose(two, "no")
            await first.withdrawn(one)
            first.process.send_signal(signal.SIGKILL)
        await second.shows(session, "no")
        daemon.open("gate")
        await second.shows(session, ", done")
        assert (await second.prompt(session, "hello"))["stopReason"] == "end_turn"


async def test_a_dialog_of_an_editor_that_goes_away_is_open_for_the_next() -> None:
    """Its end is no answer; whoever opens the session is asked."""
    async with running_daemon(ASK) as daemon:
        async with editor(daemon) as first:
            session = await first.new()
            await first.begin(session, "ask")
            await first.question()
            assert await first.close() == 0
        for method in ("session/resume", "session/load"):
            async with editor(daemon) as next_one:
                await next_one.load(session, method)
                question = await next_one.question()
                if method == "session/load":
                    await next_one.choose(question, "yes")
                    await next_one.shows(session, "yes")
                assert await next_one.close() == 0
        daemon.open("gate")


async def test_a_stop_from_the_other_editor_answers_each_waiting_prompt_once() -> None:
    """The turn is cancelled for all; what the first has waiting stays."""
    async with (
        running_daemon(ASK) as daemon,
        editor(daemon) as first,
        editor(daemon) as second,
    ):
        session = await first.new()
        await second.load(session)
        running = await first.begin(session, "wait")
        await second.shows(session, "working")
        waiting = await first.queued(daemon, session)
        await second.notify("session/cancel", sessionId=session)
        assert (await first.answer(running))["result"]["stopReason"] == "cancelled"
        assert (await first.answer(waiting))["result"]["stopReason"] == "end_turn"
        assert sum(each.get("id") == running for each in first.messages) == 1


async def test_an_editor_that_comes_back_follows_the_turn_it_left() -> None:
    """Resume tells no past; what comes is told on, and the session can be stopped from there."""
    async with running_daemon(ASK) as daemon:
        async with editor(daemon) as first:
            session, _ = await first.busy()
            assert await first.close() == 0
        async with editor(daemon) as second:
            await second.load(session, "session/resume")
            assert second.said(session) == ""
            await second.notify("session/cancel", sessionId=session)
            await daemon.until(
                session, lambda seen: seen.last_run_status == "cancelled", "the stop"
            )
            assert (await second.prompt(session, "hello"))["stopReason"] == "end_turn"
            assert second.said(session) == "ok"


async def test_the_session_named_at_the_start_is_what_the_editor_opens() -> None:
    """For editors that know no other way than session/new: the past follows its answer."""
    async with running_daemon() as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hello")
        async with editor(daemon, "--session", session) as zed:
            assert await zed.new() == session
            await zed.shows(session, "ok")
            assert zed.said(session, "user") == "hello"
            assert await zed.new() != session


async def test_the_past_is_told_in_few_updates_and_tool_calls_as_they_ended() -> None:
    """Chunks joined, one card for each call, the plan as it was last."""
    script = """
ON prompt
    MSG "a"
    MSG "b"
    CALL c1 pending title="Read" kind=read
    UPD c1 in_progress
    PLAN pending:one
    UPD c1 completed rawOutput={"n":1}
    PLAN completed:one
    MSG "c"
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await daemon.session()
        await daemon.ask(session, "hello")
        await zed.load(session)
        await zed.until(lambda each: "plan" in str(each.get("params")))
        told = zed.updates(session)
    assert [each["sessionUpdate"] for each in told] == [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call",
        "agent_message_chunk",
        "plan",
    ]
    assert told[1]["content"]["text"] == "ab"
    assert told[2]["status"] == "completed"
    assert told[2]["title"] == "Read"
    assert told[2]["rawOutput"] == {"n": 1}
    assert told[4]["entries"][0]["status"] == "completed"
