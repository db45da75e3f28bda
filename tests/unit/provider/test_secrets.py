"""What the host knows to be secret, and texts without it."""

import json

import msgspec

from acphost.provider.secrets import MASK, Secrets, of_environment, of_servers


def test_the_values_that_look_secret() -> None:
    env = {
        "OPENAI_API_KEY": "s3cret-1",
        "GITHUB_PAT": "s3cret-2",
        "DB_PASSWORD": "s3cret-3",
        "WHATEVER": "sk-abcdefgh12",
        "https_proxy": "http://user:s3cret-4@proxy:8080",
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/me",
        "PWD": "/home/me/work",
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "API_KEY_FILE": "/etc/key.txt",
        "MODEL": "deepseek-chat-v3",
    }

    found = ["s3cret-1", "s3cret-2", "s3cret-3", "sk-abcdefgh12", "s3cret-4"]
    assert of_environment(env) == found


def test_all_that_an_mcp_server_is_given_is_secret() -> None:
    server = {
        "name": "x",
        "env": [{"name": "A", "value": "one-value"}, {"name": "DIR", "value": "/srv/data"}],
        "headers": [{"name": "Authorization", "value": "Bearer two-value"}],
    }
    raw = msgspec.Raw(json.dumps(server).encode())

    found = of_servers([raw, msgspec.Raw(b"[]")])
    assert found == ["one-value", "Bearer two-value", "two-value"]


def test_they_are_taken_out_of_texts() -> None:
    """The longer one first, in JSON as elsewhere; what is short stands in too many words."""
    secrets = Secrets(["secret", "secret-long", 'with"quote', "yes"])

    assert secrets.masked(
        "a secret-long, a secret, yes"
    ) == f"a {MASK}-long, a {MASK}, yes".replace("-long", "")
    told = json.dumps({"k": 'with"quote', "s": "secret"}).encode()
    assert json.loads(secrets.masked_bytes(told)) == {"k": MASK, "s": MASK}
    secrets.learn(["another"])
    assert secrets.masked("another") == MASK
