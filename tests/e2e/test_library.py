"""Sessions as things: named, pinned, deleted, copied, found at the agent and taken over."""

import os
import signal
from typing import Any

import msgspec
import pytest

from acphost.errors import AcpHostError
from tests.support.daemon import Daemon, eventually, facts, is_alive, payload, running_daemon
from tests.support.editor import editor
from tests.support.profiles import hosted
from tests.support.terminal import Finished, acphost

INIT = 'INIT {"agentCapabilities": {"sessionCapabilities": {"resume": null}}}\n'
RECALLS = 'ON prompt "recall"\n    RECALL all\n'


def offering(**capabilities: object) -> str:
    """An agent with these session capabilities beside loading."""
    told = msgspec.json.encode({"agentCapabilities": {"sessionCapabilities": capabilities}})
    return f"INIT {told.decode()}\n"


async def test_a_title_of_a_person_stays() -> None:
    """The agent's titles come and go, null included, until a person gives one; also later on."""
    script = """
ON prompt "name"
    UPDATE {"sessionUpdate": "session_info_update", "title": "From the agent"}
ON prompt "keep"
    UPDATE {"sessionUpdate": "session_info_update", "updatedAt": "2026-11-30T00:00:00Z"}
ON prompt "clear"
    UPDATE {"sessionUpdate": "session_info_update", "title": null}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "name 1")
        assert (await daemon.get(session)).title == "From the agent"
        await daemon.ask(session, "keep")
        assert (await daemon.get(session)).title == "From the agent"
        await daemon.ask(session, "clear")
        assert (await daemon.get(session)).title is None
        await daemon.ask(session, "name 2")
        await daemon.restart()
        await daemon.ask(session, "clear 2")
        assert (await daemon.get(session)).title is None

        assert (await daemon.client.rename(session, "Mine")).title == "Mine"
        await daemon.ask(session, "name 3")
        await daemon.restart()
        await daemon.ask(session, "clear 3")
        assert (await daemon.get(session)).title == "Mine"
        (told,) = await daemon.history(session, "session.renamed")
        assert payload(told) == {"title": "Mine"}
        await daemon.client.rename(session, None)
        await daemon.ask(session, "name 4")
        assert (await daemon.get(session)).title == "From the agent"


async def test_pinning() -> None:
    """Told once for each change."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        assert (await daemon.client.pin(session)).pinned
        await daemon.client.pin(session)
        assert not (await daemon.client.pin(session, pinned=False)).pinned
        told = await daemon.history(session, "session.info.updated")
        assert [payload(event) for event in told] == [{"pinned": True}, {"pinned": False}]


async def test_deleting_leaves_nothing_here_and_everything_there() -> None:
    """What runs is stopped, what waits ends, the store forgets; the agent keeps its own."""
    script = INIT + 'ON prompt "wait"\n    GATE ${DIR}/never\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        other = await daemon.session()
        await daemon.ask(other, "hi")
        run = await daemon.is_running(await daemon.send(session, "wait"))
        waiting = await daemon.send(session, "later")
        done = await daemon.client.delete_session(session)

        assert (done.deleted, done.external.status) == (True, "not_requested")
        for method, params in (("session/get", {"sessionId": session}),
                               ("run/get", {"hostRunId": run.host_run_id}),
                               ("run/get", {"hostRunId": waiting.host_run_id})):  # fmt: skip
            with pytest.raises(AcpHostError):
                await daemon.client.request(method, params, dict[str, Any])
        assert len(daemon.heard("session/cancel")) == 1
        assert daemon.heard("session/delete") == []
        assert daemon.prompts() == ["hi", "wait"]
        assert (await daemon.ask(other, "still here")).status == "completed"
        with pytest.raises(AcpHostError):
            await daemon.client.delete_session(session)
        await daemon.restart()
        assert [each.session_id for each in (await daemon.client.list_sessions()).items] == [other]


