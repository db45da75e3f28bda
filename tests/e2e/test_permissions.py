"""Questions of an agent: durable, for all clients, answered once, never by default."""

import os
import signal
from datetime import datetime

import anyio
import pytest

from acphost.client.client import Client
from acphost.errors import AlreadyResolvedError, InvalidParamsError, PermissionNotFoundError
from tests.support.daemon import payload, running_daemon
from tests.support.profiles import hosted

ASKS = """
ON prompt
    CALL c1 pending title="Edit" kind=edit
    PERM c1 a:allow_once:Allow d:reject_once:Deny title="Edit notes"
    MSG ${OUTCOME}
    UPD c1 completed
"""


async def test_the_answer_reaches_the_agent() -> None:
    """Asked, shown with what was offered, answered by a person, told to the agent."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        question = await daemon.question(session)
        waiting = await daemon.get(session)
        decided = await daemon.client.respond(question.permission_id, "a")
        ended = await daemon.wait(run)

        assert waiting.status == "waiting"
        assert (question.kind, question.host_run_id) == ("permission", run.host_run_id)
        assert question.tool_call_key == f"{run.host_run_id}/c1/1"
        assert (decided.status, decided.outcome, decided.option_id) == ("resolved", "selected", "a")
        assert ended.status == "completed"
        assert await daemon.text(run) == "a"
        requested, resolved = await daemon.events(
            run, "permission.requested", "permission.resolved"
        )
        assert payload(requested)["toolCall"]["title"] == "Edit notes"
        assert payload(requested)["request"]["sessionId"] == ended.acp_session_id
        assert payload(resolved)["optionId"] == "a"
        assert payload(resolved)["by"]["actorId"].startswith("uid:")
        assert await daemon.questions(session) == []


async def test_the_first_of_two_answers_wins() -> None:
    """Of two clients at once one decides; the other is told who was first and with what."""
    script = """
ON prompt
    REPEAT 200
        PERM c${I} a:allow_once d:reject_once
        MSG "${OUTCOME} "
"""
    async with running_daemon(script) as daemon, daemon.connect() as other:
        session = await daemon.session()
        run = await daemon.send(session, "ask")
        told = []
        async with daemon.client.subscribe(
            run_id=run.host_run_id, kinds=["permission.requested"]
        ) as questions:
            for _ in range(200):
                permission = payload(await anext(questions))["permissionId"]
                answers: list[object] = []
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_answer, daemon.client, permission, "a", answers)
                    tasks.start_soon(_answer, other, permission, "d", answers)
                assert answers[0] == answers[1]
                told.append(answers[0])
        await daemon.wait(run)

        assert (await daemon.text(run)).split() == told
        journaled = [
            payload(event)["optionId"] for event in await daemon.events(run, "permission.resolved")
        ]
        assert journaled == told


async def _answer(client: Client, permission: str, option: str, into: list[object]) -> None:
    try:
        into.append((await client.respond(permission, option)).option_id)
    except AlreadyResolvedError as exc:
        into.append(exc.details["optionId"])


async def test_only_what_was_offered_can_be_answered() -> None:
    """Another option is refused, and the question stays open."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        question = await daemon.question(session)
        with pytest.raises(InvalidParamsError) as refused:
            await daemon.client.respond(question.permission_id, "always")
        with pytest.raises(PermissionNotFoundError):
            await daemon.client.respond("perm_nobody", "a")

        assert refused.value.details["offered"] == ["a", "d"]
        await daemon.client.respond(question.permission_id, "d")
        await daemon.wait(run)
        assert await daemon.text(run) == "d"


async def test_cancel_answers_what_is_open() -> None:
    """Two questions: both are told `cancelled`, one `session/cancel`, and late answers are told."""
    script = """
ON prompt
    CALL c1 pending
    PERM c1 a:allow_once d:reject_once nowait as=r1
    PERM c2 a:allow_once d:reject_once nowait as=r2
    MARK ${DIR}/asked
    AWAIT r1 save=${DIR}/one
    AWAIT r2 save=${DIR}/two
    STAY
ON cancel KEEP
    AWAIT r1 r2
    END cancelled
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        await daemon.marked("asked")
        await daemon.until(session, lambda seen: seen.status == "waiting", "waiting")
        questions = await daemon.questions(session)
        assert len(questions) == 2
        await daemon.cancel(run)
        ended = await daemon.wait(run)

        assert ended.status == "cancelled"
        assert "cancelled" in await daemon.marked("one")
        assert "cancelled" in await daemon.marked("two")
        assert len(daemon.heard("session/cancel")) == 1
        resolved = await daemon.events(run, "permission.resolved")
        assert [payload(event)["outcome"] for event in resolved] == ["cancelled", "cancelled"]
        with pytest.raises(AlreadyResolvedError):
            await daemon.client.respond(questions[0].permission_id, "a")


async def test_a_question_that_comes_while_the_turn_is_being_stopped() -> None:
    """Nobody is asked about it; the agent is told `cancelled`, and the journal has both."""
    script = """
