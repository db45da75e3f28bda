"""The command line."""

import pytest

from acphost.cli.exits import Exit
from acphost.cli.parser import parse


@pytest.mark.parametrize(
    "words",
    [
        ["--socket", "/s", "--config", "/c", "ls"],
        ["ls", "--socket", "/s", "--config", "/c"],
        ["--socket", "/s", "ls", "--config", "/c"],
    ],
)
def test_where_things_are_may_stand_on_either_side_of_the_command(words: list[str]) -> None:
    options = parse(words)
    assert (options.module, options.socket, options.config) == ("ls", "/s", "/c")


def test_the_option_behind_the_command_wins() -> None:
    assert parse(["--socket", "/a", "ls", "--socket", "/b"]).socket == "/b"


def test_what_is_not_given_is_none() -> None:
    options = parse(["status"])
    assert (options.socket, options.state_dir, options.config) == (None, None, None)


def test_a_message_may_be_several_words() -> None:
    options = parse(["send", "--agent", "demo", "hello", "there"])
    assert (options.text, options.agent, options.latest) == (["hello", "there"], "demo", False)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["attach"],
        ["ls", "--no-such-option"],
        ["send", "--session", "a", "--continue", "hi"],
        ["queue", "s", "explode"],
        ["--host", "box", "serve"],
        ["backup", "--host", "box", "file"],
    ],
)
def test_wrong_usage_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    assert caught.value.code == Exit.USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage" in printed.err


def test_the_fake_agent_reads_its_own_arguments() -> None:
    direct = parse(["fake-agent", "--help", "x"])
    assert (direct.module, direct.arguments) == ("fake_agent", ["--help", "x"])
    behind = parse(["--socket", "/s", "fake-agent", "script"])
    assert (behind.module, behind.arguments) == ("fake_agent", ["script"])


@pytest.mark.parametrize(
    ("word", "hint"), [("stauts", "did you mean `acphost status`?"), ("zzz", "lists them")]
)
def test_a_command_that_is_not_there_is_one_line(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([word])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert repr(word) in line
    assert hint in line