async def test_deleting_ends_what_is_open() -> None:
    """A question, a form, and a command of the session: the agent is told, nothing runs on."""
    form = '{"sessionId": "${SESSION}", "mode": "form", "message": "?", "requestedSchema": {}}'
    command = (
        '{"sessionId": "${SESSION}", "command": "sh",'
        ' "args": ["-c", "echo $$ > new; mv new pid; exec sleep 300"]}'
    )
    waits = '{"sessionId": "${SESSION}", "terminalId": "${TERMINAL}"}'
    script = (
        INIT
        + f"""
ON prompt "wait"
    CALL c1
    PERM c1 yes:allow_once no:reject_once id="question" nowait
    ASK elicitation/create {form} nowait id="form"
    ASK terminal/create {command}
    ASK terminal/wait_for_exit {waits} nowait id="exit"
    STAY
"""
    )
    async with running_daemon(script, host={"terminals": {"run": "allow"}}) as daemon:
        session = await daemon.session()
        await daemon.ask(await daemon.session(), "hi")
        await daemon.is_running(await daemon.send(session, "wait"))
        await daemon.has_event(session, "elicitation.requested")
        pid = int(await daemon.marked("work/pid"))
        await daemon.client.delete_session(session)

        await daemon.hears("session/cancel")
        told = {each["id"]: each["result"] for each in daemon.heard() if "result" in each}
        assert told["question"] == {"outcome": {"outcome": "cancelled"}}
        assert told["form"] == {"action": "cancel"}
        await eventually(lambda: not is_alive(pid))
        assert len(daemon.heard("session/cancel")) == 1


async def test_deleting_there_too_wants_a_word() -> None:
    """`confirm` repeats the id; an agent that does not know the session has deleted it."""
    script = offering(delete={}) + "ON session/delete ONCE\n    ANSWER {}\n"
    script += 'ON session/delete\n    FAIL -32002 "no such session"\n'
    async with running_daemon(script) as daemon, daemon.wire() as wire:
        first, second = await daemon.session(), await daemon.session()
        mine = (await daemon.ask(first, "hi")).acp_session_id
        await daemon.ask(second, "hi")
        asked = {"sessionId": first, "deleteExternalProviderSession": True}
        for confirm in ({}, {"confirm": "yes"}, {"confirm": second}):
            error = await wire.error("session/delete", {**asked, **confirm})
            assert error["data"]["code"] == "confirmation_required"
            assert error["data"]["confirm"] == first
        done = await daemon.client.delete_session(first, external=True)
        assert (done.external.requested, done.external.status) == (True, "deleted")
        assert daemon.heard("session/delete")[0]["params"] == {"sessionId": mine}
        await start_anew(daemon, second)
        done = await daemon.client.delete_session(second, external=True)
        assert done.external.status == "deleted"
        never = await daemon.session()
        done = await daemon.client.delete_session(never, external=True)
        assert done.external.status == "deleted"
        assert len(daemon.heard("session/delete")) == 2


async def test_an_agent_that_cannot_delete() -> None:
    """It is not asked; one that fails is quoted, and here the session is gone all the same."""
    others = {"fails": offering(delete={}) + 'ON session/delete\n    FAIL -32603 "disk"\n'}
    async with running_daemon(offering(delete=None), others=others) as daemon:
        session, failing = await daemon.session(), await daemon.session("fails")
        await daemon.ask(session, "hi")
        await daemon.ask(failing, "hi")
        done = await daemon.client.delete_session(session, external=True)
        assert (done.deleted, done.external.status) == (True, "unsupported")
        assert daemon.heard("session/delete") == []
        done = await daemon.client.delete_session(failing, external=True)
        assert (done.deleted, done.external.status) == (True, "failed")
        assert done.external.error == "disk"


async def test_an_agents_session_is_closed_where_a_binding_ends() -> None:
    """Only where that is offered, and whatever the agent says to it."""
    script = offering(close={}) + 'ON close\n    FAIL -32002 "gone already"\n'
    async with running_daemon(script, others={"plain": offering(close=None)}) as daemon:
        for agent, count in (("fake", 1), ("plain", 0)):
            session = await daemon.session(agent)
            other = await daemon.session(agent)
            mine = (await daemon.ask(session, "hi")).acp_session_id
            await daemon.ask(other, "hi")
            await daemon.client.reset(session, next="continue")
            await daemon.ask(other, "again")
            closed = [each["params"] for each in daemon.heard("session/close", agent)]
            assert closed == [{"sessionId": mine}] * count
            assert (await daemon.ask(session, "again")).status == "completed"


async def start_anew(daemon: Daemon, session: str) -> None:
    os.kill(daemon.launches()[-1], signal.SIGKILL)
    await daemon.has_event(session, "binding.lost")


