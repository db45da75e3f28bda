"""Forms and addresses that agents put to people: asked once, answered once, never lost."""

import json
from typing import Any

import msgspec
import pytest

from acphost.errors import AcpHostError, AlreadyResolvedError
from acphost.wire.host import Decision
from tests.support.daemon import Daemon, payload, running_daemon
from tests.support.terminal import acphost

FORM = (
    '{"sessionId": "${SESSION}", "mode": "form", "message": "Which way?", "requestedSchema": '
    '{"type": "object", "required": ["way"], "properties": {"way": {"type": "string", '
    '"enum": ["left", "right"]}, "fast": {"type": "boolean"}}}}'
)
URL = (
    '{"sessionId": "${SESSION}", "mode": "url", "message": "Sign in", "elicitationId": "e1", '
    '"url": "https://login.example.org:8443/x?y"}'
)
ASKS = f"ON prompt\n    ASK elicitation/create {FORM} save=${{DIR}}/answer\n    MSG done\n"


async def opened(daemon: Daemon, session: str) -> Decision:
    """The one open form or address, waited for."""
    await daemon.is_status(session, "waiting")
    (found,) = await daemon.questions(session)
    return found


def answer(daemon: Daemon, name: str = "answer") -> Any:  # noqa: ANN401  it is JSON
    """What the agent was told: the result, or the error."""
    (told,) = json.loads(daemon.path(name).read_text()).values()
    return told


