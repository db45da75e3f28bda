"""What can be set: read from what agents say, asked for in their way, kept over starts."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from acphost.errors import InvalidParamsError
from acphost.session.controls import Controls, Kept, read_kept, write_kept

MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan", "name": "Plan"}]}
MODELS = {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}
EFFORT = {
    "id": "effort", "name": "Effort", "category": "thought_level", "type": "select",
    "currentValue": "low", "options": [{"value": "low"}, {"value": "high"}],
}  # fmt: skip
VERBOSE = {"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": False}
MODE = {**EFFORT, "id": "way", "category": "mode", "currentValue": "low"}
MODEL = {
    "id": "llm", "category": "model", "type": "select", "currentValue": "x/1",
    "options": [
        {"group": "x", "name": "X Corp", "options": [{"value": "x/1", "name": "One"}]},
        {"group": "y", "options": [{"value": "y/1"}, {"name": "no value"}]},
        5,
    ],
}  # fmt: skip


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def opened(**members: object) -> Controls:
    controls = Controls(Kept())
    controls.take_opened(raw({"sessionId": "s", **members}), is_new=True)
    return controls


def seen(controls: Controls) -> dict[str, Any]:
    return {control.key: control.value for control in controls.all()}


def asked(controls: Controls, key: str, value: str | bool) -> tuple[str, dict[str, object]]:
    change = controls.request(key, value, "s")
    return change.method, change.params


def test_options_go_before_modes_and_models() -> None:
    """An option that holds the mode or the model is what `mode` and `model` mean."""
    controls = opened(modes=MODES, models=MODELS, configOptions=[MODE, MODEL, EFFORT])
    assert seen(controls) == {"mode": "low", "model": "x/1", "effort": "low"}
    assert asked(controls, "mode", "high") == (
        "session/set_config_option",
        {"sessionId": "s", "configId": "way", "value": "high"},
    )
    assert asked(controls, "llm", "y/1")[1]["configId"] == "llm"
    assert controls.request("llm", "y/1", "s").key == "model"


def test_modes_and_models_where_no_option_stands_for_them() -> None:
    controls = opened(modes=MODES, models=MODELS, configOptions=[EFFORT])
    assert seen(controls) == {"effort": "low", "mode": "ask", "model": "a"}
    assert asked(controls, "mode", "plan") == (
        "session/set_mode", {"sessionId": "s", "modeId": "plan"},
    )  # fmt: skip
    assert asked(controls, "model", "b") == (
        "session/set_model", {"sessionId": "s", "modelId": "b"},
    )  # fmt: skip


def test_a_switch_is_set_as_what_it_is() -> None:
    """Boolean options say their type; words for yes and no are understood."""
    controls = opened(configOptions=[VERBOSE])
    expected = {"sessionId": "s", "configId": "verbose", "type": "boolean", "value": True}
    for word in (True, "true", "on"):
        assert asked(controls, "verbose", word)[1] == expected
    with pytest.raises(InvalidParamsError, match="true or false"):
        controls.request("verbose", "maybe", "s")


def test_an_option_that_cannot_be_read_is_dropped_alone() -> None:
    """Unknown types, bad members and bad items harm nothing else; groups keep their names."""
    slider = {"id": "heat", "type": "slider", "currentValue": 0.5}
    odd = {**EFFORT, "name": 5, "currentValue": 7}
    controls = opened(configOptions=[slider, odd, 5, {"type": "select"}, MODEL])
    assert seen(controls) == {"effort": None, "model": "x/1"}
    model = controls.control("model")
    assert model is not None
    assert [(each.value, each.name, each.group) for each in model.choices] == [
        ("x/1", "One", "X Corp"),
        ("y/1", "y/1", "y"),
    ]


def test_what_is_not_on_offer_is_refused_with_what_is() -> None:
    controls = opened(configOptions=[EFFORT])
    with pytest.raises(InvalidParamsError, match=r"low, high - at `\$.effort`"):
        controls.request("effort", "max", "s")
    with pytest.raises(InvalidParamsError, match="the agent offers: effort"):
        controls.request("mode", "plan", "s")
    with pytest.raises(InvalidParamsError, match="offers: nothing"):
        opened().request("mode", "plan", "s")


def test_before_an_agent_was_there_everything_may_be_right() -> None:
    assert Controls(Kept()).check("mode", "plan", "$.mode") == ("mode", "plan")


def test_the_list_of_an_answer_replaces_all() -> None:
    """Complete lists replace; an answer without one changes what was asked for."""
    controls = opened(configOptions=[EFFORT, VERBOSE])
    controls.took(controls.request("effort", "high", "s"), raw({}))
    assert seen(controls) == {"effort": "high", "verbose": False}
    controls.took(controls.request("effort", "low", "s"), raw({"configOptions": [EFFORT]}))
    assert seen(controls) == {"effort": "low"}
    assert controls.take_options(raw({"configOptions": []}))
    assert seen(controls) == {}
    assert not controls.take_options(raw({"configOptions": 5}))


def test_the_mode_comes_under_either_name() -> None:
    controls = opened(modes=MODES)
    assert controls.take_mode(raw({"currentModeId": "plan"})) == "plan"
    assert controls.mode == "plan"
    assert controls.take_mode(raw({"modeId": "ask"})) == "ask"
    assert controls.mode == "ask"
    assert controls.take_mode(raw({"currentModeId": 5})) is None


def test_after_a_load_without_a_word_everything_is_offered_and_nothing_known() -> None:
    """So every choice of a person is set again, whatever the agent was left with."""
    controls = opened(modes=MODES, configOptions=[EFFORT])
    controls.chosen = {"mode": "ask", "effort": "low", "gone": "x"}
    assert controls.to_restore() == ["gone"]
    controls.take_opened(raw(None), is_new=False)
    assert seen(controls) == {"effort": None, "mode": None}
    assert controls.to_restore() == ["effort", "gone", "mode"]
    controls.take_opened(raw({}), is_new=True)
    assert seen(controls) == {}


def test_it_is_kept_beside_other_settings() -> None:
    controls = opened(modes=MODES, models=MODELS, configOptions=[EFFORT, VERBOSE])
    controls.chosen = {"verbose": True}
    settings = write_kept(b'{"other":[1]}', controls.kept())
    assert json.loads(settings)["other"] == [1]
    again = Controls(read_kept(settings))
    assert list(again.all()) == list(controls.all())
    assert again.chosen == {"verbose": True}
    assert again.is_known
    assert not Controls(read_kept(b"{}")).is_known
    assert not Controls(read_kept(b'{"controls":5}')).is_known


def test_lists_that_are_too_long_are_left_to_the_agent() -> None:
    many = [{"value": f"model {n}", "description": "d" * 100} for n in range(500)]
    controls = opened(configOptions=[{**MODEL, "options": many, "currentValue": "model 7"}])
    kept = controls.kept()
    assert len(msgspec.json.encode(kept)) < 1000
    assert seen(Controls(kept)) == {"model": "model 7"}
    assert Controls(kept).check("model", "any", "$.model") == ("model", "any")
