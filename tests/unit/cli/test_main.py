"""The border of the program: exit codes, and no tracebacks."""

from pathlib import Path

import pytest

from acphost import errors
from acphost.cli.exits import CommandError, exit_code
from acphost.cli.main import main
from acphost.client.failures import HostRemoteError


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (CommandError("no"), 1),
        (CommandError("no", 2), 2),
        (errors.AlreadyRunningError("held"), 3),
        (errors.DaemonUnreachableError("none"), 69),
        (errors.ShuttingDownError("later"), 75),
        (errors.PermissionDeniedError("not you"), 77),
        (errors.ConfigError("line 3"), 78),
        (errors.StoreRefusedError("newer"), 78),
        (errors.SessionNotFoundError("none"), 1),
        (HostRemoteError(-1, "odd"), 1),
        (ValueError("bug"), 1),
    ],
)
def test_each_error_has_its_exit_code(exc: Exception, code: int) -> None:
    assert exit_code(exc) == code


@pytest.mark.parametrize(
    "words",
    [
        ["ls"],
        ["status"],
        ["agents"],
        ["send", "hello"],
        ["attach", "x"],
        ["cancel", "x"],
        ["permit"],
        ["queue", "x"],
        ["stop"],
    ],
)
def test_without_a_daemon_every_client_command_says_how_to_start_one(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACPHOST_STATE_DIR", str(tmp_path))
    assert main([*words, "--socket", str(tmp_path / "s")]) == 69
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("acphost: error: ")
    assert "acphost serve" in printed.err
    assert "Traceback" not in printed.err


def test_the_traceback_is_there_for_those_who_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACPHOST_DEBUG", "1")
    assert main(["ls", "--socket", str(tmp_path / "s")]) == 69
    assert "Traceback" in capsys.readouterr().err


def test_a_configuration_that_is_not_there_ends_with_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in one file does not: the daemon runs on without it, and tells in its status."""
    monkeypatch.delenv("ACPHOST_SOCKET", raising=False)
    config = tmp_path / "config.toml"
    assert main(["ls", "--config", str(config)]) == 78
    assert str(config) in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert main(["--version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("acphost ")


def test_nothing_to_send_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "  ", "--socket", str(tmp_path / "s")]) == 2
    assert "nothing to send" in capsys.readouterr().err


def test_a_script_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    assert main(["fake-agent", str(tmp_path / "none.script")]) == 2