LISTS = (
    offering(list={})
    + """
ON list IF "${PARAMS}" ~ "p2"
    ANSWER {"sessions": [{"sessionId": "c", "cwd": "${WORK}"}, {"sessionId": "a", "cwd": "/"}, 5]}
ON list
    ANSWER {"sessions": [{"sessionId": "a", "cwd": "${WORK}", "title": "A", "updatedAt": 5},
        {"sessionId": "b", "cwd": "/elsewhere"}, {"cwd": "/no-id"}], "nextCursor": "p2"}
"""
)


async def test_finding_what_an_agent_keeps() -> None:
    """Page by page to the end, other folders and broken items left out, ours marked as such."""
    async with running_daemon("") as daemon:
        daemon.rewrite(LISTS.replace("${WORK}", str(daemon.work)))
        known = await daemon.client.adopt("fake", "c", str(daemon.work))
        found = await daemon.client.discover("fake", str(daemon.work))
        assert found.supported
        assert [(each.acp_session_id, each.title, each.session_id) for each in found.sessions] == [
            ("a", "A", None),
            ("c", None, known.session_id),
        ]
        assert found.problem is None
        assert len((await daemon.client.discover("fake")).sessions) == 3
        asked = [each["params"] for each in daemon.heard("session/list")]
        assert asked[:2] == [
            {"cwd": str(daemon.work)}, {"cwd": str(daemon.work), "cursor": "p2"},
        ]  # fmt: skip
        await eventually(lambda: len(daemon.launches()) == 2)


async def test_lists_that_are_not_right() -> None:
    """No list at all, an error in the middle, and one that goes in circles."""
    circles = (
        offering(list={})
        + 'ON list\n    ANSWER {"sessions": [{"sessionId": "a"}], "nextCursor": "x"}\n'
    )
    fails = offering(list={}) + (
        'ON list IF "${PARAMS}" ~ "p2"\n    FAIL -32602 "bad cursor"\n'
        'ON list\n    ANSWER {"sessions": [{"sessionId": "a"}], "nextCursor": "p2"}\n'
    )
    others = {"circles": circles, "fails": fails}
    async with running_daemon(offering(list=None), others=others) as daemon:
        found = await daemon.client.discover("fake")
        assert (found.supported, found.sessions) == (False, [])
        assert daemon.heard("session/list") == []
        found = await daemon.client.discover("circles")
        assert (len(found.sessions), found.problem) == (1, "the agent's list goes in circles")
        found = await daemon.client.discover("fails")
        assert (len(found.sessions), found.problem) == (1, "bad cursor")
        with pytest.raises(AcpHostError):
            await daemon.client.discover("nobody")


async def test_taking_over_a_session_of_the_agents() -> None:
    """It is loaded, not resumed: its history, which nobody here has seen, is shown once."""
    async with running_daemon(RECALLS) as daemon:
        first = await daemon.session()
        theirs = (await daemon.ask(first, "remember the tea")).acp_session_id
        assert theirs is not None
        await daemon.client.delete_session(first)
        adopted = await daemon.client.adopt("fake", theirs, str(daemon.work))
        again = await daemon.client.adopt("fake", theirs, str(daemon.work))
        assert again.session_id == adopted.session_id
        run = await daemon.ask(adopted.session_id, "recall")

        assert "remember the tea" in await daemon.text(run)
        assert (run.continuity, run.acp_session_id) == ("replay_seen", theirs)
        past = [event for event in await daemon.history(adopted.session_id)
                if facts(event).get("history")]  # fmt: skip
        assert [event.kind for event in past] == ["message.user", "message.delta"]
        assert payload(past[0])["content"][0]["text"] == "remember the tea"
        assert all(event.host_run_id is None for event in past)
        (created,) = await daemon.history(adopted.session_id, "session.created")
        assert payload(created)["adopted"] is True
        await start_anew(daemon, adopted.session_id)
        assert (await daemon.ask(adopted.session_id, "recall 2")).continuity == "resumed"
        async with editor(daemon) as zed:
            await zed.load(adopted.session_id)
            assert zed.said(adopted.session_id, "user") == "remember the tearecallrecall 2"


