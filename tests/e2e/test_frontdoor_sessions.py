"""What the front door offers for every agent: forks, deletions, forms, logins."""

from tests.support.daemon import running_daemon
from tests.support.editor import Message, editor

FORM = """
ON prompt "form"
    ASK elicitation/create {"sessionId":"${SESSION}","mode":"form","message":"Which?",
        "requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}
    MSG "${ANSWER}"
"""


async def test_a_fork_has_the_past_and_its_own_future() -> None:
    """By our journal: the agent need not know what a fork is."""
    async with running_daemon() as daemon, editor(daemon) as zed:
        session = await zed.new()
        await zed.prompt(session, "hello")
        answer = await zed.result("session/fork", sessionId=session, cwd=zed.work, mcpServers=[])
        fork = answer["sessionId"]
        assert fork != session
        assert (await zed.prompt(fork, "and now?"))["stopReason"] == "end_turn"
        await zed.load(fork)
        assert "and now?" in zed.said(fork, "user")
        assert "and now?" not in zed.said(session, "user")


async def test_a_deleted_session_is_gone_and_deleting_it_again_is_fine() -> None:
    """Its history goes; what the agent keeps is its own."""
    async with running_daemon() as daemon, editor(daemon) as zed:
        session = await zed.new()
        await zed.prompt(session, "hello")
        for _ in range(2):
            assert await zed.result("session/delete", sessionId=session) == {}
        error = await zed.error("session/load", sessionId=session, cwd=zed.work, mcpServers=[])
        assert error["code"] == -32002
        assert (await zed.result("session/list"))["sessions"] == []


async def test_a_form_is_filled_in_by_whoever_is_first() -> None:
    """Shown to an editor that has forms, under our name of the session; withdrawn when answered."""
    capabilities: Message = {"elicitation": {"form": {}}}
    async with (
        running_daemon(FORM) as daemon,
        editor(daemon, capabilities=capabilities) as first,
        editor(daemon, capabilities=capabilities) as second,
        editor(daemon) as plain,
    ):
        session = await first.new()
        for other in (second, plain):
            await other.load(session)
        request = await first.begin(session, "form")
        asked = [
            await zed.until(lambda each: each.get("method") == "elicitation/create")
            for zed in (first, second)
        ]
        assert asked[0]["params"]["sessionId"] == session
        assert asked[0]["params"]["message"] == "Which?"
        answer = {"action": "accept", "content": {"name": "me"}}
        await second.send(id=asked[1]["id"], result=answer)
        await first.withdrawn(asked[0])
        await first.answer(request)
        assert '"me"' in first.said(session)
        await plain.shows(session, '"me"')
        assert not any(each.get("method") == "elicitation/create" for each in plain.messages)


async def test_an_agent_that_wants_a_login_gets_one_through_the_editor() -> None:
    """-32000 with its methods; after `authenticate` the session opens."""
    script = """
INIT {"authMethods":[{"id":"key","name":"Key"}]}
ON new ONCE
    FAIL -32000 "log in first"
ON authenticate
    ANSWER {}
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        error = await zed.error("session/new", cwd=zed.work, mcpServers=[])
        assert error["code"] == -32000
        assert [method["id"] for method in error["data"]["authMethods"]] == ["key"]
        assert error["data"]["details"] == error["message"]
        assert await zed.result("authenticate", methodId="key") == {}
        session = await zed.new()
        assert (await zed.prompt(session, "hello"))["stopReason"] == "end_turn"
