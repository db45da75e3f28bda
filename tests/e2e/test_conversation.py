"""The main job: prompts go to an agent, its words come back, in order and for good."""

import anyio

from tests.support.daemon import facts, payload, running_daemon
from tests.support.patience import PATIENCE

HELLO = 'ON prompt\n    MSG "hello "\n    MSG "you"\n'

GATED = """
ON prompt
    MSG "begun "
    MARK ${DIR}/begun-${PROMPT}
    GATE ${DIR}/go-${PROMPT}
    MSG "done"
"""


async def test_a_prompt_is_answered() -> None:
    """One turn: created, queued, started before the prompt is sent, said, completed."""
    async with running_daemon(HELLO) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")

        assert run.status == "completed"
        assert run.stop_reason == "end_turn"
        assert run.continuity == "new_session"
        assert await daemon.text(run) == "hello you"
        assert await daemon.kinds(run) == [
            "run.created",
            "run.queued",
            "binding.started",
            "run.started",
            "message.user",
            "message.delta",
            "message.delta",
            "run.completed",
        ]
        (started,) = await daemon.events(run, "run.started")
        assert payload(started)["acpSessionId"] == run.acp_session_id
        (said,) = await daemon.events(run, "message.user")
        assert payload(said)["content"] == [{"type": "text", "text": "hi"}]
        (ended,) = await daemon.events(run, "run.completed")
        assert payload(ended)["response"] == {"stopReason": "end_turn"}
        assert daemon.prompts() == ["hi"]
        assert (await daemon.get(session)).status == "idle"


async def test_the_second_prompt_goes_to_the_same_agent_session() -> None:
    """The binding lives on: one process, one ACP session, and the mode says so."""
    async with running_daemon(HELLO) as daemon:
        session = await daemon.session()
        first, second = [await daemon.ask(session, text) for text in ("one", "two")]

        assert second.continuity == "native_live"
        assert second.acp_session_id == first.acp_session_id
        assert len(daemon.launches()) == 1
        assert [message["method"] for message in daemon.heard()] == [
            "initialize",
            "session/new",
            "session/prompt",
            "session/prompt",
        ]
        status = await daemon.status(session)
        assert (status.mode, status.continuity.code) == ("native_live", "continuous")


async def test_a_run_can_make_its_own_session() -> None:
    """Without a session one is made for agent and folder, in the same step."""
    async with running_daemon(HELLO) as daemon:
        run = await daemon.client.create_run("hi", agent_id="fake", cwd=str(daemon.work))
        await daemon.wait(run)

        session = await daemon.get(run.session_id)
        assert session.cwd == str(daemon.work)
        assert session.workspace_id.startswith("local:")
        (created,) = await daemon.history(run.session_id, "session.created")
        assert created.seq == f"{1:018d}"


async def test_prompt_blocks_reach_the_agent_as_they_were_given() -> None:
    """Clean prompts: whatever ACP content a client sends, nothing is added and nothing lost."""
    blocks = [
        {"type": "text", "text": "look", "annotations": {"priority": 0.5}, "_meta": {"mine": 1}},
        {"type": "resource_link", "uri": "file:///a b", "name": "a"},
    ]
    async with running_daemon(HELLO) as daemon:
        session = await daemon.session()
        run = await daemon.client.create_run(blocks, session_id=session)
        await daemon.wait(run)

        (heard,) = daemon.heard("session/prompt")
        assert heard["params"]["prompt"] == blocks
        (created,) = await daemon.events(run, "run.created")
        assert payload(created)["prompt"] == blocks


async def test_start_makes_the_agent_ready_before_the_first_prompt() -> None:
    """`start: true` has the agent greeted and a session opened; the prompt then finds it live."""
    async with running_daemon(HELLO) as daemon:
        session = await daemon.session(start=True)
        await daemon.has_event(session, "binding.started")
        await daemon.is_status(session, "idle")
        run = await daemon.ask(session, "hi")

        assert run.status == "completed"
        assert len(daemon.heard("session/new")) == 1


