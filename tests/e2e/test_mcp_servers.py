"""MCP servers: in the shape that strict agents insist on, only what they take, secrets hidden."""

import json
from pathlib import Path
from typing import Any

import pytest

from acphost.errors import InvalidParamsError
from acphost.wire.host import Session
from tests.support.daemon import Daemon, payload, running_daemon

SECRET = "hush-hush-7"
TOOLS: dict[str, Any] = {
    "tools": {"command": "sh", "args": ["-c", "exit"], "env": {"TOKEN": SECRET}},
    "web": {"url": "https://example.org/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    "gone": {"command": "no-such-program"},
    "theirs": {"command": "sh", "agents": ["another"]},
    "off": {"command": "sh", "enabled": False},
}
WEB = {
    "type": "http",
    "name": "web",
    "url": "https://example.org/mcp",
    "headers": [{"name": "Authorization", "value": f"Bearer {SECRET}"}],
}


def script(capabilities: dict[str, bool]) -> str:
    """A strict agent that says it takes these."""
    offer = {
        "agentCapabilities": {
            "loadSession": True,
            "mcpCapabilities": capabilities,
            "sessionCapabilities": None,
        }
    }
    return f"EXPECT mcp-arrays\nON init\n    INIT {json.dumps(offer)}\nON prompt\n    MSG ok\n"


def passed(daemon: Daemon, method: str) -> list[dict[str, Any]]:
    """What the last such request named."""
    servers: list[dict[str, Any]] = daemon.heard(method)[-1]["params"]["mcpServers"]
    return servers


async def configure(daemon: Daemon, session: str, servers: list[dict[str, Any]]) -> None:
    """Give a session other servers."""
    given = {"sessionId": session, "mcpServers": servers}
    await daemon.client.request("session/configure", given, Session)


async def is_hidden(daemon: Daemon, session: str) -> None:
    """The secret is nowhere that anybody looks."""
    shown = [await daemon.status(session), await daemon.get(session)]
    assert SECRET not in repr(shown)
    assert SECRET not in daemon.log()
    assert SECRET not in repr(await daemon.history(session))
    journal = daemon.journal.path
    for file in (journal, journal.with_name(journal.name + "-wal")):
        assert not file.exists() or SECRET.encode() not in file.read_bytes()


async def test_an_agent_gets_what_it_can_use_on_every_way() -> None:
    """The same on new and load; what is left out is told once, with the reason."""
    async with running_daemon(script({}), host={"mcp": TOOLS}) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        new = passed(daemon, "session/new")
        status = await daemon.status(session)
        told = {payload(event)["server"]: payload(event)
                for event in await daemon.history(session, "mcp.status")}  # fmt: skip
        await is_hidden(daemon, session)
        await daemon.restart()
        await daemon.ask(session, "two")
        load = passed(daemon, "session/load")

        (tools,) = new
        assert tools.keys() == {"name", "command", "args", "env"}
        assert Path(tools["command"]).is_absolute()
        assert tools["env"] == [{"name": "TOKEN", "value": SECRET}]
        assert load == new
        assert {name: each["state"] for name, each in told.items()} == {
            "tools": "configured", "web": "skipped", "gone": "skipped"
        }  # fmt: skip
        assert told["web"]["error"] == "the agent takes no MCP servers over http"
        assert "no-such-program" in told["gone"]["error"]
        assert status.mcp.status == "configured"
        assert [text.partition(":")[0] for text in status.mcp.failed] == ["web", "gone"]


async def test_servers_over_http_go_to_agents_that_take_them() -> None:
    """With headers as pairs; and a session's own server takes the place of one of that name."""
    own = {"type": "sse", "name": "tools", "url": "https://example.org/sse"}
    async with running_daemon(script({"http": True, "sse": True}), host={"mcp": TOOLS}) as daemon:
        session = await daemon.session(mcpServers=[own])
        await daemon.ask(session, "one")

        assert passed(daemon, "session/new") == [WEB, {**own, "headers": []}]
        await is_hidden(daemon, session)


async def test_a_session_without_servers_says_so_with_an_empty_list() -> None:
    async with running_daemon(script({})) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")

        assert passed(daemon, "session/new") == []
        assert (await daemon.status(session)).mcp.status == "none"


async def test_a_typed_program_loses_its_type_and_gains_its_lists() -> None:
    """Older agents know no such type, and strict ones want every list."""
    async with running_daemon(script({})) as daemon:
        given = {"type": "stdio", "name": "a", "command": "/bin/true"}
        await daemon.ask(await daemon.session(mcpServers=[given]), "one")

        assert passed(daemon, "session/new") == [
            {"name": "a", "command": "/bin/true", "args": [], "env": []}
        ]


async def test_a_server_of_the_wrong_shape_is_refused_at_once() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": "a", "command": "true"}, "command"),
        ({"type": "stdio", "name": "a", "command": "true"}, "command"),
        ({"name": "a", "command": "/bin/true", "env": {"A": "b"}}, "env"),
        ({"type": "http", "name": "a"}, "url"),
        ({"command": "/bin/true"}, "name"),
    ]
    async with running_daemon() as daemon:
        for server, where in wrong:
            message = rf"{where}.*mcpServers\[0\]|mcpServers.*{where}"
            with pytest.raises(InvalidParamsError, match=message):
                await daemon.session(mcpServers=[server])


