"""The short way reads what the whole parser reads, or leaves it alone."""

import pytest

from acphost.cli.parser import parse
from acphost.cli.quick import quick_options

PLAIN = [
    ["acp"],
    ["acp", "--agent", "x", "--session=s"],
    ["acp", "--host", "me@box"],
    ["acp", "--no-autostart", "--socket", "/s", "--state-dir", "/d", "--config=/c"],
]


@pytest.mark.parametrize("words", PLAIN)
def test_both_ways_lead_to_the_same(words: list[str]) -> None:
    quick = quick_options(words)
    assert quick is not None
    assert vars(quick) == {name: vars(parse(words))[name] for name in vars(quick)}


@pytest.mark.parametrize(
    "words",
    [[], ["ls"], ["acp", "--help"], ["acp", "x"], ["acp", "--agent"], ["acp", "--agent", "-x"]],
)
def test_everything_else_is_left_to_the_parser(words: list[str]) -> None:
    assert quick_options(words) is None
