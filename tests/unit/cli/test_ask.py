"""What a person may type to answer a question."""

import pytest

from acphost.cli.ask import Option, choose, options_of

OPTIONS = [
    Option("a1", "Allow once", "allow_once"),
    Option("aa", "Always allow", "allow_always"),
    Option("r", "Reject", "reject_once"),
]


@pytest.mark.parametrize(
    ("word", "index"),
    [
        ("1", 0),
        ("3\n", 2),
        ("aa", 1),
        ("ALWAYS ALLOW", 1),
        ("reject_once", 2),
        ("allow", 0),
        ("y", 0),
        ("no", 2),
    ],
)
def test_an_option_is_chosen_by_number_id_name_kind_or_simply_yes_and_no(
    word: str, index: int
) -> None:
    assert choose(word, OPTIONS) == OPTIONS[index]


@pytest.mark.parametrize("word", ["", " ", "0", "4", "-1", "perhaps", "Allow"[:2]])
def test_anything_else_chooses_nothing(word: str) -> None:
    assert choose(word, OPTIONS) is None


def test_yes_falls_back_to_the_only_kind_of_yes_there_is() -> None:
    assert choose("yes", OPTIONS[1:]) == OPTIONS[1]


def test_options_that_cannot_be_chosen_are_left_out() -> None:
    values = [{"optionId": "x"}, {"name": "no id"}, "text", {"optionId": "y", "name": "Yes"}]
    assert options_of(values) == [Option("x", "x", ""), Option("y", "Yes", "")]
    assert options_of(None) == []
