"""Kinds of agents are found by their files: shipped ones, and those beside the configuration."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Raw

from acphost.errors import RemoteError
from acphost.provider.agents.hermes import Hermes
from acphost.provider.runtimes import traits_of
from acphost.provider.traits import Traits, TurnFacts, UnusableTraits
from acphost.settings.runtimes import is_runtime, known_runtimes

SHIPPED = ["acp", "api_chat", "chat_only", "hermes", "reasonix"]
OWL = """
from acphost.provider.traits import Traits

class _Nest(Traits):
    '''Not what is meant: it is private.'''

class Owl(_Nest):
    provider = "acp_owl"
"""

Put = Callable[[str, str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, text: str) -> Path:
        (tmp_path / "runtimes").mkdir(exist_ok=True)
        file = tmp_path / "runtimes" / name
        file.write_text(text)
        return file

    return write


def test_every_shipped_file_is_a_kind_of_agent(tmp_path: Path) -> None:
    assert known_runtimes(str(tmp_path)) == SHIPPED
    assert isinstance(traits_of("hermes", str(tmp_path)), Hermes)
    assert type(traits_of("acp", str(tmp_path))) is Traits


def test_a_file_of_the_users_is_one_more(tmp_path: Path, put: Put) -> None:
    put("owl.py", OWL)
    assert known_runtimes(str(tmp_path)) == sorted([*SHIPPED, "owl"])
    assert traits_of("owl", str(tmp_path)).provider == "acp_owl"
    assert [each.name for each in (tmp_path / "runtimes").iterdir()] == ["owl.py"]


def test_a_file_of_the_users_counts_more_than_a_shipped_one(tmp_path: Path, put: Put) -> None:
    put("hermes.py", OWL)
    assert traits_of("hermes", str(tmp_path)).provider == "acp_owl"


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path, put: Put) -> None:
    put("owl.py", OWL)
    first = traits_of("owl", str(tmp_path))
    assert traits_of("owl", str(tmp_path)) is first
    file = put("owl.py", OWL.replace("acp_owl", "acp_barn_owl"))
    os.utime(file, (1, 1))
    assert traits_of("owl", str(tmp_path)).provider == "acp_barn_owl"
    assert first.provider == "acp_owl"


@pytest.mark.parametrize("word", ["../owl", "Owl", "", "owl.py", "__init__", "/etc/owl"])
def test_only_a_name_is_looked_for(word: str, tmp_path: Path, put: Put) -> None:
    put("owl.py", OWL)
    assert not is_runtime(word, str(tmp_path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class Owl(", "SyntaxError"),
        ("import no_such_module_of_owls", "ModuleNotFoundError"),
        ("raise SystemExit", "SystemExit"),
        ("x = 1", "expected one class of Traits, found none"),
        (OWL + "class Barn(Owl): pass", "expected one class of Traits, found Owl, Barn"),
        (OWL + "    def __init__(self): raise OSError('no nest')", "OSError: no nest"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(
    text: str, told: str, tmp_path: Path, put: Put
) -> None:
    file = put("owl.py", text)
    traits = traits_of("owl", str(tmp_path))
    assert isinstance(traits, UnusableTraits)
    assert str(file) in traits.reason
    assert told in traits.reason
    (finding,) = traits.inspect_home({})
    assert finding.message == traits.reason


@pytest.mark.parametrize(
    "body", ["raise ValueError('oops')", "return None", "return facts.nothing"]
)
def test_a_judgement_that_fails_is_that_of_the_protocol(
    body: str, tmp_path: Path, put: Put
) -> None:
    judge = f"    def judge_turn(self, facts):\n        {body}\n"
    count = "    def usage_of(self, method, params):\n        return None\n"
    put("owl.py", OWL + judge + count)
    owl = traits_of("owl", str(tmp_path))
    ended = TurnFacts("end_turn", None, False, False, 1, "hi")
    assert owl.judge_turn(ended).outcome == "completed"
    assert owl.usage_of("x", Raw(b"{}")) is None
    assert owl.provider == "acp_owl"


def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    traits = traits_of("owl", str(tmp_path))
    assert isinstance(traits, UnusableTraits)
    assert "no runtime 'owl'" in traits.reason


def test_the_example_for_a_new_agent_is_all_it_takes(tmp_path: Path, put: Put) -> None:
    page = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    put("owl.py", example)
    owl = traits_of("owl", str(tmp_path))
    assert owl.provider == "acp_owl"
    moults = TurnFacts("", RemoteError(-32603, "moulting", None), False, False, 0, None)
    assert owl.judge_turn(moults).rebind == "moulting"
    assert owl.judge_turn(moults._replace(error=None, stop_reason="end_turn")).rebind is None
