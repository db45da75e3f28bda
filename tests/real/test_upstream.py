"""The model's server has a bad day: what becomes of the turn, and that the session survives it."""

from pathlib import Path

import anyio

from tests.real.agents import RealAgent
from tests.real.hosting import Talk, hosting
from tests.support.model import Cut, Fail, ModelServer, Reply, Say

#: Replies that cannot be had whole, however often the agent tries.
BROKEN: dict[str, Reply] = {"empty": [], "cut": [Say("one two "), Cut()]}


async def expect_answer(talk: Talk, model: ModelServer) -> None:
    """The session goes on."""
    turn = await talk.ask(f"And now? {model.scene([Say('All is well.')])}")
    assert (turn.run.status, turn.answer.strip()) == ("completed", "All is well."), turn


async def test_an_error_that_passes_is_not_seen(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    async with hosting(tmp_path, model, agent) as host:
        talk = await host.talk(agent)
        for status in (500, 429):
            tag = model.scene([Fail(status, times=1), Say("At last.")])
            turn = await talk.ask(f"Try it. {tag}")
            assert (turn.run.status, turn.answer.strip()) == ("completed", "At last."), turn
            assert len(model.heard(tag)) == 2


async def test_an_error_that_stays_can_be_stopped(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    tag = model.scene([Fail(429)])
    async with hosting(tmp_path, model, agent) as host:
        talk = await host.talk(agent)
        run = await talk.begin(f"Try it. {tag}")
        await anyio.to_thread.run_sync(model.wait_heard, tag, 2, abandon_on_cancel=True)
        turn = await talk.cancel(run)
        assert turn.run.status == "cancelled", turn
        await expect_answer(talk, model)


async def test_a_refused_key_is_told(tmp_path: Path, model: ModelServer, agent: RealAgent) -> None:
    tag = model.scene([Fail(401)])
    async with hosting(tmp_path, model, agent) as host:
        talk = await host.talk(agent)
        turn = await talk.ask(f"Try it. {tag}")

    assert turn.run.status in {"completed", "failed"}
    assert "401" in turn.answer + (turn.run.error or "")


async def test_an_answer_that_is_empty_or_breaks_off_ends_its_turn(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    async with hosting(tmp_path, model, agent) as host:

        async def suffer(reply: Reply) -> None:
            talk = await host.talk(agent)
            turn = await talk.ask(f"Try it. {model.scene(reply)}")
            assert turn.run.status in {"completed", "failed"}, turn
            await expect_answer(talk, model)

        async with anyio.create_task_group() as tasks:
            for reply in BROKEN.values():
                tasks.start_soon(suffer, reply)
