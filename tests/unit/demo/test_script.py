"""Scripts as trees, and the mistakes that are found before anything runs."""

from pathlib import Path

import pytest

from acphost.demo.script import Match, Script, holds, parse_script
from acphost.demo.tokens import ScriptError, Token
from acphost.demo.vocabulary import VOCABULARY, load_script, reference

ROOT = Path(__file__).parents[3]
SCRIPTS = [
    *(ROOT / "acphost" / "demo" / "scripts").glob("*.script"),
    *(ROOT / "fixtures" / "agents").glob("*.script"),
]


def parse(text: str) -> Script:
    return parse_script(text, "x", {name: verb.word for name, verb in VOCABULARY.items()})


def test_a_script_is_linear_steps_rules_blocks_and_settings() -> None:
    script = parse(
        "EXPECT one-prompt\n"
        "init\n"
        "PROMPT\n"
        "    MSG a\n"
        "    IF a = b\n"
        "        MSG b\n"
        "    ELSE\n"
        "        MSG c\n"
        "EXPECT a = a\n"
        "DEFINE bye\n"
        "    END\n"
        'ON prompt "x" ONCE KEEP DEAF nth=2 IF ${N} != 3\n'
        "    DO bye\n"
        "ON _vendor/method\n"
    )
    assert [step.word for step in script.settings] == ["EXPECT"]
    assert [step.word for step in script.steps] == ["INIT", "PROMPT", "EXPECT"]
    message, choice = script.steps[1].block
    assert (message.where, choice.where) == ("x:4", "x:5")
    assert [step.word for step in choice.block + choice.otherwise] == ["MSG", "MSG"]
    assert list(script.blocks) == ["bye"]
    first, second = script.rules
    assert (first.event, first.once, first.keep, first.deaf, first.nth) == (
        "session/prompt",
        True,
        True,
        True,
        2,
    )
    assert (second.event, second.block) == ("_vendor/method", [])
    assert len(list(script.every_step())) == 9


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("FLY", "x:1: 'FLY' is not a step word"),
        ("INIT\n    MSG a", "x:2: INIT takes no block"),
        ("  MSG a", "x:1: nothing above this line takes a block"),
        ("ON prompt\n    MSG a\n   MSG b", "x:3: indented unlike the lines around it"),
        ("ON", "x:1: ON needs an event"),
        ("ON lunch", "x:1: no event is called 'lunch'"),
        ("ON prompt TWICE", "x:1: 'TWICE' after ON is none of"),
        ("ON prompt nth=two", "x:1: nth= is a number"),
        ("ON prompt often=2", "x:1: ON has no option often="),
        ("ON prompt IF a b", "x:1: a condition is"),
        ('ON prompt ~"("', "x:1: '(' is no regular expression"),
        ("ON prompt\n    PROMPT", "x:2: PROMPT receives, so it cannot stand below ON"),
        ("MSG", "x:1: written as MSG TEXT"),
        ("MSG a b", "x:1: written as MSG TEXT"),
        ("GATE f often=1", "x:1: GATE has no option often="),
        ("IF a is b", "x:1: a condition is"),
        ("ELSE\n    MSG a", "x:1: ELSE without IF"),
        ("ON prompt\n    EOL crlf", "x:2: EOL stands at the left margin only"),
        ("DEFINE", "x:1: written as DEFINE NAME"),
    ],
)
def test_mistakes_name_line_and_cure(script: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(script)
    assert str(caught.value).startswith(message)


def test_a_variable_that_nothing_sets_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "a.script"
    path.write_text("ON prompt ~'(?P<name>x)'\n    SET A 1\n    MSG ${A}${NAME}${1}${GATE}\n")
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert str(caught.value).startswith(f"{path}:3: ${{GATE}} is not set")
    load_script(path, ["GATE"])


def test_a_script_or_its_words_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ScriptError):
        load_script(tmp_path / "none.script")
    path = tmp_path / "a.script"
    path.write_text("\nWORDS none.py\n")
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert str(caught.value).startswith(f"{path}:2: there is no file")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_we_ship_are_in_order(path: Path) -> None:
    script, _ = load_script(path)
    assert script.rules


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [("a = a", True), ("a != a", False), ("abc ~ b", True), ("abc ~ ^b", False)],
)
def test_conditions(condition: str, outcome: bool) -> None:
    tokens = [Token((word,)) for word in condition.split()]
    assert holds(tokens, str) is outcome


def test_a_text_matches_whatever_its_case_and_a_pattern_gives_its_groups() -> None:
    assert Match("Hello").groups("well, HELLO there") == {}
    assert Match("x").groups("y") is None
    (rule,) = parse('ON prompt ~"(a)(?P<word>b)?"').rules
    assert rule.match.groups("xa") == {"1": "a", "2": "", "WORD": ""}


def test_the_reference_names_every_word() -> None:
    text = reference()
    for verb in VOCABULARY.values():
        assert f"  {verb.word.usage}\n" in text