ON prompt
    MARK ${DIR}/begun
    STAY
ON cancel
    PERM c1 a:allow_once d:reject_once
    MSG ${OUTCOME}
    END cancelled
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        await daemon.marked("begun")
        await daemon.cancel(run)
        ended = await daemon.wait(run)

        assert ended.status == "cancelled"
        assert await daemon.text(run) == "cancelled"
        kinds = await daemon.kinds(run)
        assert kinds.count("permission.requested") == kinds.count("permission.resolved") == 1


async def test_a_question_waits_for_whoever_comes() -> None:
    """Nobody attached: it stays open; a client that comes later sees it and can answer."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        question = await daemon.question(session)
        async with daemon.connect() as later:
            async with later.subscribe(session_id=session) as events:
                async for event in events:
                    if event.kind == "permission.requested":
                        break
            assert payload(event)["permissionId"] == question.permission_id
            await later.respond(question.permission_id, "a")

        assert (await daemon.wait(run)).status == "completed"


async def test_a_timeout_picks_an_offered_way_to_say_no() -> None:
    """Never `cancelled`, never yes; the rule is named."""
    async with running_daemon(ASKS, host={"permissions": {"timeout": 0.2}}) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "edit")

        assert await daemon.text(run) == "d"
        (resolved,) = await daemon.events(run, "permission.resolved")
        assert payload(resolved)["rule"] == "timeout"
        assert payload(resolved)["by"] is None
        (decision,) = await daemon.questions(session, "all")
        assert decision.expires_at is not None


@pytest.mark.parametrize(("configured", "seconds"), [(None, 55), (10, 10), (600, 55)])
async def test_an_agent_that_stops_waiting_is_answered_before_that(
    configured: int | None, seconds: int
) -> None:
    """Hermes hears no answer after 60 s: the deadline stands with the question."""
    permissions = {} if configured is None else {"permissions": {"timeout": configured}}
    async with hosted("hermes", host=permissions) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, 'terminal {"command": "rm x"}')
        question = await daemon.question(session)
        assert question.expires_at is not None
        left = datetime.fromisoformat(question.expires_at) - datetime.fromisoformat(
            question.created_at
        )
        assert left.total_seconds() == seconds
        await daemon.client.respond(question.permission_id, "deny")
        await daemon.wait(run)


async def test_a_question_that_its_agent_has_given_up_harms_nobody() -> None:
    """Hermes takes silence for no and goes on: the question ends with the turn."""
    async with hosted("hermes", PATIENCE="0.2") as daemon:
        session = await daemon.session()
        run = await daemon.send(session, 'terminal {"command": "rm x"}')
        asked = payload(await daemon.has_event(session, "permission.requested"))
        assert (await daemon.wait(run)).status == "completed"
        with pytest.raises(AlreadyResolvedError):
            await daemon.client.respond(asked["permissionId"], "allow_once")
        assert (await daemon.ask(session, "say 1")).status == "completed"


async def test_more_questions_at_once_than_a_process_can_have_open() -> None:
    """A Hermes that has four turns waiting starts no fifth: every session has its own."""
    async with hosted("hermes") as daemon:
        sessions = [await daemon.session() for _ in range(5)]
        runs = [await daemon.send(each, 'terminal {"command": "rm x"}') for each in sessions]
        for session in sessions:
            question = await daemon.question(session)
            await daemon.client.respond(question.permission_id, "deny")
        assert {(await daemon.wait(run)).status for run in runs} == {"completed"}


REASONIX_ASKS = (
    '[[tool ask {"questions": [{"header": "C", "question": "Colour?", "options": [{"label": "Red",'
    ' "description": "r"}, {"label": "Blue", "description": "b"}]}, {"header": "S", "question": '
    '"Size?", "options": [{"label": "Big", "description": "b"}, {"label": "Small", "description": '
    '"s"}]}]} ;; say 2]]'
)


async def test_reasonix_asks_a_person_and_no_rule_answers() -> None:
    """Its choices are all ways to allow: one after the other, by option; a stop ends them."""
    rules = {"policy": {"rules": [{"name": "all", "kinds": ["other"], "answer": "allow_once"}]}}
    async with hosted("reasonix", host=rules) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, REASONIX_ASKS)
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "q1:2")
        question = await daemon.question(session, after=question)
        await daemon.client.respond(question.permission_id, "q2:1")
        assert (await daemon.wait(run)).status == "completed"
        (answered,) = await daemon.events(run, "tool.completed")
        said = payload(answered)["content"][0]["content"]["text"]
        assert "C: Blue\n- S: Big" in said

        run = await daemon.send(session, f"{REASONIX_ASKS} again")
        await daemon.question(session, after=question)
        await daemon.cancel(run)
        assert (await daemon.wait(run)).status == "cancelled"
        assert (await daemon.ask(session, "say 1")).status == "completed"


async def test_a_reasonix_question_with_one_answer_is_still_a_question() -> None:
    """It looks like leave that is asked for; no rule says what a person thinks."""
    asked = (
        '[[tool ask {"questions": [{"header": "G", "question": "Shall I?", "options":'
        ' [{"label": "Go on", "description": "g"}]}]} ;; say 2]]'
    )
    rules = {"policy": {"rules": [{"name": "all", "kinds": ["other"], "answer": "allow_once"}]}}
    async with hosted("reasonix", host=rules) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, asked)
        question = await daemon.question(session)
        assert question.kind == "choice"
        await daemon.client.respond(question.permission_id, "q1:1")
        assert (await daemon.wait(run)).status == "completed"
        (resolved,) = await daemon.events(run, "permission.resolved")
        assert payload(resolved)["rule"] is None


async def test_unattended_questions_are_rejected_where_so_configured() -> None:
    """`unattended = "reject"`: by an offered way to say no, at once, if nobody can answer."""
    host = {"permissions": {"unattended": "reject"}}
    async with running_daemon(ASKS, host=host, attends=False) as daemon:
        run = await daemon.ask(await daemon.session(), "edit")

        assert await daemon.text(run) == "d"
        (resolved,) = await daemon.events(run, "permission.resolved")
        assert (payload(resolved)["outcome"], payload(resolved)["by"]) == ("selected", None)
        assert payload(resolved)["rule"] == "unattended"


async def test_attended_questions_wait_where_unattended_ones_are_rejected() -> None:
    """A client that can answer is there: it is asked."""
    async with running_daemon(ASKS, host={"permissions": {"unattended": "reject"}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        question = await daemon.question(session)  # this test's client can answer
        await daemon.client.respond(question.permission_id, "a")

        assert (await daemon.wait(run)).status == "completed"


async def test_an_agent_that_gives_up_withdraws_its_question() -> None:
    """The turn ends without an answer: the question expires, and a late answer is told so."""
    script = """
