"""The environment an agent gets: an allow-list, what the configuration passes on, what it sets.

The daemon's own environment may hold keys of other services and whatever a login shell collected;
an agent runs other people's code, so nothing reaches it unnamed.
"""

import os
from collections.abc import Mapping

from acphost.settings.model import AgentSettings

#: Used where the daemon itself has no PATH, as under a bare `env -i`.
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
#: Stands for the inherited PATH inside an agent's `path`.
INHERITED = "$PATH"

#: Who and where the user is, how to speak and show.
_IDENTITY = {"HOME", "LOGNAME", "USER", "SHELL", "PATH", "TERM", "COLORTERM", "TMPDIR", "TZ"}
_LANGUAGE = {"LANG", "LANGUAGE"}
#: How to reach a model server from this network: without them an agent fails on a managed machine.
#: A proxy address may hold a password; it was given to every program of this user alike.
_NETWORK = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
_CERTIFICATES = {
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
}
ALLOWED = frozenset(
    _IDENTITY | _LANGUAGE | _CERTIFICATES | _NETWORK | {name.lower() for name in _NETWORK}
)
ALLOWED_PREFIXES = ("LC_", "XDG_")


def child_environment(agent: AgentSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """What the agent's process sees: allowed names, then `env_pass`, then `path`, then `env`."""
    passed = set(agent.env_pass)
    result = {
        name: value
        for name, value in environ.items()
        if name in ALLOWED or name in passed or name.startswith(ALLOWED_PREFIXES)
    }
    inherited = environ.get("PATH") or DEFAULT_PATH
    folders = agent.path or [INHERITED]
    result["PATH"] = os.pathsep.join(inherited if f == INHERITED else f for f in folders)
    result.update(agent.env)
    return result


def expand_home(text: str, environ: Mapping[str, str]) -> str:
    """Replace a leading `~` by the user's home; `~other` and text without it stay as they are."""
    if text != "~" and not text.startswith("~/"):
        return text
    # Path.home() raises where the user has no home; then "~" may as well stay.
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  see above
    return home.rstrip("/") + text[1:]
