"""The one command whose start somebody waits for each time, read without the whole parser.

An editor starts `acphost acp` whenever it opens. To load argparse and describe thirty commands to
it takes longer than all that the front door does until its first answer.
"""

from collections.abc import Sequence
from types import SimpleNamespace

_COMMAND = "acp"
_VALUES = {
    "--agent": "agent",
    "--host": "host",
    "--session": "session",
    "--socket": "socket",
    "--state-dir": "state_dir",
    "--config": "config",
}
_NO_AUTOSTART = "--no-autostart"


def quick_options(words: Sequence[str]) -> SimpleNamespace | None:
    """The options of a plain `acp` command line; None for all others, and for what is not plain."""
    if words[:1] != [_COMMAND]:
        return None
    options = dict.fromkeys(_VALUES.values())
    autostart = True
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        name, is_joined, value = word.partition("=")
        if word == _NO_AUTOSTART:
            autostart = False
        elif name in _VALUES and (is_joined or rest):
            value = value if is_joined else rest.pop(0)
            if value.startswith("-"):
                return None
            options[_VALUES[name]] = value
        else:
            return None
    return SimpleNamespace(module=_COMMAND, autostart=autostart, **options)
