"""What an agent's process sees of the daemon's environment."""

import pytest

from acphost.settings.environment import DEFAULT_PATH, child_environment, expand_home
from acphost.settings.model import AgentSettings

AGENT = AgentSettings(command=["x"])


def test_only_what_is_named_reaches_an_agent() -> None:
    allowed = {
        "HOME": "/home/ada",
        "LANG": "C.UTF-8",
        "LC_TIME": "de_DE.UTF-8",
        "LOGNAME": "ada",
        "PATH": "/bin",
        "SHELL": "/bin/sh",
        "SSL_CERT_FILE": "/ca.pem",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
        "USER": "ada",
        "XDG_RUNTIME_DIR": "/run/user/1000",
        "https_proxy": "http://proxy:8080",
        "NO_PROXY": "localhost",
    }
    kept_back = {
        "ACPHOST_SOCKET": "/s",
        "AWS_SECRET_ACCESS_KEY": "k",
        "LD_PRELOAD": "/x.so",
        "NODE_OPTIONS": "--inspect",
        "OPENAI_API_KEY": "k",
        "PYTHONPATH": "/src",
        "SSH_AUTH_SOCK": "/agent",
        "VIRTUAL_ENV": "/venv",
    }
    assert child_environment(AGENT, allowed | kept_back) == allowed


def test_env_pass_lets_names_through_and_env_has_the_last_word() -> None:
    agent = AgentSettings(
        command=["x"], env_pass=["API_KEY", "ABSENT"], env={"HOME": "/other", "MODE": "test"}
    )
    environ = {"HOME": "/home/ada", "API_KEY": "k", "MODE": "live", "PATH": "/bin"}
    assert child_environment(agent, environ) == {
        "HOME": "/other",
        "API_KEY": "k",
        "MODE": "test",
        "PATH": "/bin",
    }


@pytest.mark.parametrize(
    ("path", "inherited", "expected"),
    [
        (None, "/bin", "/bin"),
        (None, "", DEFAULT_PATH),
        (["/opt/x", "$PATH"], "/bin", "/opt/x:/bin"),
        (["/opt/x"], "/bin", "/opt/x"),
        ([], "/bin", "/bin"),
    ],
)
def test_path_is_the_configured_one_or_inherited_or_a_stated_default(
    path: list[str] | None, inherited: str, expected: str
) -> None:
    agent = AgentSettings(command=["x"], path=path)
    assert child_environment(agent, {"PATH": inherited})["PATH"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~", "/home/ada"),
        ("~/x", "/home/ada/x"),
        ("~bob/x", "~bob/x"),
        ("/a/~/b", "/a/~/b"),
        ("", ""),
    ],
)
def test_a_leading_tilde_is_the_home(text: str, expected: str) -> None:
    assert expand_home(text, {"HOME": "/home/ada"}) == expected
