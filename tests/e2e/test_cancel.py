"""Stop: bound to its run, once on the wire, with an end that does not depend on the agent."""

from tests.support.config import STUBBORN
from tests.support.daemon import Daemon, eventually, facts, is_alive, payload, running_daemon

OBEYS = """
ON prompt "q"
    MSG ${PROMPT}
ON prompt
    MSG "a"
    MARK ${DIR}/begun
    STAY
"""


async def stopped(daemon: Daemon) -> tuple[str, str]:
    """A session and its run, after the agent has begun and the stop has ended."""
    session = await daemon.session()
    run = await daemon.send(session, "stop me")
    await daemon.marked("begun")
    await daemon.cancel(run)
    ended = await daemon.wait(run)
    assert ended.status == "cancelled", ended
    return session, run.host_run_id


async def test_an_agent_that_obeys() -> None:
    """One `session/cancel`, its `cancelled` awaited; the binding stays."""
    async with running_daemon(OBEYS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "long")
        await daemon.marked("begun")
        answered = await daemon.cancel(run)
        again = await daemon.cancel(run)
        ended = await daemon.wait(run)

        assert answered.cancel_requested_at is not None
        assert again.cancel_requested_at == answered.cancel_requested_at
        assert (ended.status, ended.stop_reason) == ("cancelled", "cancelled")
        assert await daemon.text(run) == "a"
        assert len(daemon.heard("session/cancel")) == 1
        (asked,) = await daemon.events(run, "run.cancel_requested")
        assert payload(asked)["by"]["clientName"] == "acphost.client"
        assert (await daemon.cancel(run)).status == "cancelled"  # terminal: as it was
        after = await daemon.ask(session, "q")
        assert (after.status, after.continuity) == ("completed", "native_live")


async def test_what_is_open_is_closed_in_order() -> None:
    """People's answers first, then the stop; what the agent says then counts."""
    form = '{"sessionId": "${SESSION}", "mode": "form", "message": "?", "requestedSchema": {}}'
    script = f"""
ON prompt "stop me"
    CALL c1 in_progress title=Dig
    CALL c2 in_progress title=Fill
    PERM c1 yes:allow_once no:reject_once id="question" nowait
    ASK elicitation/create {form} id="form" nowait
    MARK ${{DIR}}/begun
    STAY
ON cancel
    UPD c1 failed content="stopped by the user"
    MSG "I was half way."
    END cancelled
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "stop me")
        await daemon.has_event(session, "elicitation.requested")
        await daemon.cancel(run)
        ended = await daemon.wait(run)

        assert (ended.status, ended.stop_reason) == ("cancelled", "cancelled")
        heard = daemon.heard()
        told = {each["id"]: each["result"] for each in heard if "result" in each}
        assert told["question"] == {"outcome": {"outcome": "cancelled"}}
        assert told["form"] == {"action": "cancel"}
        places = [each.get("method") or each.get("id") for each in heard]
        stop = places.index("session/cancel")
        assert max(places.index("question"), places.index("form")) < stop
        said, left = await daemon.events(run, "tool.failed")
        assert (payload(said)["toolCallId"], said.synthetic) == ("c1", False)
        assert (payload(left)["toolCallId"], left.synthetic) == ("c2", True)
        assert await daemon.text(run) == "I was half way."
        assert await daemon.questions(session) == []


async def test_an_agent_that_does_nothing_is_replaced() -> None:
    """After the grace the turn is closed by force; the session is loaded in a new process."""
    script = """
INIT {"agentCapabilities": {"sessionCapabilities": {"resume": null}}}
ON prompt "stop me"
    MSG "a"
    MARK ${DIR}/begun
    STAY
ON cancel KEEP
    NOTE "I heard it"
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session, run_id = await stopped(daemon)
        run = await daemon.client.run(run_id)
        (ended,) = await daemon.events(run, "run.cancelled")
        assert facts(ended)["forced"] is True
        after = await daemon.ask(session, "q")

        assert after.status == "completed"
        assert after.continuity == "replay_seen"
        assert len(daemon.launches()) == 2
        closed, started = [
            event
            for event in await daemon.history(session)
            if event.kind in ("binding.closed", "binding.loaded")
        ]
        assert payload(closed)["reason"] == "forced_cancel"
        assert payload(started)["replayCount"] > 0


