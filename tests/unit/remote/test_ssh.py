"""What ssh is told, and what is made of what it tells."""

import subprocess
from pathlib import Path

import pytest

from acphost.errors import DaemonUnreachableError, SocketPathError
from acphost.remote.ssh import There, answer, forwarding, program, question


def test_the_forwarding_has_what_keeps_it_honest() -> None:
    """No command there, no shared connection, no question, an error where it cannot be had."""
    argv = forwarding(["ssh"], "me@box", Path("/run/a/s"), "/run/user/7/acphost/acphost.sock")
    assert argv[:3] == ["ssh", "-N", "-T"]
    assert argv[-2:] == ["--", "me@box"]
    assert argv[argv.index("-L") + 1] == "/run/a/s:/run/user/7/acphost/acphost.sock"
    for option in ("BatchMode=yes", "ExitOnForwardFailure=yes", "ControlMaster=no",
                   "ControlPath=none", "StreamLocalBindUnlink=yes", "ForwardAgent=no"):  # fmt: skip
        assert argv[argv.index(option) - 1] == "-o"


@pytest.mark.parametrize("host", ["", "-oProxyCommand=touch /tmp/x"])
def test_a_host_is_never_an_option(host: str) -> None:
    with pytest.raises(DaemonUnreachableError, match="no host"):
        forwarding(["ssh"], host, Path("/s"), "/t")
    with pytest.raises(DaemonUnreachableError, match="no host"):
        question(["ssh"], host)


@pytest.mark.parametrize("there", ["relative", "/with:colon", "/with\\backslash"])
def test_a_path_that_ssh_would_read_otherwise(there: str) -> None:
    with pytest.raises(SocketPathError):
        forwarding(["ssh"], "box", Path("/s"), there)


def test_another_ssh_may_be_named() -> None:
    assert program({}) == ["ssh"]
    assert program({"ACPHOST_SSH": "ssh -F '/a b'"}) == ["ssh", "-F", "/a b"]


def test_what_a_login_prints_is_passed_over() -> None:
    said = 'Welcome to box\n@home /home/me\n@status {"socket": "/s", "host": {}}\nbye\n'
    assert answer(said) == There("/s", "/home/me")
    assert answer("@home /home/me\n@socket /t with space\n") == There("/t with space", "/home/me")


@pytest.mark.parametrize("said", ["", "@home /h\n", "@socket /s\n", "@home /h\n@status nonsense\n"])
def test_an_answer_that_says_nothing(said: str) -> None:
    with pytest.raises(DaemonUnreachableError):
        answer(said)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_question_is_one_that_shells_understand(shell: str, tmp_path: Path) -> None:
    """As sshd has it run by the shell of the account; without acphost there its rules count."""
    runtime = tmp_path / "run"
    runtime.mkdir()
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime)}
    asked = question(["ssh"], "box")[-1]
    said = subprocess.run(
        [shell, "-c", asked], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert answer(said.stdout) == There(f"{runtime}/acphost/acphost.sock", str(tmp_path))
