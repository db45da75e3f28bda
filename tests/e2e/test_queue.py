"""One prompt in flight, the others in line: first come, first served, held, released, kept."""

import anyio
import pytest

from acphost.errors import QueueFullError
from acphost.wire.host import Run
from tests.support.daemon import Daemon, eventually, facts, payload, running_daemon

GATED = """
ON prompt "bad"
    FAIL -32603 "bad luck"
ON prompt "late"
    FAIL -32603 "bad luck"
ON prompt
    MSG ${PROMPT}
    MARK ${DIR}/begun-${PROMPT}
    GATE ${DIR}/go-${PROMPT}
"""


async def busy(daemon: Daemon, session: str) -> Run:
    """A run that is in flight until its gate `go-first` opens."""
    run = await daemon.send(session, "first")
    await daemon.marked("begun-first")
    return run


async def test_twenty_clients_at_once_are_served_in_the_order_of_acceptance() -> None:
    """Never two unanswered prompts; a failed one in the middle stops nobody."""
    script = GATED.replace("    GATE ${DIR}/go-${PROMPT}\n", "    GATE ${DIR}/go\n")
    script = script.replace('"late"', '"m07"')
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.send(session, "first")
        await daemon.marked("begun-first")

        async def send(text: str) -> None:
            async with daemon.connect() as client:
                await client.create_run(text, session_id=session)

        async with anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(send, f"m{n:02}")
        waiting = await daemon.queue(session)
        assert [item.position for item in waiting] == list(range(1, 21))
        daemon.open("go")
        for item in waiting:
            run = await daemon.client.wait(item.run_id)
            assert run.status == ("failed" if item.preview == "m07" else "completed")

        assert daemon.prompts() == ["first", *(item.preview for item in waiting)]


async def test_positions_are_told_when_a_prompt_is_accepted() -> None:
    """n waits behind n others; the one that runs counts."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        await busy(daemon, session)
        second = await daemon.send(session, "b")
        third = await daemon.send(session, "c")

        assert (second.status, second.queue_position) == ("pending", 1)
        assert (third.status, third.queue_position) == ("pending", 2)
        (queued,) = await daemon.events(third, "run.queued")
        assert payload(queued)["position"] == 2
        assert (await daemon.get(session)).queued_count == 2
        for name in ("first", "b", "c"):
            daemon.open(f"go-{name}")
        await daemon.wait(third)
        assert daemon.prompts() == ["first", "b", "c"]


async def test_a_cancelled_pending_run_never_reaches_the_agent() -> None:
    """It is gone in the same step; what runs, and what waits behind it, is not touched."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        first = await busy(daemon, session)
        second = await daemon.send(session, "b")
        third = await daemon.send(session, "c")
        cancelled = await daemon.cancel(second)

        assert cancelled.status == "cancelled"
        assert (await daemon.run(first)).status == "running"
        assert (await daemon.run(third)).queue_position == 1
        assert await daemon.kinds(second) == [
            "run.created",
            "run.queued",
            "run.cancel_requested",
            "run.cancelled",
        ]
        daemon.open("go-first")
        daemon.open("go-c")
        await daemon.wait(third)
        assert daemon.prompts() == ["first", "c"]
        assert daemon.heard("session/cancel") == []


async def test_a_held_queue_starts_nothing_until_it_is_released() -> None:
    """Holding neither drops nor reorders, and does not touch what runs."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        first = await busy(daemon, session)
        runs = [await daemon.send(session, text) for text in ("b", "c")]
        held = await daemon.client.queue_hold(session, "lunch")
        daemon.open("go-first")
        await daemon.wait(first)

        assert held.status == "running"
        seen = await daemon.is_status(session, "held")
        assert seen.status_reason is not None
        assert "lunch" in seen.status_reason
        assert [item.preview for item in await daemon.queue(session)] == ["b", "c"]
        await daemon.send(session, "d")
        assert (await daemon.get(session)).status == "held"  # only a person's word ends it
        daemon.open("go-b")
        daemon.open("go-c")
        daemon.open("go-d")
        await daemon.client.queue_release(session)
        await daemon.wait(runs[1])
        await daemon.until(session, lambda seen: seen.queued_count == 0, "an empty queue")
        assert daemon.prompts()[:3] == ["first", "b", "c"]
        kinds = [event.kind for event in await daemon.history(session)]
        assert kinds.count("queue.held") == 1
        assert kinds.count("queue.released") == 1


async def test_release_of_a_queue_that_is_not_held_changes_nothing() -> None:
    """No event, no error."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        before = await daemon.get(session)
        after = await daemon.client.queue_release(session)

        assert (after.status, after.last_seq) == ("idle", before.last_seq)


