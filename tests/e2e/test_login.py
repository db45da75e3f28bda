"""Agents that want a login first: asked for once they say so, and then what waited goes on."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from acphost.errors import AcpHostError
from acphost.wire.logins import AgentLogin
from tests.support.daemon import Daemon, eventually, payload, running_daemon
from tests.support.terminal import acphost, typist

METHODS = (
    '[{"id": "account", "name": "Account"}, '
    '{"id": "setup", "name": "Setup", "type": "terminal", "args": ["--login", "now"], '
    '"env": {"LOGIN_TOKEN": "t0p-secret"}}, '
    '{"id": "badge", "name": "Badge", "type": "hologram"}]'
)
INIT = f'INIT {{"authMethods": {METHODS}}}\n'
#: It makes sessions only after a login, in this process or, by a file, in an earlier one.
WANTS = (
    INIT
    + """
ON authenticate
    SET IN yes scope=process
    ANSWER {}
ON new IF ${IN:-no} = no
    FAIL -32000 "Authentication required"
"""
)


async def login(daemon: Daemon, method: str | None = "account", **more: Any) -> AgentLogin:  # noqa: ANN401
    given = {"agentId": "fake", "methodId": method, **more}
    return await daemon.client.request("agent/authenticate", given, AgentLogin)


async def test_the_waiting_run_goes_on_after_the_login() -> None:
    """On the process that asked: one `authenticate`, two `session/new`, and the prompt once."""
    async with running_daemon(WANTS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        done = await login(daemon)

        assert (done.status, done.sessions) == ("authenticated", [session])
        assert (await daemon.wait(run)).status == "completed"
        assert [message.get("method") for message in daemon.heard()] == [
            "initialize", "session/new", "authenticate", "session/new", "session/prompt",
        ]  # fmt: skip
        assert len(daemon.launches()) == 1
        seen = await daemon.get(session)
        assert (seen.status, seen.login) == ("idle", None)


async def test_nobody_is_logged_in_unasked() -> None:
    """Methods on offer are no request."""
    async with running_daemon(INIT) as daemon:
        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"
        assert daemon.heard("authenticate") == []


async def test_a_login_that_does_not_help_is_not_repeated() -> None:
    """The agent asks again: so does the session, and nobody runs in circles."""
    script = INIT + 'ON authenticate\n    ANSWER {}\nON new\n    FAIL -32000 "Who are you?"\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        await login(daemon)
        await daemon.hears("session/new", 2)
        await daemon.is_status(session, "auth_required")

        assert (await daemon.run(run)).status == "pending"
        assert len(daemon.heard("authenticate")) == 1
        assert len(daemon.heard("session/new")) == 2
        await daemon.cancel(run)
        assert (await daemon.wait(run)).status == "cancelled"


async def test_a_login_that_fails_is_told() -> None:
    """Refused, or never answered: an error with the agent's reason, in bounded time."""
    refused = WANTS.replace("    SET IN yes scope=process\n    ANSWER {}", '    FAIL -32603 "no"')
    async with running_daemon(refused) as daemon:
        session = await daemon.session()
        await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        with pytest.raises(AcpHostError, match="refused `authenticate`: no"):
            await login(daemon)
        with pytest.raises(AcpHostError, match="account, setup, badge"):
            await login(daemon, "passport")
        assert (await daemon.get(session)).status == "auth_required"


async def test_a_login_that_is_never_answered() -> None:
    """It ends after its time, and the agent is told that nobody waits any more."""
    silent = WANTS.replace("    SET IN yes scope=process\n    ANSWER {}", "    NOANSWER")
    async with running_daemon(silent, agent={"login_timeout": 0.2}) as daemon:
        session = await daemon.session()
        await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        with pytest.raises(AcpHostError, match="did not answer `authenticate`"):
            await login(daemon)
        given_up = await daemon.hears("$/cancel_request")
        asked = await daemon.hears("authenticate")
        assert given_up["params"] == {"requestId": asked["id"]}


async def test_asked_while_logging_in() -> None:
    """A form about the login shows in the session that waits for it."""
    schema = '{"properties": {"code": {"type": "string"}}}'
    form = f'"mode": "form", "message": "Code?", "requestedSchema": {schema}'
    script = WANTS.replace(
        "ON authenticate\n",
        f'ON authenticate\n    ASK elicitation/create {{"requestId": "${{#ID}}", {form}}} '
        "save=${DIR}/answer\n",
    )
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(login, daemon)
            await daemon.has_event(session, "elicitation.requested")
            (asked,) = await daemon.questions(session)
            await daemon.client.respond_to_form(asked.permission_id, "accept", {"code": "42"})
        assert (await daemon.wait(run)).status == "completed"
        told = json.loads(daemon.path("answer").read_text())["result"]
        assert told == {"action": "accept", "content": {"code": "42"}}


