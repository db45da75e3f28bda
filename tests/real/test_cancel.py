"""A stop in every phase of a turn: it ends as cancelled, the next prompt works and remembers."""

import sys
from pathlib import Path

from acphost.wire.event import Kind
from tests.real.agents import RealAgent
from tests.real.hosting import TOOLBOX_FILE, Turn, hosting, payload, reached
from tests.real.memory import expect_memory, introduce
from tests.real.phases import PHASES
from tests.support.model import Echo, Gate, ModelServer, Say


def expect_cancelled(turn: Turn) -> None:
    """One honest end: nothing of the turn stays open."""
    assert turn.run.status == "cancelled", turn
    assert turn.run.cancel_requested_at is not None
    started = {payload(e)["toolCallId"] for e in turn.of(Kind.TOOL_STARTED)}
    ended = {
        payload(e)["toolCallId"] for e in turn.of(Kind.TOOL_COMPLETED) + turn.of(Kind.TOOL_FAILED)
    }
    assert started == ended
    answered = [payload(e)["outcome"] for e in turn.of(Kind.PERMISSION_RESOLVED)]
    assert answered == ["cancelled"] * len(turn.of(Kind.PERMISSION_REQUESTED))


async def test_in_every_phase(tmp_path: Path, model: ModelServer, agent: RealAgent) -> None:
    async with hosting(tmp_path, model, agent) as host:
        talk = await introduce(host, model, agent)
        for enter in PHASES.values():
            gate = Gate()
            run = await enter(host, talk, agent, model, gate)
            turn = await talk.cancel(run)
            gate.open()
            expect_cancelled(turn)
            assert not (await host.client.list_decisions()).items
            await expect_memory(talk, model)
        assert not (host.asked_for(agent) / "never.txt").exists()


async def test_while_a_command_runs_that_leaves_the_process_group(
    tmp_path: Path, model: ModelServer, hermes: RealAgent
) -> None:
    gate = Gate()
    hold = hermes.run(f"{sys.executable} {TOOLBOX_FILE} hold {model.door(gate)}")
    async with hosting(tmp_path, model, hermes) as host:
        talk = await introduce(host, model, hermes)
        run = await talk.begin(f"Hold the door. {model.scene([hold], [Echo()])}")
        await reached(gate)
        turn = await talk.cancel(run)
        expect_cancelled(turn)
        await expect_memory(talk, model)
        holding = [c for c in (await host.processes()).values() if " hold " in c]
        gate.open()
    assert not holding


async def test_too_early_and_too_late(tmp_path: Path, model: ModelServer, agent: RealAgent) -> None:
    gate = Gate()
    async with hosting(tmp_path, model, agent) as host:
        talk = await introduce(host, model, agent)
        run = await talk.begin(f"Never mind. {model.scene([gate, Say('late')])}")
        early = await talk.cancel(run)  # in the same breath
        gate.open()
        expect_cancelled(early)
        await expect_memory(talk, model)

        run = await talk.begin(f"Be brief. {model.scene([Say('Yes.')])}")
        ended = await talk.end(run)
        late = await talk.cancel(run)
        assert ended.run.status == "completed"
        assert (late.run, late.kinds) == (ended.run, ended.kinds)
        await expect_memory(talk, model)
