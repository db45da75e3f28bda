"""A stop in each phase of a turn of the recorded agents: the next prompt works and remembers."""

import array
import fcntl
import termios
from pathlib import Path

import pytest

from acphost.wire.host import Run
from tests.support.config import STUBBORN
from tests.support.daemon import Daemon, eventually, payload
from tests.support.profiles import hosted

FIRST = "say 1"
#: Prompt, the event that tells that the turn is there, and whether Hermes' session is wedged by it.
PHASES = {
    "text": ("gate DIR/never", "message.delta", False),
    "thought": ("muse DIR/never", "thought.delta", False),
    "silence": ("hush DIR/never", "run.started", False),
    "tool": ("TOOL", "tool.started", True),
    "permission": ("EDIT", "permission.requested", True),
}
TOOLS = {
    "hermes": ('terminal {"command": "sleep 60"}', 'write_file {"path": "DIR/x"}'),
    "reasonix": ('bash {"command": "sleep 60"}', 'write_file {"path": "DIR/x"}'),
}


async def started(daemon: Daemon) -> str:
    """A session with something to remember."""
    session = await daemon.session()
    await daemon.ask(session, FIRST)
    return session


async def approve(daemon: Daemon, session: str, runtime: str, value: str) -> None:
    """Say what Reasonix is to ask about."""
    if runtime == "reasonix":
        params = {"sessionId": session, "configOption": {"tool_approval": value}}
        await daemon.client.request("session/configure", params, dict)


async def remembers(daemon: Daemon, session: str, text: str = "recall") -> Run:
    """The next prompt is answered, by an agent that knows the first one."""
    run = await daemon.ask(session, "recall", requestId=text)
    assert run.status == "completed", run
    assert FIRST in await daemon.text(run)
    return run


@pytest.mark.parametrize("runtime", ["hermes", "reasonix"])
async def test_in_each_phase(runtime: str) -> None:
    """Cancelled, nothing open, one cancel on the wire; replaced only where the stop wedges."""
    async with hosted(runtime) as daemon:
        session = await started(daemon)
        tool, edit = TOOLS[runtime]
        for number, (phase, (text, kind, wedges)) in enumerate(PHASES.items(), 1):
            prompt = text.replace("TOOL", tool).replace("EDIT", edit)
            # Nothing is asked about where a command is to run.
            await approve(
                daemon, session, runtime, "workspace-write" if phase == "tool" else "read-only"
            )
            launches = len(daemon.launches())
            run = await daemon.send(session, prompt.replace("DIR", str(daemon.folder)))
            await reached(daemon, run, kind)
            assert (await daemon.cancel(run)).cancel_requested_at is not None
            ended = await daemon.wait(run)
            assert ended.status == "cancelled", (phase, ended)
            assert await daemon.questions(session) == []
            assert len(daemon.heard("session/cancel")) == number
            after = await remembers(daemon, session, phase)
            was_replaced = runtime == "hermes" and wedges
            assert (len(daemon.launches()) > launches) == was_replaced, phase
            assert after.continuity == ("replay_seen" if was_replaced else "native_live")


async def reached(daemon: Daemon, run: Run, kind: str) -> None:
    """Wait for an event of the run."""
    async with daemon.client.subscribe(run_id=run.host_run_id, kinds=[kind]) as events:
        await anext(events)


@pytest.mark.parametrize("runtime", ["hermes", "reasonix"])
async def test_after_the_end(runtime: str) -> None:
    """A stop of what is over is nothing: no cancel reaches the agent, and the next prompt runs."""
    async with hosted(runtime) as daemon:
        session = await started(daemon)
        run = await daemon.ask(session, "say 2")
        assert (await daemon.cancel(run)).status == "completed"
        await remembers(daemon, session)
        assert daemon.heard("session/cancel") == []
        assert len(daemon.launches()) == 1


async def test_a_cancel_that_crosses_the_answer_does_not_hit_the_next_prompt() -> None:
    """Hermes keeps it for the next prompt; setting the model that it has takes it away."""
    async with hosted("hermes") as daemon:
        session = await started(daemon)
        run = await daemon.send(session, f"deaf {daemon.path('go')}")
        await reached(daemon, run, "message.delta")
        await daemon.cancel(run)
        # The agent does not read; the cancel lies in its pipe when it answers.
        await eventually(lambda: waiting_bytes(daemon.launches()[-1]) > 0)
        daemon.open("go")
        ended = await daemon.wait(run)
        assert ended.stop_reason == "end_turn"
        await remembers(daemon, session)

        (cure,) = daemon.heard("session/set_model")
        assert cure["params"]["modelId"] == "custom:fake-model"
        assert len(daemon.launches()) == 1


def waiting_bytes(pid: int) -> int:
    """How much lies unread in the pipe that is a process's stdin."""
    count = array.array("i", [0])
    with Path(f"/proc/{pid}/fd/0").open("rb", buffering=0) as pipe:
        fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


async def test_a_cancel_before_the_first_sign_waits_a_little() -> None:
    """Hermes takes a cancel in the same breath for the next prompt's: it is held a moment."""
    async with hosted("hermes") as daemon:
        session = await started(daemon)
        run = await daemon.send(session, f"hush {daemon.path('never')}")
        await daemon.cancel(run)
        assert (await daemon.wait(run)).status == "cancelled"
        heard = [message["method"] for message in daemon.heard() if "method" in message]
        if "session/cancel" in heard:  # else the prompt was never sent
            (asked,) = await daemon.events(run, "run.cancel_requested")
            (ended,) = await daemon.events(run, "run.cancelled")
            assert ended.created_at > asked.created_at
        await remembers(daemon, session)


async def test_a_queued_remark_that_nobody_asked_for_is_recognised() -> None:
    """It is no answer: the run failed, and the session gets another process."""
    async with hosted("hermes", WEDGED="yes") as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "say 1")
        assert (run.status, run.error_code) == ("failed", "agent_wedged")
        closed = await daemon.has_event(session, "binding.closed")
        assert payload(closed)["reason"] == "wedged"


async def test_a_frozen_process_is_ended_by_force() -> None:
    """A stop that the agent answers with a deadlock ends after the grace; the next prompt runs."""
    async with hosted("hermes", agent=STUBBORN, DEADLOCK="yes") as daemon:
        session = await started(daemon)
        run = await daemon.send(session, f"gate {daemon.path('never')}")
        await reached(daemon, run, "message.delta")
        await daemon.cancel(run)
        ended = await daemon.wait(run)
        assert ended.status == "cancelled"
        await remembers(daemon, session)
        assert len(daemon.launches()) == 2