async def test_a_login_in_a_terminal() -> None:
    """What to run is told; afterwards a new process is asked, and `authenticate` is never sent."""
    async with running_daemon(WANTS, agent={"env": {}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        asked = await login(daemon, "setup")
        assert asked.status == "terminal"
        assert asked.terminal is not None
        assert asked.terminal.command == daemon.command()
        assert asked.terminal.args == ["--login", "now"]
        assert asked.terminal.env == {"LOGIN_TOKEN": "t0p-secret"}
        assert (await daemon.run(run)).status == "pending"
        daemon.rewrite(INIT)
        done = await login(daemon, "setup", completed=True)

        assert (done.status, done.sessions) == ("authenticated", [session])
        assert (await daemon.wait(run)).status == "completed"
        assert len(daemon.launches()) == 2
        assert daemon.heard("authenticate") == []
        journal = json.dumps([payload(event) for event in await daemon.history(session)])
        assert "t0p-secret" not in journal + daemon.log()


async def test_the_command_line_gives_its_terminal_to_a_login() -> None:
    """The agent's own program with what it asked for, on the person's terminal; 0 is success."""
    program = """#!/bin/sh
if [ "$1" = --login ]; then
    [ -t 0 ] && [ -t 1 ] || exit 4
    printf "code for $2 $LOGIN_TOKEN? "
    read code
    [ "$code" = 1234 ] || exit 3
    touch "$DIR/logged-in"
    exit 0
fi
[ -e "$DIR/logged-in" ] && script="$DIR/in.script" || script="$DIR/fake.script"
exec %s -m acphost.demo.agent "$script" --store "$DIR/fake.store" --record "$DIR/fake.record"
"""
    async with running_daemon(WANTS) as daemon:
        agent = daemon.path("agent")
        agent.write_text(program % sys.executable)
        agent.chmod(0o755)
        daemon.path("in.script").write_text(INIT)
        daemon.configure(agent={"command": [str(agent)]})
        await daemon.client.request("host/reload", {}, dict)
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.is_status(session, "auth_required")
        words = ("agents", "login", "fake", "setup")
        env = {"ACPHOST_CONFIG": str(daemon.folder)}
        async with typist(daemon.socket, *words, env=env) as person:
            await person.until("code for now t0p-secret?")
            await person.type("no\n")
            assert await person.rest() == 1
            assert "exit code 3; nothing was changed" in person.seen
        assert (await daemon.run(run)).status == "pending"
        async with typist(daemon.socket, *words, env=env) as person:
            await person.until("code for")
            await person.type("1234\n")
            assert await person.rest() == 0
            assert "logged in" in person.seen

        assert (await daemon.wait(run)).status == "completed"
        assert len(daemon.launches()) == 2
        assert daemon.heard("authenticate") == []
        piped = await acphost(daemon.socket, *words, "--config", str(daemon.folder))
        assert (piped.code, "needs a terminal" in piped.err) == (2, True)


async def test_several_sessions_wait_for_one_login() -> None:
    """One login is asked for; the other sessions are tried again on processes of their own."""
    script = WANTS.replace("    ANSWER {}", "    MARK ${DIR}/in\n    ANSWER {}")
    script = script.replace("ON new IF ${IN:-no} = no", "ON new IF ${IN:-no}${LATER:-} = no")
    async with running_daemon(script, agent={"process": "per_session"}) as daemon:
        first, second = await daemon.session(), await daemon.session()
        runs = [await daemon.send(first, "one"), await daemon.send(second, "two")]
        for session in (first, second):
            await daemon.is_status(session, "auth_required")
        daemon.rewrite(INIT)
        done = await login(daemon)

        assert set(done.sessions) == {first, second}
        assert [(await daemon.wait(run)).status for run in runs] == ["completed"] * 2
        assert len(daemon.heard("authenticate")) == 1
        assert len(daemon.launches()) == 3


async def test_logging_out_where_it_is_offered() -> None:
    """Later sessions are asked for a login again; who does not offer it is not sent it."""
    script = (
        INIT.replace("INIT {", 'INIT {"agentCapabilities": {"auth": {"logout": {}}}, ')
        + "ON logout\n    SET OUT yes scope=process\n    ANSWER {}\n"
        + 'ON new IF ${OUT:-no} = yes\n    FAIL -32000 "Authentication required"\n'
    )
    async with running_daemon(script, others={"plain": INIT}) as daemon:
        await daemon.ask(await daemon.session(), "hi")
        gone = await daemon.client.logout("fake")
        assert gone.status == "logged_out"
        second = await daemon.session()
        await daemon.send(second, "hi again")
        await daemon.is_status(second, "auth_required")
        with pytest.raises(AcpHostError, match="does not offer"):
            await daemon.client.logout("plain")
        assert daemon.heard("logout", "plain") == []


async def test_an_agent_that_nobody_uses_can_be_logged_in() -> None:
    """A process is started for it and ended after it."""
    async with running_daemon(WANTS) as daemon:
        known = await login(daemon, None)
        assert (known.status, [each.type for each in known.methods]) == (
            "choose", ["agent", "terminal", "hologram"],
        )  # fmt: skip
        assert (await login(daemon, "badge")).status == "authenticated"
        pids = daemon.launches()
        await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


async def test_on_the_command_line() -> None:
    """`send` says what to do and leaves the message waiting; `agents login` does it."""
    async with running_daemon(WANTS.replace('"type": "terminal", ', "")) as daemon:
        sent = await acphost(daemon.socket, "send", "--agent", "fake", "hi", cwd=daemon.work)
        assert sent.code == 77
        assert "acphost agents login fake" in sent.err
        which = await acphost(daemon.socket, "agents", "login", "fake")
        assert (which.code, "say which" in which.err) == (2, True)
        done = await acphost(daemon.socket, "agents", "login", "fake", "account")
        assert (done.code, done.out) == (0, "logged in\n")
        (session,) = (await daemon.client.list_sessions()).items
        await daemon.until(
            session.session_id, lambda seen: seen.last_run_status == "completed", "end"
        )