@pytest.mark.parametrize("runtime", ["hermes", "reasonix"])
async def test_taking_over_a_session_of_a_recorded_agent(runtime: str) -> None:
    """What was said and done is shown; what the agent put in by itself is not."""
    async with hosted(runtime) as daemon:
        first = await daemon.session()
        theirs = (await daemon.ask(first, "say 1")).acp_session_id
        assert theirs is not None
        await daemon.client.delete_session(first)
        adopted = await daemon.client.adopt("fake", theirs, str(daemon.work))
        run = await daemon.ask(adopted.session_id, "recall")

        assert (run.status, run.acp_session_id) == ("completed", theirs)
        assert "say 1" in await daemon.text(run)
        past = [event for event in await daemon.history(adopted.session_id)
                if facts(event).get("history")]  # fmt: skip
        assert past[0].kind == "message.user"
        texts = [payload(event)["content"][0]["text"] for event in past
                 if event.kind == "message.user"]  # fmt: skip
        assert texts == ["say 1"]
        assert any(event.kind == "message.delta" for event in past)


async def test_an_adopted_history_that_breaks_off_is_shown_once() -> None:
    """The agent dies while it tells it, and tells the next process from the beginning."""
    dies = """
ON load
    USER "one"
    MSG "first"
    MARK ${DIR}/told
    GATE ${DIR}/go
    EXIT 1
"""
    tells = """
ON load
    USER "one"
    MSG "first"
    CALL c1 completed title=Look kind=read
    USER "two"
    MSG "second"
"""
    async with running_daemon(dies) as daemon:
        adopted = await daemon.client.adopt("fake", "theirs", str(daemon.work))
        run = await daemon.send(adopted.session_id, "hi")
        await daemon.marked("told")
        daemon.rewrite(tells)
        daemon.open("go")
        await daemon.wait(run)
        past = [event for event in await daemon.history(adopted.session_id)
                if facts(event).get("history")]  # fmt: skip
        assert [event.kind for event in past] == [
            "message.user", "message.delta", "tool.completed", "message.user", "message.delta",
        ]  # fmt: skip


async def test_what_could_not_be_taken_over_is_not_taken_for_history_later() -> None:
    """The agent does not know it: a new one begins, whose own load is no news."""
    async with running_daemon(INIT) as daemon:
        adopted = await daemon.client.adopt("fake", "nobody-knows", str(daemon.work))
        assert (await daemon.ask(adopted.session_id, "one")).continuity == "load_failed_new"
        await start_anew(daemon, adopted.session_id)
        assert (await daemon.ask(adopted.session_id, "two")).continuity == "replay_seen"
        said = await daemon.history(adopted.session_id, "message.user")
        assert [payload(event)["content"][0]["text"] for event in said] == ["one", "two"]


async def test_an_adopted_history_may_stand_behind_the_answer() -> None:
    """Some agents answer first: what they tell then is shown all the same."""
    script = 'ON load\n    BATCH\n        ANSWER {}\n        USER "a"\n        MSG "b"\n'
    async with running_daemon(script) as daemon:
        adopted = await daemon.client.adopt("fake", "theirs", str(daemon.work))
        await daemon.ask(adopted.session_id, "on")
        past = [event.kind for event in await daemon.history(adopted.session_id)
                if facts(event).get("history")]  # fmt: skip
        assert past == ["message.user", "message.delta"]


async def test_an_adopted_history_is_told_to_an_agent_that_has_forgotten_it() -> None:
    """What was shown once is the session's own: a cold resume has it in its packet."""
    async with running_daemon(RECALLS) as daemon:
        first = await daemon.session()
        theirs = (await daemon.ask(first, "remember the tea")).acp_session_id
        assert theirs is not None
        await daemon.client.delete_session(first)
        adopted = await daemon.client.adopt("fake", theirs, str(daemon.work))
        await daemon.ask(adopted.session_id, "green or black")
        await daemon.client.reset(adopted.session_id, next="cold")
        run = await daemon.ask(adopted.session_id, "on")

        assert run.continuity == "cold_resumed"
        packet = daemon.heard("session/prompt")[-1]["params"]["prompt"][0]["text"]
        assert packet.index("remember the tea") < packet.index("green or black")


async def test_a_fork_by_the_agent() -> None:
    """The agent copies its session; the copy is opened by its own id, with the chosen settings."""
    modes = '"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}'
    script = (
        offering(fork={})
        + f"""
NEW one {{{modes}}}
ON session/fork
    ANSWER {{"sessionId": "copy"}}
ON resume
    ANSWER {{{modes}}}
ON session/set_mode
    ANSWER {{}}
"""
    )
    async with running_daemon(script) as daemon:
        session = await daemon.session(title="Tea")
        await daemon.ask(session, "hi")
        await daemon.client.configure(session, mode="plan")
        fork = await daemon.client.fork(session)
        run = await daemon.ask(fork.session_id, "and now")

        assert fork.title == "Tea"
        assert daemon.heard("session/fork")[0]["params"]["sessionId"] == "one"
        assert (run.continuity, run.acp_session_id) == ("resumed", "copy")
        assert daemon.heard("session/set_mode")[-1]["params"] == {
            "sessionId": "copy", "modeId": "plan",
        }  # fmt: skip
        (created,) = await daemon.history(fork.session_id, "session.created")
        assert payload(created)["forkedFrom"]["sessionId"] == session