async def test_a_relative_folder_is_refused_before_any_agent_hears_of_it() -> None:
    async with running_daemon() as daemon:
        with pytest.raises(InvalidParamsError, match=r"\$\.additionalDirectories\[1\]"):
            await daemon.session(additionalDirectories=["/tmp", "relative"])
        with pytest.raises(InvalidParamsError, match=r"\$\.cwd"):
            await daemon.session(cwd="relative")

        assert daemon.launches() == []


async def test_an_agent_that_hangs_on_a_server_names_those_it_was_given() -> None:
    """The session is not held for ever, and whoever reads the error knows where to look."""
    silent = "ON new\n    NOANSWER\n"
    async with running_daemon(
        silent, host={"mcp": {"slow": {"command": "sh"}}}, agent={"load_timeout": 0.3}
    ) as daemon:
        run = await daemon.ask(await daemon.session(), "one")

        assert run.status == "failed"
        assert "it was given the MCP servers slow" in (run.error or "")


NOTES: dict[str, Any] = {
    "name": "notes",
    "command": "/bin/cat",
    "args": [],
    "env": [{"name": "TOKEN", "value": SECRET}],
}


async def test_servers_that_are_replaced_reach_an_agent_that_can_go_on_before_its_next_prompt() -> (
    None
):
    """It opens its session again with them; the same ones again change nothing."""
    async with running_daemon(script({})) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        for _ in range(2):
            await configure(daemon, session, [NOTES])
            await daemon.ask(session, "two")
        assert passed(daemon, "session/new") == []
        assert len(daemon.heard("session/load")) == 1
        assert passed(daemon, "session/load") == [NOTES]
        await is_hidden(daemon, session)
        await daemon.restart()
        await daemon.ask(session, "three")
        assert passed(daemon, "session/load") == [NOTES]
        plain = {**NOTES, "env": []}
        await configure(daemon, session, [plain])
        await daemon.ask(session, "four")
        assert passed(daemon, "session/load") == [plain]
        assert not list(daemon.state.glob("secrets/*.json"))
        changed = [
            payload(each) for each in await daemon.history(session, "session.config.updated")
        ]
        assert [each["changed"] for each in changed] == [{"mcpServers": ["notes"]}] * 2


async def test_an_agent_that_could_not_go_on_keeps_its_session_and_has_the_servers_later() -> None:
    """Nothing is forgotten for their sake."""
    forgetful = script({}).replace('"loadSession": true', '"loadSession": false')
    async with running_daemon(forgetful) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        await configure(daemon, session, [NOTES])
        await daemon.ask(session, "two")
        assert len(daemon.heard("session/new")) == 1
        await daemon.restart()
        await daemon.ask(session, "three")
        assert passed(daemon, "session/new") == [NOTES]


async def test_replaced_servers_are_checked_like_those_of_a_new_session() -> None:
    """The path of what is wrong, and nothing is changed."""
    async with running_daemon(script({})) as daemon:
        session = await daemon.session()
        with pytest.raises(InvalidParamsError, match=r"mcpServers\[0\]\.command"):
            await configure(daemon, session, [{"name": "x", "command": "cat"}])
        assert await daemon.history(session, "session.config.updated") == []
