"""The time of day is set while the daemon runs, or the machine has slept: nothing hangs on it."""

import sys

import anyio
import pytest

from tests.support import skewed
from tests.support.config import Table
from tests.support.daemon import Daemon, payload, running_daemon

DAY = 86_400
FORWARD, BACK = 3 * DAY, -3 * DAY


def with_clock(daemon: Daemon) -> None:
    """Have the daemon's time of day off by what is in a file, for now by nothing."""
    set_to(daemon, 0)
    daemon.wrapper = [sys.executable, skewed.__file__, str(daemon.path("clock")), *daemon.wrapper]


def set_to(daemon: Daemon, seconds: float) -> None:
    """Set the daemon's clock, in one step."""
    new = daemon.path("clock.new")
    new.write_text(str(seconds))
    new.rename(daemon.path("clock"))


async def test_the_daemon_under_test_goes_by_that_clock() -> None:
    """Else the other tests would show nothing."""
    async with running_daemon(prepare=with_clock) as daemon:
        before = (await daemon.client.ping()).now
        set_to(daemon, FORWARD)
        assert (await daemon.client.ping()).now[:10] > before[:10]


@pytest.mark.parametrize("leap", [FORWARD, BACK], ids=["forward", "back"])
async def test_a_turn_is_what_it_was_after_the_clock_was_set(leap: float) -> None:
    """Nobody is quiet for it, no deadline has passed, a late word belongs to its turn."""
    script = """
ON prompt
    MSG "a"
    MARK ${DIR}/begun
    GATE ${DIR}/go
    PERM c1 a:allow_once d:reject_once
    CALL c2 in_progress
    END
    GATE ${DIR}/late
    UPD c2 completed
"""
    host: Table = {"permissions": {"timeout": 600}}
    agent: Table = {"quiet_after": 600}
    async with running_daemon(script, host=host, agent=agent, prepare=with_clock) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.marked("begun")
        set_to(daemon, leap)
        status = await daemon.status(session)
        assert (status.status, (await daemon.get(session)).status) == ("running", "running")
        daemon.open("go")
        question = await daemon.question(session)
        set_to(daemon, 0)
        assert [each.permission_id for each in await daemon.questions(session)] == [
            question.permission_id
        ]
        await daemon.client.respond(question.permission_id, "a")
        ended = await daemon.wait(run)
        assert ended.status == "completed"
        set_to(daemon, leap)
        daemon.open("late")
        await daemon.has_event(session, "tool.completed")
        assert "tool.completed" in await daemon.kinds(run)
        await daemon.restart()
        assert (await daemon.get(session)).status == "idle"
        assert (await daemon.run(run)).status == "completed"


async def test_silence_is_noticed_and_a_question_times_out_although_the_clock_went_back() -> None:
    """Three days are not waited for."""
    script = """
ON prompt "quiet"
    MARK ${DIR}/begun
    GATE ${DIR}/go
ON prompt
    PERM c1 a:allow_once d:reject_once
    MSG ${OUTCOME}
"""
    host: Table = {"permissions": {"timeout": 0.4}}
    agent: Table = {"quiet_after": 0.3}
    async with running_daemon(script, host=host, agent=agent, prepare=with_clock) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "quiet")
        await daemon.marked("begun")
        set_to(daemon, BACK)
        quiet = await daemon.is_status(session, "quiet")
        assert quiet.active_run_id == run.host_run_id
        reason = (await daemon.status(session)).status_reason or ""
        assert "-" not in reason.partition("for ")[2].partition(" s")[0]
        daemon.open("go")
        await daemon.wait(run)

        asked = await daemon.send(session, "ask")
        await daemon.has_event(session, "permission.requested")
        set_to(daemon, 2 * BACK)
        await daemon.wait(asked)
        assert await daemon.text(asked) == "d"


async def test_a_question_with_a_deadline_does_not_outlive_its_daemon() -> None:
    """In the days between nobody could answer: it is withdrawn, not answered by the clock."""
    script = "ON prompt\n    PERM c1 a:allow_once d:reject_once\n    MSG ${OUTCOME}\n"
    host: Table = {"permissions": {"timeout": 600}}
    async with running_daemon(script, host=host, prepare=with_clock) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        question = await daemon.question(session)
        assert question.expires_at is not None
        await daemon.kill()
        set_to(daemon, FORWARD)
        await daemon.start()

        (expired,) = await daemon.questions(session, "expired")
        assert (expired.permission_id, expired.outcome) == (question.permission_id, None)
        (told,) = await daemon.history(session, "permission.expired")
        assert payload(told)["reason"] == "the daemon was restarted"
        assert (await daemon.run(run)).status == "interrupted"
        assert daemon.prompts() == ["hi"]


async def test_what_is_old_goes_by_the_rules_when_its_time_has_come() -> None:
    """Days later; what was used since, is pinned or has a live agent stays, whatever the clock."""
    host: Table = {"journal.retention": {"max_age_days": 2}}
    async with running_daemon("ON prompt\n    MSG ok\n", host=host, prepare=with_clock) as daemon:
        old, pinned, used = [await daemon.session() for _ in range(3)]
        for session in (old, pinned, used):
            await daemon.ask(session, f"hi {session}")
        await daemon.client.request("session/pin", {"sessionId": pinned, "pinned": True}, dict)
        await daemon.restart()
        assert (await daemon.client.retention(dry_run=True)).sessions == []
        set_to(daemon, FORWARD)
        await daemon.ask(used, "again")

        planned = await daemon.client.retention(dry_run=True)
        assert [(each.session_id, each.cause) for each in planned.sessions] == [(old, "age")]
        set_to(daemon, BACK)
        assert (await daemon.client.retention(dry_run=False)).sessions == []
        set_to(daemon, FORWARD)
        gone = await daemon.client.retention(dry_run=False)
        assert [each.session_id for each in gone.sessions] == [old]
        left = {each.session_id for each in (await daemon.client.list_sessions()).items}
        assert left == {pinned, used}


async def test_an_agent_that_failed_rests_as_long_as_it_should() -> None:
    """A clock that is set neither lets it be tried at once nor keeps it from ever being tried."""
    restart: Table = {"limit": 1, "window": 600}
    async with running_daemon("EXIT 1\n", agent={"restart": restart}, prepare=with_clock) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        for number, leap in enumerate((FORWARD, BACK)):
            set_to(daemon, leap)
            with anyio.fail_after(10):
                rested = await daemon.ask(session, f"more {number}")
            assert "rests" in (rested.error or "")
        assert len(daemon.launches()) == 1