async def test_a_fork_by_history() -> None:
    """What was said up to the fork comes first in the packet, what came later is not in it."""
    script = offering(fork=None)
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "first")
        fork = await daemon.client.fork(session, title="Another way")
        await daemon.ask(session, "not for the fork")
        run = await daemon.ask(fork.session_id, "and now")

        assert run.continuity == "cold_resumed"
        assert daemon.heard("session/fork") == []
        packet, prompt = daemon.heard("session/prompt")[-1]["params"]["prompt"]
        assert prompt["text"] == "and now"
        assert "first" in packet["text"]
        assert "not for the fork" not in packet["text"]
        second = await daemon.client.fork(fork.session_id)
        await daemon.ask(second.session_id, "on")
        packet = daemon.heard("session/prompt")[-1]["params"]["prompt"][0]["text"]
        assert packet.index("first") < packet.index("and now")
        status = await daemon.status(second.session_id)
        assert status.cold_resume.packet_bytes == len(packet.encode())


async def test_a_fork_shows_and_keeps_the_past_whatever_becomes_of_its_origin() -> None:
    """Its own copy of what was said: seen by clients, told to its agent, with a deleted parent."""
    script = (
        offering(fork=None)
        + """
ON prompt "first"
    CALL c1 pending title=Look kind=read
    UPD c1 in_progress
    UPD c1 completed
    MSG "one "
    MSG "two"
ON prompt "open"
    MSG "half"
    GATE ${DIR}/never
"""
    )
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "first")
        half = await daemon.is_running(await daemon.send(session, "open"))
        fork = (await daemon.client.fork(session)).session_id
        await daemon.cancel(half)
        await daemon.client.delete_session(session)
        await daemon.restart()

        past = [(event.kind, event.source) for event in await daemon.history(fork)
                if facts(event).get("history")]  # fmt: skip
        assert past == [
            ("message.user", "mnote"), ("tool.started", "acp"), ("tool.completed", "acp"),
            ("message.delta", "acp"),
        ]  # fmt: skip
        async with editor(daemon) as zed:
            await zed.load(fork)
            assert zed.said(fork, "user") == "first"
            assert zed.said(fork) == "one two"
        run = await daemon.ask(fork, "and now")
        assert run.continuity == "cold_resumed"
        packet = daemon.heard("session/prompt")[-1]["params"]["prompt"][0]["text"]
        assert "first" in packet
        assert "one two" in packet
        assert "half" not in packet
        grandchild = (await daemon.client.fork(fork)).session_id
        await daemon.client.delete_session(fork)
        await daemon.ask(grandchild, "on")
        packet = daemon.heard("session/prompt")[-1]["params"]["prompt"][0]["text"]
        assert packet.index("one two") < packet.index("and now")


async def test_on_the_command_line() -> None:
    """`acphost session` does all of it; nothing is deleted by mistake."""
    async with running_daemon(offering(list={}, fork=None)) as daemon:
        session = await daemon.session()
        theirs = (await daemon.ask(session, "hi")).acp_session_id
        assert theirs is not None

        async def say(*words: str) -> Finished:
            return await acphost(daemon.socket, "session", *words, cwd=daemon.work)

        assert "Tea" in (await say("rename", session, "Tea")).out
        assert (await say("pin", session)).out.endswith(": pinned\n")
        forked = await say("fork", session, "Other", "--json")
        assert msgspec.json.decode(forked.out)["title"] == "Other"
        listed = await say("discover", "fake", "--here")
        assert theirs in listed.out
        adopted = await say("adopt", "fake", theirs, "--json")
        assert msgspec.json.decode(adopted.out)["sessionId"] == session
        kept = await say("delete", session)
        assert (kept.code, "--yes" in kept.err) == (2, True)
        gone = await say("delete", session, "--external", "--yes")
        assert (gone.code, gone.out) == (0, "deleted\n")
        assert "unsupported" in gone.err
        (left,) = (await daemon.client.list_sessions()).items
        assert left.title == "Other"