async def test_an_agent_that_answers_with_an_error() -> None:
    """After a user's stop an error counts as cancelled; the error is attached."""
    script = """
ON prompt "stop me"
    MSG "a"
    MARK ${DIR}/begun
    STAY
ON cancel
    FAIL -32603 "Internal error"
"""
    async with running_daemon(script) as daemon:
        session, run_id = await stopped(daemon)
        (ended,) = await daemon.events(await daemon.client.run(run_id), "run.cancelled")

        assert payload(ended)["agentError"]["message"] == "Internal error"
        assert (await daemon.ask(session, "q")).status == "completed"


async def test_an_agent_that_answers_the_notification() -> None:
    """An error with a null id answers nothing of ours; the grace ends the turn."""
    script = """
ON prompt "stop me"
    MSG "a"
    MARK ${DIR}/begun
    STAY
ON cancel KEEP
    SEND {"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "Method not found"}}
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session, _ = await stopped(daemon)
        assert (await daemon.ask(session, "q")).status == "completed"


async def test_an_agent_that_goes_on_talking() -> None:
    """Updates after the stop belong to the stopped run until it is closed, none after that."""
    script = """
ON prompt "stop me"
    MARK ${DIR}/begun
    REPEAT 100000
        MSG "word "
        PAUSE 5
ON cancel KEEP
    NOTE "so what"
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session, _ = await stopped(daemon)
        after = await daemon.ask(session, "q")

        assert after.status == "completed"
        assert await daemon.text(after) == "ok"


async def test_an_agent_that_says_it_finished() -> None:
    """`end_turn` although it was stopped: its own reason is shown, what it said is kept."""
    script = """
ON prompt "stop me"
    MSG "a"
    MARK ${DIR}/begun
    STAY
ON cancel
    MSG "b"
    END end_turn
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "stop me")
        await daemon.marked("begun")
        await daemon.cancel(run)
        ended = await daemon.wait(run)

        assert ended.stop_reason == "end_turn"
        assert await daemon.text(run) == "ab"
        assert (await daemon.ask(session, "q")).status == "completed"


async def test_a_late_answer_does_not_end_the_next_turn() -> None:
    """The stopped prompt is answered only when the next one was accepted: nothing comes of it."""
    script = """
ON prompt "stop me"
    MSG "a"
    MARK ${DIR}/begun
    GATE ${DIR}/go
    END end_turn
ON cancel KEEP
    NOTE "later"
ON eof
    GATE ${DIR}/go
"""
    async with running_daemon(script, agent={"cancel_grace": 0.3}) as daemon:
        session, _ = await stopped(daemon)
        after = await daemon.send(session, "q")
        daemon.open("go")
        ended = await daemon.wait(after)

        assert ended.status == "completed"
        assert await daemon.text(after) == "ok"


async def test_stop_holds_the_queue_where_so_configured() -> None:
    """`on_stop = "hold"`: what waits goes on at a release, in order."""
    async with running_daemon(OBEYS, host={"queue": {"on_stop": "hold"}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "long")
        waiting = [await daemon.send(session, text) for text in ("q1", "q2")]
        await daemon.marked("begun")
        await daemon.cancel(run)
        await daemon.wait(run)

        await daemon.is_status(session, "held")
        assert daemon.prompts() == ["long"]
        await daemon.client.queue_release(session)
        for each in waiting:
            assert (await daemon.wait(each)).status == "completed"
        assert daemon.prompts() == ["long", "q1", "q2"]


async def test_stop_holds_the_queue_when_asked_to() -> None:
    """`holdQueue`: for this one stop; the next message lets it go on."""
    async with running_daemon(OBEYS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "long")
        await daemon.send(session, "q1")
        await daemon.marked("begun")
        await daemon.cancel(run, hold_queue=True)
        await daemon.wait(run)
        await daemon.is_status(session, "held")
        await daemon.ask(session, "q2")

        assert daemon.prompts() == ["long", "q1", "q2"]


async def test_stop_lets_the_queue_go_on_by_default() -> None:
    """The next in line runs by itself."""
    async with running_daemon(OBEYS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "long")
        waiting = await daemon.send(session, "q1")
        await daemon.marked("begun")
        await daemon.cancel(run)

        assert (await daemon.wait(waiting)).status == "completed"


async def test_stop_and_the_next_message_in_one_breath() -> None:
    """The message waits for the end of the stopped turn; late words belong to that."""
    script = """
