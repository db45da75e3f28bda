"""A run whose outcome nobody knows: what it was doing, and a second try when a person asks."""

import pytest

from acphost.errors import ConflictError
from acphost.wire.host import Recovery
from tests.support.daemon import Daemon, facts, payload, running_daemon

SCRIPT = """
ON prompt "change"
    MSG "on it"
    UPDATE {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "edit", "kind": "edit", \
"locations": [{"path": "/w/a.py"}]}
    UPDATE {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", \
"content": [{"type": "diff", "path": "/w/b.py", "oldText": "", "newText": "x"}]}
    UPDATE {"sessionUpdate": "tool_call", "toolCallId": "t2", "title": "look", "kind": "read", \
"locations": [{"path": "/w/read.py"}]}
    GATE ${DIR}/go
    MSG "done"
"""


async def interrupted(daemon: Daemon, *behind: str) -> tuple[str, str]:
    """A session whose first turn the daemon did not survive; ids of session and run."""
    session = await daemon.session()
    run = await daemon.send(session, "change")
    for text in behind:
        await daemon.send(session, text)
    async with daemon.client.subscribe(run_id=run.host_run_id) as events:
        async for event in events:
            if event.kind == "tool.started" and payload(event)["toolCallId"] == "t2":
                break
    await daemon.restart()
    return session, run.host_run_id


async def test_what_it_was_doing_and_what_can_be_done() -> None:
    """The last event, the files its tools may have changed, what the agent can, the actions."""
    async with running_daemon(SCRIPT) as daemon:
        session, run_id = await interrupted(daemon)
        run = await daemon.client.run(run_id)

        assert run.last_seq is not None
        expected = Recovery(
            was_running=True,
            last_seq=run.last_seq,
            files_touched=["/w/a.py", "/w/b.py"],
            can_resume=True,
            can_load=True,
            actions=["resume", "resume_with_history", "dismiss"],
        )
        assert run.recovery == expected
        seen = await daemon.get(session)
        assert (seen.status, seen.recovery) == ("held", expected)
        active = (await daemon.client.active_run(session)).run
        assert active is not None
        assert (active.host_run_id, active.recovery) == (run_id, expected)
        assert daemon.prompts() == ["change"]


async def test_it_is_tried_again_once_for_each_request() -> None:
    """The same prompt in a run of its own; a repeat finds it, also after a crash."""
    async with running_daemon(SCRIPT) as daemon:
        session, run_id = await interrupted(daemon, "next")
        daemon.open("go")
        child = await daemon.client.resume(run_id, resume_request_id="r1")
        again = await daemon.client.resume(run_id, resume_request_id="r1")

        assert again.host_run_id == child.host_run_id
        assert (child.parent_run_id, child.session_id) == (run_id, session)
        assert (await daemon.wait(child)).status == "completed"
        assert await daemon.text(child) == "on itdone"
        await daemon.hears("session/prompt", 3)
        await daemon.until(session, lambda seen: seen.status == "idle", "idle")
        # In the place of the first try: what was sent behind that one still comes after it.
        assert daemon.prompts() == ["change", "change", "next"]
        assert child.host_run_id != run_id
        (created,) = await daemon.events(child, "run.created")
        assert payload(created)["parentRunId"] == run_id
        parent = await daemon.client.run(run_id)
        assert (parent.status, parent.recovery) == ("interrupted", None)
        seen = await daemon.get(session)
        assert (seen.status, seen.recovery) == ("idle", None)
        assert (await daemon.client.active_run(session)).run is None

        await daemon.restart()
        repeat = await daemon.client.resume(run_id, resume_request_id="r1")
        assert (repeat.host_run_id, repeat.status) == (child.host_run_id, "completed")
        assert daemon.prompts() == ["change", "change", "next"]


async def test_with_history_the_agents_memory_is_not_asked() -> None:
    """A new agent session that is told what was said, though the old one could be loaded."""
    async with running_daemon(SCRIPT) as daemon:
        _, run_id = await interrupted(daemon)
        daemon.open("go")
        child = await daemon.client.resume(run_id, with_history=True)
        ended = await daemon.wait(child)

        assert (ended.status, ended.continuity) == ("completed", "cold_resumed")
        assert daemon.heard("session/load") == []
        assert len(daemon.heard("session/new")) == 2
        history, prompt = daemon.heard("session/prompt")[-1]["params"]["prompt"]
        assert "on it" in history["text"]
        assert prompt["text"] == "change"


async def test_the_wish_for_history_survives_a_crash() -> None:
    """Held and killed before it started: it begins with history all the same."""
    async with running_daemon(SCRIPT) as daemon:
        session, run_id = await interrupted(daemon)
        daemon.open("go")
        await daemon.client.queue_hold(session, "a moment")
        child = await daemon.client.resume(run_id, with_history=True)
        await daemon.restart()
        assert daemon.prompts() == ["change"]
        await daemon.client.queue_release(session)

        assert (await daemon.wait(child)).continuity == "cold_resumed"
        assert daemon.heard("session/load") == []


async def test_only_what_was_interrupted_can_be_resumed() -> None:
    """Neither a run that ended, nor one that was dismissed, nor one that is being resumed."""
    async with running_daemon(SCRIPT) as daemon:
        session, run_id = await interrupted(daemon)
        done = await daemon.ask(await daemon.session(), "q")
        with pytest.raises(ConflictError, match="completed"):
            await daemon.client.resume(done.host_run_id)

        child = await daemon.client.resume(run_id)
        with pytest.raises(ConflictError) as caught:
            await daemon.client.resume(run_id)
        assert caught.value.details["hostRunId"] == child.host_run_id
        await daemon.hears("session/prompt", 3)
        await daemon.restart()
        await daemon.client.dismiss(child.host_run_id)
        with pytest.raises(ConflictError, match="dismissed"):
            await daemon.client.resume(child.host_run_id)
        assert (await daemon.get(session)).status == "idle"
        assert facts((await daemon.history(session, "run.dismissed"))[0]) == {"late": True}
