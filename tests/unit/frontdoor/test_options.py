"""What can be chosen: the agent's own list, and the agent."""

import json
from typing import Any

import msgspec

from acphost.frontdoor.options import AgentChoice, Options
from acphost.wire.acp_agent import EditorCapabilities
from tests.unit.frontdoor.test_updates import event

AGENTS = [AgentChoice("one", "One"), AgentChoice("two", "Two")]
EFFORT = {
    "id": "effort",
    "category": "thought_level",
    "type": "select",
    "currentValue": "low",
    "x": 1,
}
MODEL = {"id": "m", "category": "model", "type": "select", "currentValue": "small"}


def options() -> Options:
    known = Options(EditorCapabilities(), "one", AGENTS)
    response = {"modes": {"currentModeId": "a"}, "configOptions": [EFFORT, MODEL]}
    known.take(event("binding.started", {"response": response}, "mnote"))
    return known


def shown(known: Options) -> dict[str, Any]:
    return {each["id"]: each for each in (json.loads(bytes(one)) for one in known.shown())}


def test_a_value_that_the_host_has_set_changes_nothing_else() -> None:
    known = options()
    told = {
        "changed": {"model": "large"},
        "configOptions": [{"id": "effort", "currentValue": "high"}],
    }
    changed = known.take(event("session.config.updated", told, "mnote"))
    assert changed is not None
    assert shown(known)["effort"] == {**EFFORT, "currentValue": "high"}
    assert shown(known)["m"]["currentValue"] == "large"
    assert known.take(event("session.config.updated", told, "mnote")) is None


def test_the_agents_own_list_replaces_what_was() -> None:
    known = options()
    known.take(event("session.config.updated", {"configOptions": [MODEL]}))
    assert set(shown(known)) == {"_acphost_agent", "m"}


def test_options_of_a_kind_that_nobody_knows_are_left_out() -> None:
    known = options()
    strange = {"id": "s", "type": "slider"}
    known.take(event("session.config.updated", {"configOptions": [strange, MODEL]}))
    assert set(shown(known)) == {"_acphost_agent", "m"}


def test_the_mode_is_followed_by_either_name() -> None:
    known = options()
    said = {"sessionUpdate": "current_mode_update", "modeId": "b"}
    changed = known.take(event("session.mode.updated", said))
    assert changed is not None
    assert json.loads(bytes(changed))["currentModeId"] == "b"
    opened = json.loads(msgspec.json.encode(known.opened()))
    assert opened["modes"] == {"currentModeId": "b"}


def test_another_agent_brings_options_of_its_own() -> None:
    known = options()
    known.take(event("session.config.updated", {"changed": {"agentId": "two"}}, "mnote"))
    assert set(shown(known)) == {"_acphost_agent"}
    assert shown(known)["_acphost_agent"]["currentValue"] == "two"
    assert "modes" not in known.opened()


def test_where_there_is_one_agent_there_is_no_choice() -> None:
    assert Options(EditorCapabilities(), "one", AGENTS[:1]).shown() == []
