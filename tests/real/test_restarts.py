"""Something goes away in the middle of a conversation; the conversation goes on and remembers."""

import os
import signal
from pathlib import Path

from acphost.wire.event import Kind
from tests.real.agents import RealAgent
from tests.real.hosting import hosting, reached
from tests.real.memory import expect_memory, introduce
from tests.real.phases import PHASES
from tests.support.model import Gate, ModelServer, Say

#: The rungs on which the agent still has its own session: which one is taken is a trait of it.
KEPT = {"hermes": {"loaded", "replay_seen"}, "reasonix": {"resumed"}}


async def test_a_daemon_told_to_stop_lets_a_turn_finish_and_continues_with_memory(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    gate = Gate()
    async with hosting(tmp_path, model, agent) as host:
        talk = await introduce(host, model, agent)
        await host.stop()
        await host.start()
        assert not await host.processes()
        first = await expect_memory(talk, model)
        assert first.run.continuity in KEPT[agent.name]
        status = await host.client.status(talk.session_id)
        assert (status.mode, status.continuity.code) == (first.run.continuity, "continuous")

        run = await talk.begin(f"Count. {model.scene([Say('one two '), gate, Say('three')])}")
        await reached(gate)
        async with host.stopping():
            gate.open()
        await host.start()
        turn = await talk.end(run)
        assert (turn.run.status, turn.answer.strip()) == ("completed", "one two three")


async def test_a_killed_daemon_leaves_an_interrupted_run_and_a_queue_in_order(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    gate = Gate()
    async with hosting(tmp_path, model, agent) as host:
        talk = await introduce(host, model, agent)
        run = await talk.begin(f"Count. {model.scene([Say('one two three '), gate, Say('4')])}")
        seen = await talk.until(run, Kind.MESSAGE_DELTA, "three")
        queued = await talk.begin(f"And then? {model.scene([Say('Then the next.')])}")
        await host.kill()
        await host.start()
        assert not await host.processes()
        gate.open()

        turn = await talk.end(run)
        assert (turn.run.status, turn.run.error_code) == ("interrupted", "host_restarted")
        assert seen in turn.events
        session = await host.client.session(talk.session_id)
        assert session.status == "held"
        assert (await host.client.run(queued.host_run_id)).status == "pending"

        await host.client.queue_release(talk.session_id)
        after = await talk.end(queued)
        assert (after.run.status, after.answer.strip()) == ("completed", "Then the next.")
        assert after.run.continuity in KEPT[agent.name]
        await expect_memory(talk, model)


async def test_an_agent_killed_in_any_phase_is_loaded_again_by_the_next_prompt(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    async with hosting(tmp_path, model, agent) as host:
        talk = await introduce(host, model, agent)
        for phase, enter in PHASES.items():
            gate = Gate()
            run = await enter(host, talk, agent, model, gate)
            os.kill(await talk.agent_pid(), signal.SIGKILL)
            turn = await talk.end(run)
            gate.open()
            ended = (phase, turn.run.status, turn.run.error_code)
            assert ended == (phase, "interrupted", "agent_exited")
            assert not (await host.client.list_decisions()).items
            last = await expect_memory(talk, model)
            assert last.run.continuity in KEPT[agent.name]
