"""Silence and false success: an agent that says nothing, and answers that are none."""

from acphost.wire.event import Event
from tests.support.daemon import Daemon, eventually, payload, running_daemon
from tests.support.profiles import hosted
from tests.support.terminal import acphost

SILENT = """
ON prompt
    MSG "a"
    GATE ${DIR}/go
    CALL c1 in_progress
    GATE ${DIR}/on
    UPD c1 completed
    GATE ${DIR}/end
"""


def states(daemon: Daemon, *words: str, after: Event | None = None) -> list[Event]:
    """What was said of agents so far, or behind an event."""
    first = 0 if after is None else int(after.offset)
    return [
        event
        for event in daemon.seen
        if event.kind == "agent.state"
        and payload(event)["state"] in words
        and int(event.offset) > first
    ]


async def test_silence_is_shown_told_and_taken_back() -> None:
    """In session, list and status, with the last sign of life; as an event; until it speaks."""
    async with running_daemon(SILENT, agent={"quiet_after": 0.3}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        # On a slow machine it may have been quiet before its first word, too.
        word = await daemon.has_event(session, "message.delta")
        await eventually(lambda: bool(states(daemon, "quiet", after=word)))
        await daemon.is_status(session, "quiet")
        (told,) = map(payload, states(daemon, "quiet", after=word))
        assert told["agentId"] == "fake"
        assert (told["sessionId"], told["hostRunId"]) == (session, run.host_run_id)
        seen = await daemon.get(session)
        listed = (await daemon.client.list_sessions()).items
        status = await daemon.status(session)
        assert (seen.status, listed[0].status, status.status) == ("quiet", "quiet", "quiet")
        assert told["lastSignOfLifeAt"] in (seen.status_reason or "")
        assert status.last_sign_of_life_at == told["lastSignOfLifeAt"]
        assert status.active_run is not None
        assert "no sign of life" in (await acphost(daemon.socket, "status")).out

        daemon.open("go")
        call = await daemon.has_event(session, "tool.started")
        await daemon.is_status(session, "running")
        daemon.open("on")
        await eventually(lambda: bool(states(daemon, "quiet", after=call)))  # and silent again
        daemon.open("end")
        assert (await daemon.wait(run)).status == "completed"
        assert (await daemon.get(session)).status == "idle"


async def test_a_tool_may_take_its_time_and_so_may_a_person() -> None:
    """Neither an open call nor an open question is silence; words after the call are."""
    script = """
ON prompt "tool"
    CALL c1 pending title="Build" kind=execute
    GATE ${DIR}/go
ON prompt "words"
    CALL c1 pending title="Build" kind=execute
    MSG "so"
    GATE ${DIR}/end
"""
    async with running_daemon(script, agent={"quiet_after": 0.2}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "tool")
        call = await daemon.has_event(session, "tool.started")
        other = await daemon.session()
        second = await daemon.send(other, "words")
        word = await daemon.has_event(other, "message.delta")
        await eventually(lambda: bool(states(daemon, "quiet", after=word)))
        await daemon.is_status(session, "running")
        quiet = states(daemon, "quiet", after=call)
        assert session not in {event.session_id for event in quiet}
        daemon.open("go")
        daemon.open("end")
        await daemon.wait(run)
        await daemon.wait(second)


async def test_a_stop_of_a_quiet_turn_shows_at_once() -> None:
    """Stopping is news, however long the agent was silent."""
    script = """
ON prompt
    STAY
ON cancel
    GATE ${DIR}/go
    END cancelled
"""
    async with running_daemon(script, agent={"quiet_after": 0.2}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        await daemon.is_status(session, "quiet")
        await daemon.cancel(run)
        assert (await daemon.get(session)).status == "stopping"
        daemon.open("go")
        assert (await daemon.wait(run)).status == "cancelled"


async def test_a_crash_in_a_quiet_turn_is_put_right() -> None:
    """The next start finds the run interrupted, and the session held."""
    async with running_daemon(SILENT, agent={"quiet_after": 0.2}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        await daemon.is_status(session, "quiet")
        await daemon.restart()
        assert (await daemon.run(run)).status == "interrupted"
        assert (await daemon.get(session)).status == "held"


async def test_reasonix_that_tries_again_for_ever_is_quiet_and_can_be_stopped() -> None:
    """HTTP 500 and 429: nothing on the wire; a stop ends it, and the session goes on."""
    async with hosted("reasonix", agent={"quiet_after": 0.3}) as daemon:
        session = await daemon.session()
        for status in ("500", "429"):
            run = await daemon.send(session, f"http {status}")
            await daemon.is_status(session, "quiet")
            await daemon.cancel(run)
            assert (await daemon.wait(run)).status == "cancelled"
        assert (await daemon.ask(session, "say 1")).status == "completed"


async def test_reasonix_fails_at_once_where_trying_again_is_vain() -> None:
    """The provider's own words in the error."""
    async with hosted("reasonix") as daemon:
        run = await daemon.ask(await daemon.session(), "http 401")
        assert (run.status, run.error_code) == ("failed", "agent_error")
        assert "401" in (run.error or "")


async def test_hermes_tells_an_upstream_failure_as_text_and_it_is_marked() -> None:
    """Completed, with what was said, and marked; a slash command is not."""
    async with hosted("hermes") as daemon:
        session = await daemon.session()
        failed = await daemon.ask(session, "http 500")
        assert (failed.status, failed.error_code) == ("completed", "upstream_error")
        assert "HTTP 500" in (failed.error or "")
        assert "HTTP 500" in await daemon.text(failed)
        empty = await daemon.ask(session, "say nothing at all")
        assert "No reply" in await daemon.text(empty)
        assert (empty.status, empty.error_code, empty.empty) == ("completed", "empty_answer", True)
        slash = await daemon.ask(session, "/help")
        assert (slash.status, slash.error_code) == ("completed", None)
        good = await daemon.ask(session, "say 1")
        assert (good.status, good.error_code, good.empty) == ("completed", None, False)


async def test_an_end_without_a_word_is_empty() -> None:
    """By any agent."""
    async with running_daemon("ON prompt\n    END end_turn\n") as daemon:
        run = await daemon.ask(await daemon.session(), "x")
        assert (run.status, run.empty) == ("completed", True)


async def test_the_life_of_an_agent_is_told() -> None:
    """Starting, ready, exited with its code; failed with the cure; started again after a pause."""
    script = "ON prompt\n    EXIT 3\n"
    bad = "ON init\n    EXIT 7\n"
    async with running_daemon(script, others={"bad": bad}) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "x")
        assert run.status == "interrupted"
        await eventually(lambda: bool(states(daemon, "exited")))
        starting, ready, exited = [
            payload(event) for event in states(daemon, "starting", "ready", "exited")
        ]
        assert starting["launchId"] == ready["launchId"] == exited["launchId"]
        assert ready["pid"] == exited["pid"]
        assert (exited["exitCode"], exited["expected"]) == (3, False)

        other = await daemon.session("bad")
        assert (await daemon.ask(other, "x")).status == "failed"
        await eventually(lambda: bool(states(daemon, "failed")))
        (failed,) = map(payload, states(daemon, "failed"))
        assert "7" in failed["reason"]
        assert "acphost agents check bad" in failed["cure"]
        assert (await daemon.ask(other, "y")).status == "failed"
        await eventually(lambda: bool(states(daemon, "restarting")))
        assert payload(states(daemon, "restarting")[0])["delayMs"] > 0


async def test_an_agent_that_wants_a_login_is_told() -> None:
    """With its ways to log in."""
    script = 'ON new\n    FAIL -32000 "log in first"\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        await daemon.is_status(session, "auth_required")
        await eventually(lambda: bool(states(daemon, "auth_required")))
        (told,) = map(payload, states(daemon, "auth_required"))
        assert (told["agentId"], told["sessionId"]) == ("fake", session)
        assert told["cure"]
        assert (await daemon.run(run)).status == "pending"


async def test_a_turn_may_be_longer_than_any_limit_of_other_requests() -> None:
    """Streaming, then silent in a tool, then silent: each longer than a start or a load may be."""
    script = """
ON prompt
    REPEAT 8
        MSG "."
        PAUSE 300
    CALL c1 in_progress
    PAUSE 2200
    UPD c1 completed
    PAUSE 2200
    MSG "done"
"""
    limits = {"init_timeout": 2, "load_timeout": 2, "cancel_grace": 0.3, "quiet_after": 1}
    async with running_daemon(script, agent=limits) as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.status == "completed"
        assert await daemon.text(run) == "." * 8 + "done"
        assert len(daemon.launches()) == len(daemon.prompts()) == 1