ON prompt "stop me"
    MARK ${DIR}/begun
    STAY
ON cancel
    MSG "late"
    END cancelled
"""
    async with running_daemon(script) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        run = await daemon.send(session, "stop me")
        await daemon.marked("begun")
        send = {"requestId": "n", "sessionId": session, "text": "next"}
        await wire.send(
            {"id": "a", "method": "run/cancel", "params": {"hostRunId": run.host_run_id}},
            {"id": "b", "method": "run/create", "params": send},
        )
        following = (await wire.answer("b"))["result"]
        await daemon.wait(run)
        after = await daemon.client.wait(following["hostRunId"])

        assert await daemon.text(run) == "late"
        assert after.status == "completed"
        assert await daemon.text(after) == "ok"


async def test_stop_before_the_prompt_was_sent() -> None:
    """Between acceptance and the agent there is nothing to stop but the run itself."""
    script = "ON init\n    MARK ${DIR}/init\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "never")
        await daemon.marked("init")
        assert (await daemon.cancel(run)).status == "cancelled"
        daemon.open("go")

        assert (await daemon.ask(session, "q")).status == "completed"
        assert daemon.prompts() == ["q"]
        assert daemon.heard("session/cancel") == []


async def test_stopping_shows_at_once() -> None:
    """The status says so while the agent takes its time."""
    script = """
ON prompt "stop me"
    MSG "a"
    MARK ${DIR}/begun
    STAY
ON cancel KEEP
    MARK ${DIR}/heard
    GATE ${DIR}/go
    END cancelled
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "stop me")
        await daemon.marked("begun")
        await daemon.cancel(run)

        assert (await daemon.get(session)).status == "stopping"
        await daemon.marked("heard")
        daemon.open("go")
        assert (await daemon.wait(run)).status == "cancelled"


async def test_stop_while_the_agent_does_not_read() -> None:
    """A full stdin of an agent that reads no more: the stop has its end all the same."""
    script = """
ON prompt "stop me"
    STOPREADING
    MSG "a"
    MARK ${DIR}/begun
    STAY
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session, _ = await stopped(daemon)
        assert (await daemon.ask(session, "q")).status == "completed"


async def test_a_prompt_that_its_agent_never_reads_is_shown_and_can_be_stopped() -> None:
    """It reads no more, and two megabytes wait for it: quiet, stopped by force, then well again."""
    script = """
ON new ONCE
    NEW S1
    STOPREADING
    MARK ${DIR}/deaf
"""
    async with running_daemon(script, agent={**STUBBORN, "quiet_after": 0.3}) as daemon:
        session = await daemon.session(start=True)
        await daemon.marked("deaf")
        run = await daemon.client.create_run("x" * (2 << 20), session_id=session)
        quiet = await daemon.is_status(session, "quiet")
        assert quiet.active_run_id == run.host_run_id
        told = (await daemon.client.status(session)).status_reason or ""
        assert "the agent has not read 2097" in told
        await daemon.cancel(run)
        ended = await daemon.wait(run)
        assert ended.status == "cancelled"
        assert "binding was ended" in (ended.error or "")
        assert (await daemon.ask(session, "q")).status == "completed"
        assert daemon.prompts() == ["q"]


async def test_nothing_of_the_agent_is_left_after_a_forced_stop() -> None:
    """The group goes, and a grandchild that made a session of its own and ignores TERM."""
    script = """
