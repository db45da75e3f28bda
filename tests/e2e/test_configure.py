"""Mode, model and options: set at any time, shown, and set again whenever an agent starts anew."""

import json
import os
import signal
from typing import Any

import pytest

from acphost.errors import AcpHostError
from acphost.wire.host import Session
from tests.support.daemon import Daemon, payload, running_daemon
from tests.support.terminal import acphost

MODES = '"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}'
MODELS = (
    '"models": {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}'
)
EFFORT = (
    '{"id": "effort", "name": "Effort", "type": "select", "currentValue": "low", '
    '"options": [{"value": "low"}, {"value": "high"}]}'
)
VERBOSE = '{"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": false}'
BOTH = f'"configOptions": [{EFFORT}, {VERBOSE}]'
#: The older ways: modes and models.
OLD = f"""
NEW one {{{MODES}, {MODELS}}}
ON load
    ANSWER {{{MODES}, {MODELS}}}
ON session/set_mode
    ANSWER {{}}
ON session/set_model
    ANSWER {{}}
"""
INIT = 'INIT {"agentCapabilities": {"sessionCapabilities": {"resume": null}}}\n'


async def configure(daemon: Daemon, session: str, **wishes: object) -> Session:
    given = {"sessionId": session, **wishes}
    return await daemon.client.request("session/configure", given, Session)


def values(session: Session) -> dict[str, Any]:
    assert isinstance(session.settable, list)
    return {control.key: control.value for control in session.settable}


async def start_anew(daemon: Daemon, session: str) -> None:
    """End the agent, so that the next prompt needs another binding."""
    os.kill(daemon.launches()[-1], signal.SIGKILL)
    await daemon.has_event(session, "binding.lost")


async def test_the_older_ways_are_used_where_there_is_no_other() -> None:
    """Modes and models of agents that have no options for them, shown and told."""
    async with running_daemon(INIT + OLD) as daemon:
        session = await daemon.session(start=True)
        await daemon.until(session, lambda seen: bool(seen.settable), "settable")
        seen = await configure(daemon, session, mode="plan", model="b")

        assert values(seen) == {"mode": "plan", "model": "b"}
        assert (seen.agent_mode, seen.resolved_model) == ("plan", "b")
        assert daemon.heard("session/set_mode")[0]["params"] == {
            "sessionId": "one",
            "modeId": "plan",
        }
        assert daemon.heard("session/set_model")[0]["params"]["modelId"] == "b"
        (mode,) = await daemon.history(session, "session.mode.updated")
        assert payload(mode)["currentModeId"] == "plan"
        assert payload(mode)["changed"] == {"mode": "plan"}
        assert mode.source == "mnote"
        (listed,) = (await daemon.client.list_sessions()).items
        assert (listed.agent_mode, listed.resolved_model) == ("plan", "b")


async def test_options_of_every_type() -> None:
    """A choice is sent as text, a switch with its type; the list of the answer is the truth."""
    changed = EFFORT.replace('"low", "options', '"high", "options')
    script = f"""
INIT
NEW one {{{BOTH}}}
ON session/set_config_option
    ANSWER {{"configOptions": [{changed}]}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        seen = await configure(daemon, session, configOption={"verbose": True})

        (asked,) = daemon.heard("session/set_config_option")
        assert asked["params"] == {
            "sessionId": "one", "configId": "verbose", "type": "boolean", "value": True,
        }  # fmt: skip
        assert values(seen) == {"effort": "high"}
        (told,) = await daemon.history(session, "session.config.updated")
        assert [option["id"] for option in payload(told)["configOptions"]] == ["effort"]


async def test_it_may_be_set_while_a_turn_runs() -> None:
    """The turn goes on, and the agent's own word of the change is kept beside ours."""
    script = f"""
INIT
NEW one {{{MODES}}}
ON session/set_mode
    UPDATE {{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}}
    ANSWER {{}}
ON prompt
    MSG "before"
    GATE ${{DIR}}/go
    MSG " after"
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.is_running(await daemon.send(session, "hi"))
        await configure(daemon, session, mode="plan")
        daemon.open("go")

        done = await daemon.wait(run)
        assert (done.status, await daemon.text(done)) == ("completed", "before after")
        told = await daemon.history(session, "session.mode.updated")
        assert [(event.source, event.host_run_id) for event in told] == [
            ("acp", None),
            ("mnote", None),
        ]
        assert (await daemon.get(session)).agent_mode == "plan"


async def test_what_was_chosen_is_set_again_after_a_load_before_the_prompt() -> None:
    """A new process starts with its own settings: they are put right before the prompt."""
    async with running_daemon(INIT + OLD) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        await configure(daemon, session, mode="plan", model="b")
        await start_anew(daemon, session)
        after = await daemon.ask(session, "again")

        methods = [message.get("method") for message in daemon.heard()]
        assert methods[-4:] == [
            "session/load", "session/set_model", "session/set_mode", "session/prompt",
        ]  # fmt: skip
        restored = (await daemon.history(session, "session.config.updated"))[-1]
        assert payload(restored) == {"restored": {"model": "b", "mode": "plan"}}
        assert restored.host_run_id == after.host_run_id
        assert values(await daemon.get(session)) == {"mode": "plan", "model": "b"}


async def test_it_survives_a_crash_of_the_daemon() -> None:
    """Choices and what is on offer are in the store; what is already so is not set again."""
    script = INIT + OLD.replace('"currentModelId": "a"', '"currentModelId": "b"')
    async with running_daemon(INIT + OLD) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        await configure(daemon, session, mode="plan", model="b")
        await daemon.restart()
        seen = await daemon.get(session)
        assert values(seen) == {"mode": "plan", "model": "b"}
        daemon.rewrite(script)
        await daemon.ask(session, "again")

        assert len(daemon.heard("session/set_mode")) == 2
        assert len(daemon.heard("session/set_model")) == 1


async def test_before_there_is_an_agent_it_is_remembered() -> None:
    """Set first, started later: the new session is set before the first prompt."""
    async with running_daemon(INIT + OLD) as daemon:
        session = await daemon.session()
        seen = await configure(daemon, session, mode="plan", profile="work")
        assert (seen.profile, seen.settable) == ("work", [])
        told = [payload(event) for event in await daemon.history(session, "session.config.updated")]
        assert told == [
            {"changed": {"profile": "work"}},
            {"changed": {"mode": "plan"}, "pending": True},
        ]
        await daemon.ask(session, "hi")

        methods = [message.get("method") for message in daemon.heard()]
        assert methods == ["initialize", "session/new", "session/set_mode", "session/prompt"]


async def test_what_cannot_be_restored_is_told_and_the_run_goes_on() -> None:
    """One event with every reason, and a word in the status until it is put right."""
    script = f"""
{INIT}
NEW one {{{MODES}}}
ON session/set_mode
    FAIL -32602 "no such mode today"
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await configure(daemon, session, mode="plan", configOption={"effort": "high"})
        run = await daemon.ask(session, "hi")

        assert run.status == "completed"
        (told,) = await daemon.events(run, "error")
        assert payload(told)["code"] == "settings_not_restored"
        failed = payload(told)["settings"]
        assert "no such mode today" in failed["mode"]["error"]
        assert "the agent offers: mode" in failed["effort"]["error"]
        seen = await daemon.get(session)
        assert seen.status == "idle"
        assert seen.status_reason is not None
        assert "effort, mode" in seen.status_reason
        await configure(daemon, session, mode=None, configOption={"effort": None})
        await start_anew(daemon, session)
        await daemon.ask(session, "again")
        assert (await daemon.get(session)).status_reason is None


