"""What agents offer decides what they are asked: nothing unasked for, everything that is there."""

import os
import signal

import pytest

from acphost.errors import AcpHostError
from tests.support.daemon import Daemon, payload, running_daemon

BARE = 'ON init\n    ANSWER {"protocolVersion": 1}\n'
#: Everything a client can have done to a session and its agent.
BASELINE = {"initialize", "session/new", "session/prompt", "session/cancel"}


def heard(daemon: Daemon) -> set[str]:
    return {message["method"] for message in daemon.heard() if "method" in message}


async def use_everything(daemon: Daemon) -> None:
    """Whatever may lead to a method that an agent need not have."""
    client = daemon.client
    session = await daemon.session(additionalDirectories=[str(daemon.folder)])
    await daemon.ask(session, "hi")
    for wishes in ({"mode": "plan"}, {"model": "b"}, {"options": {"x": "y"}}):
        with pytest.raises(AcpHostError):
            await client.configure(session, **wishes)
    await client.fork(session)
    await client.discover("fake")
    with pytest.raises(AcpHostError):
        await client.logout("fake")
    await client.reset(session, next="continue")
    await daemon.ask(session, "again")
    os.kill(daemon.launches()[-1], signal.SIGKILL)
    await daemon.has_event(session, "binding.lost")
    await daemon.ask(session, "once more")
    await client.delete_session(session, external=True)


async def test_an_agent_that_says_nothing_but_its_version() -> None:
    """Defaults hold, and no method is called that it has not offered."""
    async with running_daemon(BARE) as daemon:
        await use_everything(daemon)

        assert heard(daemon) <= BASELINE
        first = daemon.heard()[0]
        assert first["method"] == "initialize"
        assert first["params"]["clientInfo"]["name"] == "acphost"
        for opened in daemon.heard("session/new"):
            assert opened["params"].keys() == {"cwd", "mcpServers"}
            assert opened["params"]["mcpServers"] == []


@pytest.mark.parametrize("marker", ["null", "false"])
async def test_a_marker_that_says_no(marker: str) -> None:
    """Null and false are as good as absent."""
    names = ("list", "resume", "close", "delete", "fork", "additionalDirectories")
    offers = ", ".join(f'"{name}": {marker}' for name in names)
    told = f'{{"loadSession": {marker}, "sessionCapabilities": {{{offers}}}, "auth": {marker}}}'
    script = f'ON init\n    ANSWER {{"protocolVersion": 1, "agentCapabilities": {told}}}\n'
    async with running_daemon(script) as daemon:
        await use_everything(daemon)
        assert heard(daemon) <= BASELINE


async def test_a_marker_that_is_merely_true() -> None:
    """An object is due, yet nobody who says true means no."""
    told = '{"sessionCapabilities": {"list": true, "resume": true, "close": true}}'
    script = f'ON init\n    ANSWER {{"protocolVersion": 1, "agentCapabilities": {told}}}\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        assert (await daemon.client.discover("fake")).supported
        await daemon.client.reset(session, next="continue")
        assert (await daemon.ask(session, "again")).continuity == "resumed"


async def test_what_an_agent_tells_beyond_the_protocol_is_shown() -> None:
    """Unknown capabilities and `_meta` stand in the journal as they were told."""
    told = '{"_meta": {"x.y/z": [1]}, "flight": {"altitude": 12345678901234567890}}'
    async with running_daemon(f'INIT {{"agentCapabilities": {told}}}\n') as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")

        (started,) = await daemon.history(session, "binding.started")
        shown = payload(started)["agentCapabilities"]
        assert shown["_meta"] == {"x.y/z": [1]}
        assert shown["flight"] == {"altitude": 12345678901234567890}


@pytest.mark.parametrize("version", [0, 2, 3])
async def test_a_version_that_is_not_spoken_here(version: int) -> None:
    """The connection ends, and the run says which versions met."""
    async with running_daemon(f'INIT {{"protocolVersion": {version}}}\n') as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.error_code == "agent_unavailable"
        assert run.error is not None
        assert f"speaks ACP version {version}; this host speaks version 1" in run.error
        assert heard(daemon) == {"initialize"}


async def test_a_question_of_a_session_within_the_session() -> None:
    """A permission for a call never seen, asked on account of a session only the agent knows."""
    script = """
ON prompt
    ASK session/request_permission {"sessionId": "child", "toolCall": {"toolCallId": "never-seen",
        "title": "Run tests"}, "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}
    MSG "${ANSWER}"
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        asked = await daemon.question(session)
        assert asked.host_run_id == run.host_run_id
        assert b"Run tests" in bytes(asked.request)
        await daemon.client.respond(asked.permission_id, "y")
        assert "selected" in await daemon.text(await daemon.wait(run))


async def test_an_answer_to_a_request_that_was_given_up() -> None:
    """A late result, a late error, or none: nothing comes of it, and the next request works."""
    script = """
INIT {"authMethods": [{"id": "account", "name": "Account"}]}
ON authenticate ONCE
    GATE ${DIR}/go
    ANSWER {}
ON authenticate ONCE
    GATE ${DIR}/go
    FAIL -32800 "cancelled"
ON authenticate
    ANSWER {}
"""
    async with running_daemon(script, agent={"login_timeout": 1.5}) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        for count in (1, 2):
            with pytest.raises(AcpHostError, match="did not answer"):
                await daemon.client.authenticate("fake", "account")
            await daemon.hears("$/cancel_request", count)
        daemon.open("go")
        assert (await daemon.client.authenticate("fake", "account")).status == "authenticated"
        assert (await daemon.ask(session, "again")).status == "completed"