async def test_a_client_that_leaves_in_mid_answer_gets_the_rest_later() -> None:
    """A disconnect is no cancel; who comes back with the last seq misses and repeats nothing."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        async with daemon.connect() as visitor:
            run = await visitor.create_run("a", session_id=session)
            seen = []
            async with visitor.subscribe(run_id=run.host_run_id) as events:
                async for event in events:
                    seen.append(event.seq)
                    if event.kind == "message.delta":
                        break
        daemon.open("go-a")
        ended = await daemon.wait(run)

        assert ended.status == "completed"
        rest = await daemon.client.run_events(run.host_run_id, after_seq=seen[-1] or 0)
        whole = await daemon.events(run)
        assert seen + [event.seq for event in rest.events] == [event.seq for event in whole]
        assert rest.events[-1].kind == "run.completed"


async def test_active_run_tells_a_client_that_comes_back_what_is_on() -> None:
    """While it runs it is the active run, with what waits behind it; later there is none."""
    async with running_daemon(GATED) as daemon:
        session = await daemon.session()
        first = await daemon.send(session, "a")
        second = await daemon.send(session, "b")
        await daemon.marked("begun-a")
        await daemon.is_running(first)
        active = await daemon.client.active_run(session)

        assert active.run is not None
        assert active.run.host_run_id == first.host_run_id
        assert [waiting.run_id for waiting in active.queued] == [second.host_run_id]
        daemon.open("go-a")
        daemon.open("go-b")
        await daemon.wait(second)
        assert (await daemon.client.active_run(session)).run is None


async def test_sessions_run_side_by_side() -> None:
    """One session's prompt ends while another's is still waiting for its gate."""
    async with running_daemon(GATED) as daemon:
        one, two = await daemon.session(), await daemon.session()
        first = await daemon.send(one, "a")
        await daemon.marked("begun-a")
        daemon.open("go-b")
        second = await daemon.ask(two, "b")

        assert second.status == "completed"
        assert (await daemon.run(first)).status == "running"
        assert len(daemon.launches()) == 1  # both live in one process
        daemon.open("go-a")
        await daemon.wait(first)


async def test_a_process_per_session_where_so_configured() -> None:
    """`process = "per_session"`: each session has a process of its own."""
    async with running_daemon(HELLO, agent={"process": "per_session"}) as daemon:
        for session in (await daemon.session(), await daemon.session()):
            await daemon.ask(session, "hi")

        assert len(set(daemon.launches())) == 2


async def test_an_answer_without_a_word_is_marked_empty() -> None:
    """`end_turn` with nothing said is a completed run that says it is empty."""
    async with running_daemon("ON prompt\n    END\n") as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert (run.status, run.empty) == ("completed", True)


async def test_an_error_answer_fails_the_run_and_keeps_the_error_whole() -> None:
    """The agent's error object is in the terminal event; the next prompt goes on as usual."""
    script = 'ON prompt "bad"\n    FAIL -32603 "no luck" {"details": [1]}\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "bad")
        after = await daemon.ask(session, "good")

        assert (run.status, run.error_code) == ("failed", "agent_error")
        (ended,) = await daemon.events(run, "run.failed")
        error = {"code": -32603, "message": "no luck", "data": {"details": [1]}}
        assert payload(ended)["agentError"] == error
        assert after.status == "completed"


async def test_two_thousand_chunks_in_one_write_keep_their_order() -> None:
    """The answer takes effect only after all that was said before it."""
    script = """
ON prompt
    BATCH
        REPEAT 2000
            MSG "${I} "
        END
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        for text in ("one", "two", "three"):
            run = await daemon.ask(session, text)
            assert await daemon.text(run) == "".join(f"{n} " for n in range(1, 2001))
            assert (await daemon.kinds(run))[-1] == "run.completed"


async def test_an_echo_of_the_user_is_shown_once() -> None:
    """An agent that repeats the prompt as user chunk: kept as evidence, marked as an echo."""
    async with running_daemon('ON prompt\n    USER ${PROMPT}\n    MSG "ok"\n') as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert len(await daemon.events(run, "message.user")) == 1
        (echo,) = await daemon.events(run, "evidence")
        assert facts(echo)["echo"] is True


async def test_an_agent_that_cancels_another_session_too() -> None:
    """Its turn is recorded as ended by the agent: cancelled, but asked for by nobody."""
    script = """
INIT
NEW S1
NEW S2
PROMPT as=one
PROMPT as=two
MARK ${DIR}/both
CANCEL
END cancelled for=one
END cancelled for=two
"""
    async with running_daemon(script) as daemon:
        sessions = [await daemon.session(), await daemon.session()]
        runs = []
        for session, text in zip(sessions, ("one", "two"), strict=True):
            runs.append(await daemon.send(session, text))
            await daemon.is_running(runs[-1])
        await daemon.marked("both")
        await daemon.cancel(runs[0])
        one, two = [await daemon.wait(run) for run in runs]

        assert (one.status, two.status) == ("cancelled", "cancelled")
        assert one.cancel_requested_at is not None
        assert two.cancel_requested_at is None


async def test_many_sessions_stream_at_once() -> None:
    """Eight agents in eight processes; each session holds its own words only."""
    script = 'ON prompt\n    REPEAT 50\n        MSG "${PROMPT}${I} "\n'
    async with running_daemon(script, agent={"process": "per_session"}) as daemon:
        sessions = [await daemon.session() for _ in range(8)]
        runs = [await daemon.send(session, f"s{n}-") for n, session in enumerate(sessions)]
        with anyio.fail_after(PATIENCE):
            for n, run in enumerate(runs):
                await daemon.wait(run)
                said = await daemon.text(run)
                assert said == "".join(f"s{n}-{i} " for i in range(1, 51))
