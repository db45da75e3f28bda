"""`python -m acphost.chat`: started by the daemon for agents with a chat runtime."""

import sys

import anyio
import msgspec

from acphost.chat.options import read_options
from acphost.settings.chat import VARIABLE
from acphost.version import VERSION

_EX_CONFIG = 78


def main() -> int:
    """Serve the host; 78 where it was not told which endpoint, or the library is missing."""
    try:
        options = read_options()
    except (KeyError, msgspec.DecodeError) as exc:
        print(f"acphost chat: {VARIABLE} does not name an endpoint: {exc}", file=sys.stderr)
        return _EX_CONFIG
    try:
        from acphost.chat.program import Program
    except ModuleNotFoundError as exc:
        cure = "install it with: pip install 'acphost[chat]'"
        print(f"acphost chat: {exc.name} is missing; {cure}", file=sys.stderr)
        return _EX_CONFIG
    anyio.run(Program(options, VERSION).run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
