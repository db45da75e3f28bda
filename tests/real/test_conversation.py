"""A conversation with each real agent: what it says, what it does, what waits for it."""

import os
from pathlib import Path

from acphost.wire.event import Kind
from tests.real.agents import RealAgent
from tests.real.hosting import TOOLBOX, WAIT_SECONDS, hosting, payload, reached
from tests.support.model import Big, Echo, Gate, ModelServer, Recall, Say, Think, big_text


async def test_an_answer_and_its_thought_arrive_whole_and_apart(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    greeting = model.scene([Say("Good morning to you.")])
    musing = model.scene([Think("Herons like fish. "), Say("Offer it a roach.")])
    async with hosting(tmp_path, model, agent) as host:
        talk = await host.talk(agent)
        first = await talk.ask(f"Hello. {greeting}")
        second = await talk.ask(f"What does a heron eat? {musing}")
        status = await host.client.status(talk.session_id)

    assert (first.run.status, first.run.stop_reason) == ("completed", "end_turn")
    assert (first.answer, first.thought) == ("Good morning to you.", "")
    assert second.answer == "Offer it a roach."
    assert second.thought.strip() == "Herons like fish."
    assert first.events[0].kind == Kind.RUN_CREATED
    assert first.prompts == [f"Hello. {greeting}"]
    assert status.mode == "native_live"
    assert second.run.acp_session_id == first.run.acp_session_id


async def test_a_write_waits_for_a_person_and_lands_only_if_allowed(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    async with hosting(tmp_path, model, agent) as host:
        place = host.asked_for(agent)
        talk = await host.talk(agent)
        found: dict[str, tuple[str, bool]] = {}
        for option in ("reject_once", "allow_once"):
            path = place / f"{option}.txt"
            tag = model.scene([agent.write(path, "heron\n")], [Echo()])
            run = await talk.begin(f"Write it down. {tag}")
            asked = await talk.until(run, Kind.PERMISSION_REQUESTED)
            assert not path.exists()
            session = await host.client.session(talk.session_id)
            assert session.status == "waiting"
            await talk.answer(run, option)
            turn = await talk.end(run)
            assert turn.kinds.index(Kind.PERMISSION_REQUESTED) < turn.kinds.index(
                Kind.PERMISSION_RESOLVED
            )
            assert [payload(e)["permissionId"] for e in turn.of(Kind.PERMISSION_RESOLVED)] == [
                payload(asked)["permissionId"]
            ]
            assert len(turn.of(Kind.TOOL_STARTED)) == 1
            found[option] = (turn.run.status, path.exists())
        assert (place / "allow_once.txt").read_text() == "heron\n"
        assert not (await host.client.list_decisions()).items

    assert found == {"reject_once": ("completed", False), "allow_once": ("completed", True)}


async def test_a_dangerous_command_is_asked_for_and_runs_as_the_user_would_run_it(
    tmp_path: Path, model: ModelServer, hermes: RealAgent
) -> None:
    mine = os.umask(0o077)
    os.umask(mine)
    async with hosting(tmp_path, model, hermes) as host:
        build = host.workspace / "build"
        build.mkdir()
        talk = await host.talk(hermes)
        tag = model.scene([hermes.run("rm -rf build && umask")], [Echo()])
        run = await talk.begin(f"Clean up. {tag}")
        asked = payload(await talk.until(run, Kind.PERMISSION_REQUESTED))
        assert build.exists()
        await talk.answer(run, "allow_once")
        turn = await talk.end(run)
        assert not build.exists()

    kinds = [option["kind"] for option in asked["options"]]
    assert len(kinds) == 5
    assert kinds.count("allow_always") == 2  # only their ids tell them apart
    assert turn.run.status == "completed"
    assert f"{mine:04o}" in turn.answer


async def test_a_file_is_read_and_a_tool_of_an_mcp_server_is_called(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    async with hosting(tmp_path, model, agent) as host:
        note = host.workspace / "note.txt"
        note.write_text("the heron is grey\n")
        talk = await host.talk(agent, mcp_servers=[TOOLBOX])
        read = await talk.ask(f"Read it. {model.scene([agent.read(note)], [Echo()])}")
        shout = model.scene([agent.mcp("toolbox", "shout", text="grey heron")], [Echo()])
        loud = await talk.ask(f"Shout it. {shout}")

    assert "the heron is grey" in read.answer
    assert "GREY HERON" in loud.answer
    for turn in (read, loud):
        assert turn.run.status == "completed"
        assert turn.kinds.index(Kind.TOOL_STARTED) < turn.kinds.index(Kind.MESSAGE_DELTA)


async def test_messages_sent_meanwhile_queue_and_run_by_themselves_in_order(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    gate = Gate()
    slow = model.scene([Say("One moment. "), gate, Say("There.")])
    tags = [model.scene([Say(word), Recall()]) for word in ("second: ", "third: ")]
    async with hosting(tmp_path, model, agent) as host:
        talk = await host.talk(agent)
        first = await talk.begin(f"Begin. {slow}")
        await reached(gate)
        queued = [await talk.begin(f"Go on. {tag}") for tag in tags]
        positions = [run.queue_position for run in queued]
        waiting = [item.run_id for item in (await host.client.queue_list(talk.session_id)).items]
        heard_early = [model.heard(tag) for tag in tags]
        gate.open()
        turns = [await talk.end(run) for run in (first, *queued)]

    assert positions == [1, 2]
    assert waiting == [run.host_run_id for run in queued]
    assert heard_early == [[], []]
    assert [turn.run.status for turn in turns] == ["completed"] * 3
    assert turns[0].answer.strip() == "One moment. There."
    assert model.heard(tags[0])[0].earlier_prompts == [f"Begin. {slow}"]
    assert model.heard(tags[1])[0].earlier_prompts == [f"Begin. {slow}", f"Go on. {tags[0]}"]
    ends = [(turn.run.first_seq, turn.run.started_at, turn.run.ended_at) for turn in turns]
    assert ends == sorted(ends)


async def test_eight_sessions_are_answered_at_the_same_time(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    gates = [Gate() for _ in range(8)]
    tags = [model.scene([Say(f"room {i} "), g, Say("closed")]) for i, g in enumerate(gates)]
    async with hosting(tmp_path, model, agent) as host:
        talks = [await host.talk(agent) for _ in gates]
        runs = [await t.begin(f"Enter. {tag}") for t, tag in zip(talks, tags, strict=True)]
        for gate in gates:
            # Eight starts of Hermes take two cores half a minute.
            await reached(gate, 3 * WAIT_SECONDS)
        for gate in reversed(gates):
            gate.open()
        turns = [await talk.end(run) for talk, run in zip(talks, runs, strict=True)]

    assert [turn.answer for turn in turns] == [f"room {i} closed" for i in range(8)]
    assert len({turn.run.acp_session_id for turn in turns}) == 8


async def test_five_megabytes_arrive_complete(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    tag = model.scene([Big(5_000_000)])
    async with hosting(tmp_path, model, agent) as host:
        talk = await host.talk(agent)
        turn = await talk.ask(f"Tell me all. {tag}")

    assert turn.run.status == "completed"
    # Not compared by ==: a difference of megabytes is no failure message.
    assert len(turn.answer) == 5_000_000
    same = turn.answer == big_text(5_000_000)
    assert same