ON prompt
    CALL c1 pending
    PERM c1 a:allow_once d:reject_once nowait as=r1
    MARK ${DIR}/asked
    GATE ${DIR}/go
    UPD c1 failed
    END
    AWAIT r1 save=${DIR}/told
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        question = await daemon.question(session)
        daemon.open("go")
        ended = await daemon.wait(run)

        assert ended.status == "completed"
        (expired,) = await daemon.events(run, "permission.expired")
        assert payload(expired)["permissionId"] == question.permission_id
        with pytest.raises(AlreadyResolvedError) as late:
            await daemon.client.respond(question.permission_id, "a")
        assert late.value.details["status"] == "expired"
        assert (await daemon.get(session)).status == "idle"
        assert "cancelled" in await daemon.marked("told")  # every request gets an answer


async def test_a_question_without_options_is_answered_cancelled() -> None:
    """There is nothing to choose from; it is kept as evidence."""
    script = "ON prompt\n    PERM c1\n    MSG ${OUTCOME}\n"
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "edit")

        assert await daemon.text(run) == "cancelled"
        assert len(await daemon.events(run, "evidence")) == 1


async def test_a_question_dies_with_its_agent() -> None:
    """The process is killed in mid-question: expired, and the run is interrupted."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit")
        await daemon.question(session)
        os.kill(daemon.launches()[0], signal.SIGKILL)
        ended = await daemon.wait(run)

        assert ended.status == "interrupted"
        assert await daemon.questions(session) == []
        (expired,) = await daemon.events(run, "permission.expired")
        assert payload(expired)["reason"]
