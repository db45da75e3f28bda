"""Completion scripts and the man page: made from the parser, understood by those who read them."""

import shutil
import subprocess
import sys

import pytest

from acphost.cli import completion
from acphost.cli.catalogue import catalogue
from acphost.cli.exits import MEANINGS, Exit
from acphost.cli.manual import manual
from acphost.cli.parser import make_parser

FOUND = catalogue(make_parser())


def offered(*words: str) -> list[str]:
    """What bash would offer for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    script = (
        f"{completion.bash(FOUND)}\nCOMP_WORDS=(acphost {line}); COMP_CWORD={len(words)}\n"
        '_acphost\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_commands_options_and_values() -> None:
    assert "send" in offered("se")
    assert {"--continue", "--cwd", "--socket"} <= set(offered("send", "--"))
    assert "--lines" not in offered("send", "--")
    assert set(offered("completion", "")) >= {"bash", "zsh", "fish"}
    assert set(offered("service", "un")) == {"uninstall"}
    assert "--e2e" in offered("--socket", "/s", "doctor", "--")
    assert "etc" in offered("send", "--cwd", "et")


def test_every_command_is_in_every_script() -> None:
    for made in (completion.bash(FOUND), completion.zsh(FOUND), completion.fish(FOUND)):
        for command in FOUND.commands:
            assert command.name in made
        assert made.endswith("\n")


@pytest.mark.parametrize(("shell", "made"), [("zsh", completion.zsh), ("fish", completion.fish)])
def test_other_shells_can_read_theirs(shell: str, made: object) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not there to read its completion script")
    assert callable(made)
    subprocess.run([shell, "-n"], input=made(FOUND), text=True, check=True)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not there to be asked")
def test_fish_offers_commands_and_options() -> None:
    for line, wanted in (("acphost comp", "completion"), ("acphost doctor --e", "--e2e")):
        script = f"{completion.fish(FOUND)}\ncomplete -C '{line}'"
        done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True)
        assert wanted in done.stdout.split()


def test_the_man_page_has_every_command_option_and_exit_code() -> None:
    page = manual()
    for command in FOUND.commands:
        assert f".SS \\fB{command.name.replace('-', chr(92) + '-')}\\fR" in page
    for code in MEANINGS:
        assert f"\\fB{int(code)}\\fR" in page
    assert "\\-\\-state\\-dir" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not there to set the page")
def test_the_man_page_is_set_without_a_complaint() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=manual(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_is_made_with_the_standard_library_alone() -> None:
    """A wheel is built where none of the daemon's packages are."""
    program = "import sys; sys.path.insert(0, '.'); import acphost.cli.manual as m; m.manual()"
    subprocess.run([sys.executable, "-S", "-I", "-c", program], check=True)


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)
