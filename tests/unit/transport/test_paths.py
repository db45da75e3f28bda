"""Default places."""

import os
import sys
from pathlib import Path

import pytest

from acphost.transport import paths
from acphost.transport.paths import default_socket_path, default_state_dir


def test_the_runtime_directory_of_the_session_is_used_where_there_is_one() -> None:
    environ = {"XDG_RUNTIME_DIR": "/run/user/7", "TMPDIR": "/elsewhere"}
    assert default_socket_path(environ) == Path("/run/user/7/acphost/acphost.sock")


@pytest.fixture(autouse=True)
def nobody_is_logged_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of runtime directories, empty."""
    monkeypatch.setattr(paths, "RUNTIME_FOLDERS", tmp_path)
    return tmp_path


def test_a_program_that_has_lost_its_variable_finds_the_runtime_directory(tmp_path: Path) -> None:
    """If it is ours alone; another program's folder of that name is not taken."""
    ours = tmp_path / str(os.getuid())
    ours.mkdir(mode=0o700)
    assert default_socket_path({"TMPDIR": "/elsewhere"}) == ours / "acphost" / "acphost.sock"
    ours.chmod(0o755)
    assert default_socket_path({"TMPDIR": "/elsewhere"}).is_relative_to("/elsewhere")


@pytest.mark.parametrize("runtime", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "run"}])
def test_without_one_it_is_a_directory_of_our_own(runtime: dict[str, str]) -> None:
    expected = Path(f"/var/tmp/acphost-{os.getuid()}/acphost.sock")
    assert default_socket_path({**runtime, "TMPDIR": "/var/tmp"}) == expected


def test_two_programs_without_any_setting_agree() -> None:
    assert default_socket_path({}) == default_socket_path({})
    assert default_socket_path({}).is_absolute()


def test_state_follows_the_user() -> None:
    assert default_state_dir({"XDG_STATE_HOME": "/s"}) == Path("/s/acphost")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has places of its own")
def test_state_has_its_usual_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert default_state_dir({}) == Path("/home/me/.local/state/acphost")