async def test_an_agent_that_leaves_a_mode_is_not_put_back() -> None:
    """Plan mode ends by itself: after that the agent's own default is right."""
    script = (
        INIT
        + OLD
        + 'ON prompt "go"\n'
        + '    UPDATE {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}\n'
    )
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        await configure(daemon, session, mode="plan")
        await daemon.ask(session, "go")
        assert (await daemon.get(session)).agent_mode == "ask"
        await start_anew(daemon, session)
        await daemon.ask(session, "again")

        assert len(daemon.heard("session/set_mode")) == 1


async def test_what_an_agent_says_of_itself_while_it_loads_is_no_choice() -> None:
    """Its defaults, announced in the window of a load, do not undo what a person chose."""
    script = f"""
{INIT}
NEW one {{{MODES}}}
ON load
    UPDATE {{"sessionUpdate": "current_mode_update", "currentModeId": "ask"}}
    ANSWER {{{MODES}}}
ON session/set_mode
    ANSWER {{}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        await configure(daemon, session, mode="plan")
        await start_anew(daemon, session)
        await daemon.ask(session, "again")

        assert (await daemon.get(session)).agent_mode == "plan"


async def test_refusals_name_the_place() -> None:
    """What is not on offer, what the agent refuses, and what is no setting at all."""
    script = f"""
INIT
NEW one {{{MODES}}}
ON session/set_mode
    FAIL -32603 "not now"
"""
    async with running_daemon(script) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        error = await wire.error("session/configure", {"sessionId": session, "mode": "dance"})
        assert error["code"] == -32602
        assert error["data"]["offered"] == ["ask", "plan"]
        error = await wire.error("session/configure", {"sessionId": session, "mode": "plan"})
        assert error["data"]["code"] == "agent_error"
        assert error["data"]["agentError"]["message"] == "not now"
        error = await wire.error(
            "session/configure", {"sessionId": session, "configOption": {"x": "y"}}
        )
        assert "$.configOption.x" in error["message"]
        assert (await daemon.get(session)).agent_mode == "ask"
        with pytest.raises(AcpHostError):
            await configure(daemon, "nobody")


async def test_on_the_command_line() -> None:
    """`acphost set` shows what there is, what is set, and sets it by the words of a shell."""
    script = f"""
INIT
NEW one {{{BOTH}}}
ON session/set_config_option
    ANSWER {{}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        before = await acphost(daemon.socket, "set", session, "verbose=true")
        assert (before.code, before.out) == (0, "")
        assert "nothing can be set, as far as is known" in before.err
        await daemon.ask(session, "hi")
        shown = await acphost(daemon.socket, "set", session, "effort=high")
        assert shown.out.splitlines() == [
            "effort = high", "    low", "  * high", "verbose = true  (true or false)",
        ]  # fmt: skip
        told = await acphost(daemon.socket, "set", session, "--json")
        assert [each["chosen"] for each in json.loads(told.out)["settable"]] == ["high", True]
        wrong = await acphost(daemon.socket, "set", session, "effort")
        assert (wrong.code, "not KEY=VALUE" in wrong.err) == (2, True)