async def test_a_form_is_filled_in_once() -> None:
    """Checked against what was asked, journaled, sent; whoever is late is told who was first."""
    async with running_daemon(ASKS) as daemon, daemon.connect() as other:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        asked = await opened(daemon, session)
        assert (asked.kind, asked.host_run_id) == ("elicitation", run.host_run_id)
        shown = msgspec.json.decode(asked.request)
        assert (shown["mode"], shown["message"]) == ("form", "Which way?")
        assert shown["requestedSchema"]["required"] == ["way"]

        for wrong, place in ((None, "$.content.way"), ({"way": "up"}, "$.content.way"),
                             ({"way": "left", "x": 1}, "$.content.x")):  # fmt: skip
            with pytest.raises(AcpHostError) as caught:
                await daemon.client.respond_to_form(asked.permission_id, "accept", wrong)
            assert place in str(caught.value)
        with pytest.raises(AcpHostError, match="elicitation/respond"):
            await daemon.client.respond(asked.permission_id, "accept")
        content = {"way": "left", "fast": True}
        decision = await daemon.client.respond_to_form(asked.permission_id, "accept", content)
        assert (decision.status, decision.outcome) == ("resolved", "accept")
        with pytest.raises(AlreadyResolvedError):
            await other.respond_to_form(asked.permission_id, "decline")

        done = await daemon.wait(run)
        assert done.status == "completed"
        assert answer(daemon) == {"action": "accept", "content": content}
        (requested,) = await daemon.events(run, "elicitation.requested")
        assert payload(requested)["request"]["requestedSchema"]["type"] == "object"
        (resolved,) = await daemon.events(run, "elicitation.resolved")
        assert payload(resolved)["content"] == content
        assert payload(resolved)["by"]["actorId"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(action: Any) -> None:  # noqa: ANN401  one of the words
    """No is an answer as well, without content; the turn goes on."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        asked = await opened(daemon, session)
        with pytest.raises(AcpHostError, match=r"\$.content"):
            await daemon.client.respond_to_form(asked.permission_id, action, {"way": "left"})
        await daemon.client.respond_to_form(asked.permission_id, action)

        assert (await daemon.wait(run)).status == "completed"
        assert answer(daemon) == {"action": action}


async def test_an_address_is_shown_with_its_host() -> None:
    """It is for people to open; when the agent says that all is done there, that is told."""
    script = f"""
ON prompt
    ASK elicitation/create {URL} save=${{DIR}}/answer
    NOTIFY elicitation/complete {{"elicitationId": "e1"}}
    NOTIFY elicitation/complete {{"elicitationId": "unknown"}}
    MSG done
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        asked = await opened(daemon, session)
        shown = msgspec.json.decode(asked.request)
        assert shown["host"] == "login.example.org"
        assert shown["url"] == "https://login.example.org:8443/x?y"
        await daemon.client.respond_to_form(asked.permission_id, "accept")
        await daemon.wait(run)

        assert answer(daemon) == {"action": "accept"}
        first, second = await daemon.events(run, "elicitation.resolved")
        assert payload(first)["action"] == "accept"
        assert payload(second)["completed"] is True
        assert await daemon.history(session, "evidence") == []


async def test_done_before_anybody_answered() -> None:
    """The address was used without a word to us: the agent's word closes the question."""
    script = f"""
ON prompt
    ASK elicitation/create {URL} nowait as=E save=${{DIR}}/answer
    NOTIFY elicitation/complete {{"elicitationId": "e1"}}
    AWAIT E save=${{DIR}}/answer
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "go")

        assert run.status == "completed"
        assert answer(daemon) == {"action": "accept"}
        (resolved,) = await daemon.events(run, "elicitation.resolved")
        assert payload(resolved)["rule"] == "completed"


async def test_what_is_not_offered_is_refused() -> None:
    """Unknown modes, other kinds of addresses, and forms without a schema: invalid params."""
    wrongs = [
        '{"sessionId": "${SESSION}", "mode": "dance", "message": "?"}',
        '{"sessionId": "${SESSION}", "message": "?"}',
        '{"sessionId": "${SESSION}", "mode": "form", "message": "?"}',
        URL.replace("https:", "javascript:"),
        URL.replace("https://login.example.org:8443/x?y", "nowhere"),
        URL.replace('"elicitationId": "e1", ', ""),
    ]
    steps = "".join(
        f"    ASK elicitation/create {wrong} save=${{DIR}}/{number}\n"
        for number, wrong in enumerate(wrongs)
    )
    async with running_daemon(f"ON prompt\n{steps}    MSG done\n") as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "go")

        assert run.status == "completed"
        for number in range(len(wrongs)):
            assert answer(daemon, str(number))["code"] == -32602, number
        assert await daemon.questions(session, "all") == []


async def test_a_stop_answers_cancel() -> None:
    """Every open form of the turn is answered before the agent is told to stop."""
    async with running_daemon(ASKS + "    GATE ${DIR}/never\n") as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        await opened(daemon, session)
        await daemon.cancel(run)

        assert (await daemon.wait(run)).status == "cancelled"
        (decision,) = await daemon.questions(session, "all")
        assert (decision.status, decision.outcome) == ("resolved", "cancel")
        heard = [message for message in daemon.heard() if message.get("result")]
        assert heard[-1]["result"] == {"action": "cancel"}
        order = [message.get("method") for message in daemon.heard()]
        assert order.index("session/cancel") > daemon.heard().index(heard[-1])


async def test_it_dies_with_its_agent_and_with_the_daemon() -> None:
    """Nobody waits for an answer any more: withdrawn, and an answer is told so."""
    script = ASKS + 'ON prompt "die"\n' + f"    ASK elicitation/create {FORM} nowait\n    EXIT 3\n"
    async with running_daemon(script.replace("ON prompt\n", 'ON prompt "go"\n')) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "die")
        assert run.status == "interrupted"
        (expired,) = await daemon.history(session, "elicitation.expired")
        assert "ended" in payload(expired)["reason"]
        await daemon.send(session, "go")
        asked = await opened(daemon, session)
        await daemon.restart()
        assert len(await daemon.history(session, "elicitation.expired")) == 2
        with pytest.raises(AlreadyResolvedError, match="withdrawn"):
            await daemon.client.respond_to_form(asked.permission_id, "decline")


async def test_a_timeout_declines() -> None:
    """Where questions do not wait for ever, a form is declined in time."""
    async with running_daemon(ASKS, host={"permissions": {"timeout": 0.05}}) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "go")

        assert run.status == "completed"
        assert answer(daemon) == {"action": "decline"}
        (decision,) = await daemon.questions(session, "all")
        assert (decision.outcome, decision.rule) == ("decline", "timeout")


@pytest.mark.parametrize("what", ["elicitation/create", "session/request_permission"])
async def test_an_agent_takes_a_question_back(what: str) -> None:
    """The question leaves every screen, and the request is answered once, as cancelled."""
    asks = f"    ASK elicitation/create {FORM} nowait as=E id=77\n"
    if what == "session/request_permission":
        asks = "    CALL c1\n    PERM c1 yes:allow_once no:reject_once nowait as=E id=77\n"
    script = f"""
ON prompt
{asks}    GATE ${{DIR}}/go
    NOTIFY $/cancel_request {{"requestId": "77"}}
    NOTIFY $/cancel_request {{"requestId": 4711}}
    NOTIFY $/cancel_request {{"requestId": 77}}
    NOTIFY $/cancel_request {{}}
    AWAIT E save=${{DIR}}/answer
    NOTIFY $/cancel_request {{"requestId": 77}}
    MSG done
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        await opened(daemon, session)
        daemon.open("go")

        assert (await daemon.wait(run)).status == "completed"
        assert answer(daemon)["code"] == -32800
        (decision,) = await daemon.questions(session, "all")
        assert decision.status == "expired"
        replies = [message for message in daemon.heard() if message.get("id") == 77]
        assert len(replies) == 1


async def test_asked_while_a_session_is_being_made() -> None:
    """About a request of ours, with no session yet: it shows in the session that waits for it."""
    schema = '{"properties": {"team": {"type": "string"}}}'
    form = f'"mode": "form", "message": "Team?", "requestedSchema": {schema}'
    script = f"""
ON new
    ASK elicitation/create {{"requestId": "${{#ID}}", {form}}} save=${{DIR}}/answer
    NEW one
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        asked = await opened(daemon, session)
        assert asked.host_run_id is None
        await daemon.client.respond_to_form(asked.permission_id, "accept", {"team": "red"})

        assert (await daemon.wait(run)).status == "completed"
        assert answer(daemon) == {"action": "accept", "content": {"team": "red"}}


async def test_on_the_command_line() -> None:
    """`acphost permit` shows forms with their fields, and fills them in by the words of a shell."""
    async with running_daemon(ASKS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        asked = await opened(daemon, session)
        shown = await acphost(daemon.socket, "permit")
        assert "Which way?" in shown.out
        assert "way=left|right" in shown.out
        wrong = await acphost(daemon.socket, "permit", asked.permission_id, "accept", "way=up")
        assert (wrong.code, "left, right" in wrong.err) == (1, True)
        said = await acphost(
            daemon.socket, "permit", asked.permission_id, "accept", "way=left", "fast=true"
        )
        assert (said.code, said.out) == (0, "answered: accept\n")
        await daemon.wait(run)
        assert answer(daemon)["content"] == {"way": "left", "fast": True}
