"""What waits can still be changed: its text and its place, by whoever saw it as it is."""

import json

import anyio
import pytest

from acphost.errors import ConflictError, RunNotFoundError, UnsupportedContentError
from acphost.wire.host import QueuedRun, Run
from tests.support.daemon import Daemon, payload, running_daemon

GATED = """
ON prompt
    MSG ${PROMPT}
    MARK ${DIR}/begun-${PROMPT}
    GATE ${DIR}/go
"""


async def line_up(daemon: Daemon, *texts: str) -> tuple[str, list[Run]]:
    """A session whose turn waits for the gate `go`, and runs behind it."""
    session = await daemon.session()
    await daemon.send(session, "first")
    await daemon.marked("begun-first")
    return session, [await daemon.send(session, text) for text in texts]


async def item(daemon: Daemon, session: str, run: Run) -> QueuedRun:
    """A waiting run as the queue shows it."""
    (found,) = [each for each in await daemon.queue(session) if each.run_id == run.host_run_id]
    return found


async def test_the_agent_is_told_the_text_as_it_was_changed_last() -> None:
    """The change is in the journal with who made it; the run keeps its place and its identity."""
    async with running_daemon(GATED) as daemon:
        session, (second, third) = await line_up(daemon, "b", "c")
        changed = await daemon.client.queue_edit(second.host_run_id, "bee", expected_rev=1)

        assert (changed.rev, changed.preview, changed.position) == (2, "bee", 1)
        assert changed == await item(daemon, session, second)
        told = [e for e in await daemon.history(session) if e.kind == "queue.changed"]
        assert payload(told[-1])["reason"] == "edited"
        assert payload(told[-1])["runId"] == second.host_run_id
        assert payload(told[-1])["prompt"] == [{"type": "text", "text": "bee"}]
        assert told[-1].origin is not None
        again = await daemon.send(session, "b")  # the same request: the key still means this run
        assert again.host_run_id == second.host_run_id
        daemon.open("go")
        await daemon.wait(third)
        assert daemon.prompts() == ["first", "bee", "c"]


async def test_runs_are_sent_in_the_order_they_were_brought_into() -> None:
    """Any place will do; one past the end is the end, one of the running turn is the first."""
    async with running_daemon(GATED) as daemon:
        session, (b, c, d) = await line_up(daemon, "b", "c", "d")
        moved = await daemon.client.queue_move(d.host_run_id, 0, expected_rev=1)
        assert (moved.position, moved.rev) == (1, 2)
        await daemon.client.queue_move(b.host_run_id, 99, expected_rev=1)

        seen = [(each.preview, each.position) for each in await daemon.queue(session)]
        assert seen == [("d", 1), ("c", 2), ("b", 3)]
        assert (await daemon.run(c)).queue_position == 2
        daemon.open("go")
        await daemon.wait(b)
        assert daemon.prompts() == ["first", "d", "c", "b"]


async def test_a_change_of_what_was_changed_meanwhile_is_refused() -> None:
    """Whoever comes second is told the revision; what is already so is no change, and no error."""
    async with running_daemon(GATED) as daemon:
        session, (second, _) = await line_up(daemon, "b", "c")
        run = second.host_run_id
        await daemon.client.queue_edit(run, "bee", expected_rev=1)
        with pytest.raises(ConflictError) as refused:
            await daemon.client.queue_edit(run, "bay", expected_rev=1)
        assert refused.value.details["rev"] == 2
        with pytest.raises(ConflictError):
            await daemon.client.queue_move(run, 2, expected_rev=1)
        before = (await daemon.get(session)).last_seq
        assert (await daemon.client.queue_edit(run, "bee", expected_rev=1)).rev == 2
        assert (await daemon.client.queue_move(run, 1, expected_rev=1)).rev == 2

        assert (await daemon.get(session)).last_seq == before
        daemon.open("go")


async def test_only_what_waits_can_be_changed() -> None:
    """Not what runs, what is over, what never was, nor into what the agent cannot take."""
    takes_text_only = 'INIT {"agentCapabilities": {"promptCapabilities": {"image": false}}}'
    async with running_daemon(takes_text_only + GATED) as daemon:
        session, (second,) = await line_up(daemon, "b")
        active = (await daemon.get(session)).active_run_id
        assert active is not None
        with pytest.raises(ConflictError, match="running"):
            await daemon.client.queue_edit(active, "x", expected_rev=1)
        with pytest.raises(RunNotFoundError):
            await daemon.client.queue_move("run_nowhere", 1, expected_rev=1)
        picture = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
        with pytest.raises(UnsupportedContentError):
            await daemon.client.queue_edit(second.host_run_id, [picture], expected_rev=1)
        await daemon.cancel(second)
        with pytest.raises(ConflictError, match="cancelled"):
            await daemon.client.queue_move(second.host_run_id, 1, expected_rev=1)

        assert (await daemon.get(session)).queued_count == 0
        daemon.open("go")


async def test_order_and_text_survive_a_crash() -> None:
    """What was answered is on disk: the queue is read back as it was left."""
    async with running_daemon(GATED) as daemon:
        session, (b, c, d) = await line_up(daemon, "b", "c", "d")
        await daemon.client.queue_move(d.host_run_id, 1, expected_rev=1)
        await daemon.client.queue_edit(c.host_run_id, "sea", expected_rev=1)
        daemon.open("go")
        await daemon.restart()

        assert [each.preview for each in await daemon.queue(session)] == ["d", "b", "sea"]
        assert (await item(daemon, session, c)).rev == 2
        await daemon.client.queue_release(session)
        for run in (d, b, c):
            assert (await daemon.wait(run)).status == "completed"
        assert daemon.prompts()[-3:] == ["d", "b", "sea"]


async def test_while_the_agent_is_being_started_the_head_can_still_change() -> None:
    """It is not sent yet: the agent is told what is the head when it is ready."""
    script = """
ON new
    MARK ${DIR}/new
    GATE ${DIR}/ready
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        first, second = await daemon.send(session, "a"), await daemon.send(session, "b")
        await daemon.marked("new")
        await daemon.client.queue_edit(first.host_run_id, "ay", expected_rev=1)
        await daemon.client.queue_move(second.host_run_id, 0, expected_rev=1)
        daemon.open("ready")

        await daemon.wait(first)
        assert daemon.prompts() == ["b", "ay"]


async def test_two_who_change_it_at_once_do_not_overwrite_each_other() -> None:
    """One of them is in time; the other is told, whatever the order of their lines."""
    async with running_daemon(GATED) as daemon:
        session, (second,) = await line_up(daemon, "b")
        outcomes: list[str] = []

        async def change(text: str) -> None:
            async with daemon.connect() as client:
                try:
                    await client.queue_edit(second.host_run_id, text, expected_rev=1)
                except ConflictError:
                    outcomes.append("refused")
                else:
                    outcomes.append(text)

        async with anyio.create_task_group() as tasks:
            for text in ("x", "y"):
                tasks.start_soon(change, text)

        (won,) = [outcome for outcome in outcomes if outcome != "refused"]
        assert json.loads(bytes((await item(daemon, session, second)).payload))[0]["text"] == won
        daemon.open("go")