async def test_hold_after_stops_the_queue_behind_one_run() -> None:
    """`holdAfter`: the run ends as usual, the next waits for a release."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        daemon.open("go-a")
        daemon.open("go-b")
        first = await daemon.send(session, "a", holdAfter=True)
        second = await daemon.send(session, "b")
        await daemon.wait(first)

        await daemon.is_status(session, "held")
        assert (await daemon.run(second)).status == "pending"
        await daemon.client.queue_release(session)
        assert (await daemon.wait(second)).status == "completed"


async def test_a_failed_run_holds_the_queue_where_so_configured() -> None:
    """`on_failed = "hold"`; the next send lets it go on, in order."""
    async with running_daemon(GATED, host={"queue": {"on_failed": "hold"}}) as daemon:
        session = await daemon.session()
        first = await busy(daemon, session)
        bad = await daemon.send(session, "bad")
        await daemon.send(session, "b")
        daemon.open("go-first")
        daemon.open("go-b")
        daemon.open("go-c")
        await daemon.wait(first)
        await daemon.wait(bad)
        await daemon.is_status(session, "held")
        last = await daemon.ask(session, "c")

        assert last.status == "completed"
        assert daemon.prompts() == ["first", "bad", "b", "c"]


async def test_the_queue_has_a_limit() -> None:
    """The one too many is refused with a word that says to try again; nothing of it stays."""
    async with running_daemon(GATED, host={"queue": {"limit": 2}}) as daemon:
        session = await daemon.session()
        await busy(daemon, session)
        for text in ("b", "c"):
            await daemon.send(session, text)
        with pytest.raises(QueueFullError):
            await daemon.send(session, "d")
        before = (await daemon.get(session)).last_seq
        assert (await daemon.get(session)).queued_count == 2

        daemon.open("go-first")
        daemon.open("go-b")
        daemon.open("go-c")
        await daemon.until(session, lambda seen: seen.queued_count == 0, "an empty queue")
        daemon.open("go-d")
        assert (await daemon.ask(session, "d")).status == "completed"
        assert before < (await daemon.get(session)).last_seq


async def test_cancel_while_the_agent_is_being_started() -> None:
    """The head of the queue is cancelled before it is sent; the session is idle, not starting."""
    script = """
ON new
    MARK ${DIR}/new
    GATE ${DIR}/go
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "a")
        await daemon.marked("new")
        assert (await daemon.get(session)).status == "starting"
        cancelled = await daemon.cancel(run)
        daemon.open("go")

        assert cancelled.status == "cancelled"
        await daemon.is_status(session, "idle")
        assert (await daemon.ask(session, "b")).status == "completed"
        assert daemon.prompts() == ["b"]


async def test_hold_while_the_agent_is_being_started() -> None:
    """The agent becomes ready and nothing is sent to it; the session says held."""
    script = """
ON new
    MARK ${DIR}/new
    GATE ${DIR}/go
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "a")
        await daemon.marked("new")
        await daemon.client.queue_hold(session)
        daemon.open("go")
        await daemon.has_event(session, "binding.started")

        await daemon.is_status(session, "held")
        assert daemon.prompts() == []
        await daemon.client.queue_release(session)
        assert (await daemon.wait(run)).status == "completed"


async def test_an_agent_that_is_busy_with_itself_is_asked_again() -> None:
    """The same prompt, in its place in the queue; a stop ends the waiting without a cancel."""
    script = """
ON prompt "first" ONCE
    FAIL -32600 "session already has an active prompt"
ON prompt "never"
    FAIL -32600 "agent is busy"
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        first = await daemon.send(session, "first")
        second = await daemon.send(session, "second")
        assert (await daemon.wait(first)).status == "completed"
        assert (await daemon.wait(second)).status == "completed"
        assert daemon.prompts() == ["first", "first", "second"]
        (refusal,) = await daemon.events(first, "evidence")
        assert facts(refusal) == {"evidence": "busy", "attempt": 1}
        assert (await daemon.kinds(first)).count("run.started") == 1

        never = await daemon.send(session, "never")
        await eventually(lambda: [each.kind for each in daemon.seen].count("evidence") >= 2)
        await daemon.cancel(never)
        assert (await daemon.wait(never)).status == "cancelled"
        assert daemon.heard("session/cancel") == []
        assert (await daemon.ask(session, "after")).status == "completed"