IGNORE TERM
ON prompt "stop me"
    SPAWN ${DIR}/near ignore-term
    SPAWN ${DIR}/far setsid ignore-term hold
    GATE ${DIR}/near
    GATE ${DIR}/far
    MARK ${DIR}/begun
    STAY
ON cancel KEEP
    NOTE "no"
ON eof
    STAY
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session, _ = await stopped(daemon)
        near, far = int(await daemon.marked("near")), int(await daemon.marked("far"))
        after = await daemon.ask(session, "q")

        assert after.status == "completed"
        await eventually(lambda: not is_alive(near) and not is_alive(far))
        assert not is_alive(daemon.launches()[0])


async def test_a_turn_that_its_agent_cancels_is_not_put_down_to_a_person() -> None:
    """One stop, and the agent ends all its turns so: the other tells that nobody had asked."""
    script = """
ON prompt "q"
    MSG "all of it"
    END cancelled
ON prompt ~"stop|other"
    MSG "a"
    MARK ${DIR}/${PROMPT}
    GATE ${DIR}/stopped
    END cancelled
ON cancel KEEP
    MARK ${DIR}/stopped
"""
    async with running_daemon(script) as daemon:
        one, two = await daemon.session(), await daemon.session()
        stopped_run, other = await daemon.send(one, "stop"), await daemon.send(two, "other")
        await daemon.marked("stop")
        await daemon.marked("other")
        await daemon.cancel(stopped_run)
        ended, bystander = await daemon.wait(stopped_run), await daemon.wait(other)

        assert (ended.status, ended.error_code) == ("cancelled", None)
        assert (bystander.status, bystander.error_code) == ("cancelled", "agent_cancelled")
        assert bystander.cancel_requested_at is None
        always = await daemon.ask(one, "q")
        assert (always.status, always.stop_reason) == ("cancelled", "cancelled")
        assert await daemon.text(always) == "all of it"


async def test_what_is_said_between_the_stop_and_its_answer_counts() -> None:
    """A call that ends in that time has its end; one that is left open is closed as unknown."""
    script = """
ON prompt "stop me"
    CALL c1 in_progress
    CALL c2 in_progress
    MARK ${DIR}/begun
    STAY
ON cancel
    UPD c1 completed
    MSG "so far"
    END cancelled
ON prompt
    MSG "on"
"""
    async with running_daemon(script) as daemon:
        session, run_id = await stopped(daemon)

        run = await daemon.client.run(run_id)
        assert await daemon.text(run) == "so far"
        ended = await daemon.events(run, "tool.completed", "tool.failed")
        assert [(event.kind, payload(event)["toolCallId"]) for event in ended] == [
            ("tool.completed", "c1"), ("tool.failed", "c2"),
        ]  # fmt: skip
        assert facts(ended[1])["outcome"] == "unknown"
        assert await daemon.text(await daemon.ask(session, "on")) == "on"


async def test_an_agent_whose_books_are_wrong_after_a_stop() -> None:
    """Its error is shown as it said it, what waits goes on, and a reset gives it a new start."""
    script = """
ON prompt "one"
    MSG "a"
    MARK ${DIR}/begun
    GATE ${DIR}/never
ON prompt "two"
    FAIL -32603 "the turn ledger is out of step" {"expected": 1, "found": 2}
ON prompt
    MSG "ok"
"""
    async with running_daemon(script, agent=STUBBORN) as daemon:
        session = await daemon.session()
        one = await daemon.send(session, "one")
        await daemon.marked("begun")
        two, three = await daemon.send(session, "two"), await daemon.send(session, "three")
        await daemon.cancel(one)
        failed, after = await daemon.wait(two), await daemon.wait(three)
        (event,) = await daemon.events(two, "run.failed")
        reset = await daemon.client.reset(session, next="continue")

        assert (await daemon.run(one)).status == "cancelled"
        assert (failed.status, failed.error) == ("failed", "the turn ledger is out of step")
        assert payload(event)["agentError"]["data"] == {"expected": 1, "found": 2}
        assert after.status == "completed"
        assert reset.closed.pid == daemon.launches()[0]
        assert (await daemon.ask(session, "four")).status == "completed"
