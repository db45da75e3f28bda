"""Every message that agents get from a daemon at work, against the schema of the protocol."""

import os
import signal
from typing import Any

import pytest

from acphost.errors import AgentUnavailableError
from tests.contract.test_wire_fixtures import BY_METHOD, check
from tests.support.daemon import Daemon, running_daemon

MODES = '"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}'
OPTIONS = (
    '"configOptions": [{"id": "effort", "name": "E", "type": "select", "currentValue": "low", '
    '"options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]}, '
    '{"id": "verbose", "name": "V", "type": "boolean", "currentValue": false}]'
)
FORM = (
    '{"sessionId": "${SESSION}", "mode": "form", "message": "Which?", "requestedSchema": '
    '{"type": "object", "properties": {"way": {"type": "string"}, "tags": {"type": "array"}}}}'
)
OFFERS = (
    '{"authMethods": [{"id": "account", "name": "Account"}], "agentCapabilities": '
    '{"auth": {"logout": {}}, "mcpCapabilities": {"http": true, "sse": true}, '
    '"sessionCapabilities": {"additionalDirectories": {}, "delete": {}}}}'
)
SCRIPT = f"""
INIT {OFFERS}
ON authenticate
    SET IN yes scope=process
    ANSWER {{}}
ON new IF "${{IN:-no}} ${{LATER:-no}}" = "no no"
    FAIL -32000 "Authentication required"
ON new
    NEW ${{UUID}} {{{MODES}, {OPTIONS}}}
ON session/set_mode
    ANSWER {{}}
ON session/set_config_option
    ANSWER {{}}
ON session/delete
    ANSWER {{}}
ON prompt "ask"
    CALL c1
    PERM c1 yes:allow_once no:reject_once id=permission
    ASK elicitation/create {FORM} id=form
    ASK elicitation/create {FORM} id=declined
    ASK elicitation/create {{}} id=wrong
    ASK x/unknown {{}} id=unknown
    UPD c1 completed
ON prompt "stop"
    CALL c2
    PERM c2 yes:allow_once id=stopped nowait
    ASK elicitation/create {FORM} id=dismissed
"""
MUTE = f"INIT {OFFERS}\nON authenticate\n    NOANSWER\n"
#: What the agent asks for, by the ids it uses; answers are held against these.
ASKED = {
    "permission": "session/request_permission",
    "stopped": "session/request_permission",
    "form": "elicitation/create",
    "declined": "elicitation/create",
    "dismissed": "elicitation/create",
    "wrong": "elicitation/create",
    "unknown": "x/unknown",
}
SERVERS = [
    {"name": "local", "command": "/bin/true", "args": ["-x"], "env": [{"name": "A", "value": "b"}]},
    {"type": "http", "name": "far", "url": "http://127.0.0.1:9/", "headers": []},
    {"type": "sse", "name": "old", "url": "http://127.0.0.1:9/", "headers": []},
]


async def play(daemon: Daemon) -> None:
    """Have the daemon say everything it can say."""
    client, more = daemon.client, [str(daemon.folder)]
    session = await daemon.session(additionalDirectories=more, mcpServers=SERVERS)
    first = await daemon.send(session, "hi", _meta={"traceparent": "00-1-2-01"})
    await daemon.is_status(session, "auth_required")
    await client.authenticate("fake", "account")
    await daemon.wait(first)
    options: dict[str, Any] = {"effort": "high", "verbose": True}
    await client.configure(session, mode="plan", options=options)
    run = await daemon.send(session, "ask")
    asked = await daemon.question(session)
    await client.respond(asked.permission_id, "yes")
    for answer in ({"way": "left", "tags": ["a"]}, None):
        asked = await daemon.question(session, after=asked)
        action = "accept" if answer else "decline"
        await client.respond_to_form(asked.permission_id, action, answer)  # type: ignore[arg-type]
    await daemon.wait(run)
    stopped = await daemon.send(session, "stop")
    await daemon.has_event(session, "elicitation.requested")
    await daemon.hears("session/prompt", 3)
    await daemon.cancel(stopped)
    await daemon.wait(stopped)
    await client.discover("fake", str(daemon.work))
    adopted = await client.adopt("fake", "nobody-knows", str(daemon.work))
    await daemon.ask(adopted.session_id, "load it")
    await client.reset(session, next="continue")
    await daemon.ask(session, "again")
    os.kill(daemon.launches()[-1], signal.SIGKILL)
    await daemon.has_event(session, "binding.lost")
    await daemon.ask(session, "once more")
    await client.logout("fake")
    await client.delete_session(session, external=True)
    with pytest.raises(AgentUnavailableError):
        await client.authenticate("mute", "account")


async def test_every_message_is_what_the_schema_names_and_nothing_more() -> None:
    """Requests, notifications and answers of every kind, each by the definition of its method."""
    wanted = {
        "initialize", "authenticate", "logout", "session/new", "session/load", "session/resume",
        "session/list", "session/close", "session/delete", "session/prompt", "session/cancel",
        "session/set_mode", "session/set_config_option", "$/cancel_request",
    }  # fmt: skip
    host = {"agent": {"login_timeout": 0.3}}
    async with running_daemon(SCRIPT, others={"mute": MUTE}, agent=host["agent"]) as daemon:
        await play(daemon)
        said = daemon.heard() + daemon.heard(agent="mute")

    for message in said:
        method = message.get("method") or ASKED.get(str(message.get("id")), "")
        if "error" not in message:
            assert method in BY_METHOD, message
        assert check(message, method, strictly=True) == [], message
    assert wanted <= {message["method"] for message in said if "method" in message}
    answered = {str(message["id"]) for message in said if "method" not in message}
    assert answered >= ASKED.keys()
