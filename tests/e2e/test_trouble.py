"""`runtime/logs` gathers what went wrong; `runtime/health` says what the daemon rests on."""

from typing import Any

from tests.support.daemon import Daemon, running_daemon

SCRIPT = """
ON prompt "tool"
    CALL t-1 pending title="Run the tests" kind=execute
    UPD t-1 failed

ON prompt "ask"
    CALL w-1 pending title="Write notes.md" kind=edit
    PERM w-1 allow_once:allow_once:"Allow once" reject_once:reject_once:Reject
    UPD w-1 completed

ON prompt "crash"
    ERR "out of luck\\n"
    EXIT 70
"""


async def logs(daemon: Daemon, **params: object) -> list[dict[str, Any]]:
    told = await daemon.client.request("runtime/logs", params, dict[str, Any])
    items: list[dict[str, Any]] = told["items"]
    return items


async def answered(daemon: Daemon, session: str, option: str) -> None:
    run = await daemon.send(session, f"ask {option}")
    question = await daemon.question(session)
    await daemon.client.respond(question.permission_id, option)
    await daemon.wait(run)


async def test_trouble_is_gathered_the_newest_first() -> None:
    """A failed tool, a refusal, the last words of an agent; what was allowed is no trouble."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "tool")
        await answered(daemon, session, "allow_once")
        await answered(daemon, session, "reject_once")
        await daemon.ask(session, "crash")
        await daemon.ask(await daemon.session(), "tool elsewhere")

        found = await logs(daemon, sessionId=session)
        kinds = [each["kind"] for each in found]
        assert kinds == ["acp_stderr", "permission_denied", "tool_failed"]
        assert "out of luck" in found[0]["text"]
        assert found[1]["text"].startswith("reject_once by ")
        assert found[2]["text"] == "Run the tests"
        assert all(each["sessionId"] == session and each["hostRunId"] for each in found)
        everywhere = await logs(daemon)
        assert [each["kind"] for each in everywhere] == ["tool_failed", *kinds]
        assert [each["kind"] for each in await logs(daemon, limit=1)] == ["tool_failed"]


async def test_what_the_daemon_rests_on() -> None:
    async with running_daemon("") as daemon:
        health = await daemon.client.request("runtime/health", {}, dict[str, Any])
        ready = {each["agentId"]: each["ready"] for each in health["agents"]}
        assert ready["fake"] is True
        assert health["store"] == {"state": "ok", "reason": None, "since": None}
        assert (health["mcpBridge"], health["knowledge"]) == (None, None)


async def test_mcp_servers_that_an_agent_does_not_have_are_trouble() -> None:
    """One that cannot be started, one of a kind that the agent does not take; each told once."""
    servers = {"gone": {"command": "no-such-server"}, "web": {"url": "https://example.org/mcp"}}
    async with running_daemon(SCRIPT, host={"mcp": servers}) as daemon:
        session = await daemon.session()
        for text in ("tool", "again", "and again"):
            await daemon.ask(session, text)
        found = await logs(daemon, sessionId=session)
        assert [each["kind"] for each in found] == ["tool_failed", "mcp_failed", "mcp_failed"]
        web, gone = found[1:]
        assert gone["text"].startswith("gone: ")
        assert "no-such-server" in gone["text"]
        assert web["text"] == "web: the agent takes no MCP servers over http"

        warm = await daemon.session(start=True)
        await daemon.is_status(warm, "idle")
        await daemon.ask(warm, "hi")
        assert [each["kind"] for each in await logs(daemon, sessionId=warm)] == ["mcp_failed"] * 2


async def test_an_agent_that_waits_for_an_mcp_server_is_trouble_with_it() -> None:
    """It opens no session in time: the servers it was given are named."""
    script = "ON new\n    STAY\n"
    servers = {"slow": {"command": "sh"}}
    async with running_daemon(script, host={"mcp": servers}, agent={"load_timeout": 0.3}) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        (found,) = await logs(daemon, sessionId=session)
        assert found["kind"] == "mcp_failed"
        assert "slow" in found["text"]


async def test_trouble_far_from_the_end_of_a_run_is_found() -> None:
    """Behind thousands of words, and of many runs without any; a call left open is no failure."""
    script = """
ON prompt "long"
    CALL t-1 pending title="Run the tests" kind=execute
    UPD t-1 failed
    CALL t-2 pending title="Left open"
    FLOOD 3000
ON prompt "fine"
    MSG ok
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "long")
        for number in range(55):
            await daemon.ask(session, f"fine {number}")

        told = await daemon.client.request("runtime/logs", {"sessionId": session}, dict[str, Any])
        assert [each["text"] for each in told["items"]] == ["Run the tests"]
        assert told["incomplete"] is None
