"""Finding the program to run."""

import os
from pathlib import Path

import pytest

from acphost.errors import AgentUnavailableError
from acphost.transport.program import find_program


@pytest.fixture
def bin_(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder / "agent")
    return folder


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> None:
    path.write_text(text)
    path.chmod(mode)


def refusal(name: str, cwd: object, **env: str) -> AgentUnavailableError:
    with pytest.raises(AgentUnavailableError) as caught:
        find_program(name, str(cwd), env)
    return caught.value


def test_it_is_looked_up_in_the_path_of_the_child_not_in_ours(
    bin_: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(bin_))
    assert find_program("agent", "/", {"PATH": f"/nowhere:{bin_}"}) == str(bin_ / "agent")
    error = refusal("agent", "/", PATH="/nowhere:/bin")
    assert error.details == {"program": "agent", "path": "/nowhere:/bin"}
    assert "/nowhere:/bin" in str(error)
    assert "`path` or `env.PATH`" in str(error)


def test_without_a_path_the_system_default_is_searched(bin_: Path) -> None:
    assert find_program("sh", "/", {}).endswith("/sh")
    assert refusal("agent", bin_).details["path"] == os.defpath


def test_relative_names_count_from_the_working_directory(bin_: Path) -> None:
    for name, path in (("bin/agent", ""), ("./bin/agent", ""), ("agent", "bin")):
        assert find_program(name, str(bin_.parent), {"PATH": path}) == str(bin_ / "agent")


def test_the_first_that_can_be_executed_wins(bin_: Path, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    program(tmp_path / "first" / "agent", mode=0o644)
    (tmp_path / "second" / "agent").mkdir(parents=True)
    path = f"{tmp_path}/first:{tmp_path}/second:{bin_}"
    assert find_program("agent", "/", {"PATH": path}) == str(bin_ / "agent")


def test_what_is_not_executable_is_named_with_the_cure(bin_: Path) -> None:
    (bin_ / "agent").chmod(0o644)
    for name in ("agent", str(bin_ / "agent")):
        error = refusal(name, "/", PATH=str(bin_))
        assert f"chmod +x {bin_ / 'agent'}" in str(error)


def test_a_path_that_leads_nowhere_is_said_to_not_exist(bin_: Path) -> None:
    error = refusal(str(bin_ / "other"), "/", PATH=str(bin_))
    assert str(error) == f"program {bin_ / 'other'} does not exist"


def test_a_directory_is_no_program(bin_: Path) -> None:
    refusal(str(bin_), "/")


@pytest.mark.timeout(5)
def test_a_pipe_is_no_program(bin_: Path) -> None:
    """To open one is to wait until somebody writes into it: for ever."""
    os.mkfifo(bin_ / "pipe", 0o755)
    assert "is not a regular file" in str(refusal("pipe", "/", PATH=str(bin_)))


@pytest.mark.parametrize(
    ("first_line", "missing"),
    [
        ("#!/no/such/node", "/no/such/node"),
        ("#!/no/such/node --flag", "/no/such/node"),
        ("#! /usr/bin/env nodexyz", "nodexyz"),
        ("#!/usr/bin/env -S A=1 nodexyz --flag", "nodexyz"),
    ],
)
def test_a_missing_interpreter_is_told_apart(bin_: Path, first_line: str, missing: str) -> None:
    program(bin_ / "agent", f"{first_line}\n")
    error = refusal("agent", "/", PATH=f"{bin_}:/bin")
    assert error.details == {"program": str(bin_ / "agent"), "interpreter": missing}


def test_an_interpreter_that_exists_is_fine(bin_: Path) -> None:
    program(bin_ / "agent", "#!/usr/bin/env sh\n")
    assert find_program("agent", "/", {"PATH": f"{bin_}:/bin:/usr/bin"})
    program(bin_ / "agent", "#!\n")
    assert find_program("agent", "/", {"PATH": str(bin_)})


def test_the_working_directory_is_checked_first(bin_: Path) -> None:
    for cwd in (bin_ / "missing", bin_ / "agent", "/\0"):
        error = refusal("nothing", cwd, PATH="/bin")
        assert error.details == {"cwd": str(cwd)}
        assert "working directory" in str(error)
