"""What a service manager is told: words that mean there what they mean here."""

import plistlib
import re
import sys
from pathlib import Path

import pytest

from acphost.cli.exits import NO_RESTART
from acphost.errors import StartError
from acphost.service import launchd, systemd
from acphost.service.plan import Plan, captured_path, own_program, plan_service


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": "/opt/agents/bin:relative::/usr/bin:/opt/agents/bin",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": "/run/user/7",
        "SECRET_KEY": "hush",
    }


def planned(environ: dict[str, str], **flags: object) -> Plan:
    return plan_service(flags, environ, ["/opt/acphost"])


def test_the_path_of_the_shell_is_kept_where_it_is_absolute(environ: dict[str, str]) -> None:
    assert captured_path(environ) == "/opt/agents/bin:/usr/bin"
    assert captured_path({}) != ""


def test_nothing_else_of_the_shell_is_captured_but_places(environ: dict[str, str]) -> None:
    plan = planned(environ)
    assert set(plan.environment) == {"PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
    assert "hush" not in "".join(systemd.units(plan).values())


def test_flags_and_variables_become_flags_with_absolute_paths(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "c").mkdir()
    environ |= {"ACPHOST_CONFIG": str(tmp_path / "c"), "ACPHOST_SOCKET": "~/s"}
    plan = planned(environ, state_dir=str(tmp_path / "st"))
    words = plan.argv[2:]
    assert words[words.index("--state-dir") + 1] == str(tmp_path / "st")
    assert words[words.index("--config") + 1] == str(tmp_path / "c")
    assert words[words.index("--socket") + 1].endswith("/s")
    assert plan.state_dir == tmp_path / "st"


def test_the_usual_socket_follows_the_manager(environ: dict[str, str]) -> None:
    """Its runtime folder is the one that counts, not that of the shell."""
    assert (
        "\nListenStream=%t/acphost/acphost.sock\n"
        in systemd.units(planned(environ))[systemd.SOCKET]
    )
    named = planned(environ, socket="/elsewhere/100%.sock")
    assert "\nListenStream=/elsewhere/100%%.sock\n" in systemd.units(named)[systemd.SOCKET]


def test_words_survive_the_rules_of_systemd() -> None:
    """Quotes, backslash, percent and, in a command, dollar."""
    assert systemd.word('a "b" \\ 5% $HOME') == '"a \\"b\\" \\\\ 5%% $$HOME"'
    assert systemd.assignment("X", "5% $HOME") == '"X=5%% $HOME"'


def test_every_place_in_the_templates_is_filled(environ: dict[str, str]) -> None:
    for text in systemd.units(planned(environ)).values():
        assert not re.search(r"@[A-Z_]+@", text)


def test_the_unit_does_not_restart_what_a_restart_cannot_cure(environ: dict[str, str]) -> None:
    text = systemd.units(planned(environ))[systemd.SERVICE]
    (line,) = re.findall("^RestartPreventExitStatus=(.*)$", text, re.MULTILINE)
    assert {int(code) for code in line.split()} == set(NO_RESTART)


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "\0"])
def test_a_line_cannot_be_broken_out_of(environ: dict[str, str], bad: str) -> None:
    environ["XDG_DATA_HOME"] = f"/x{bad}"
    with pytest.raises(StartError, match="control characters"):
        planned(environ)


def test_the_agent_of_launchd(environ: dict[str, str]) -> None:
    """Absolute program, PATH, socket; modes are decimal, and no unsuccessful end is left alone."""
    plan = planned(environ, socket="/private/s")
    table = plistlib.loads(launchd.agent(plan))
    assert table["ProgramArguments"][0] == "/opt/acphost"
    assert table["ProgramArguments"][-2:] == ["--log", str(plan.state_dir / "daemon.log")]
    assert table["EnvironmentVariables"]["PATH"] == "/opt/agents/bin:/usr/bin"
    control = table["Sockets"]["Control"]
    assert control["SockPathName"] == "/private/s"
    assert (table["Umask"], control["SockPathMode"]) == (0o077, 0o600)
    assert table["KeepAlive"] == {"SuccessfulExit": False}
    assert not [word for word in str(table).split() if word.startswith("~")]


def test_the_program_is_named_as_it_was_installed(tmp_path: Path) -> None:
    """A link that a tool keeps is not followed; without a script it is a module of this Python."""
    script = tmp_path / "lib" / "acphost"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    link = tmp_path / "acphost"
    link.symlink_to(script)
    assert own_program(str(link)) == [str(link)]
    words = own_program(str(tmp_path / "__main__.py"))
    assert words[0].startswith(str(Path(sys.executable).parent))
