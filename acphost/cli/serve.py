"""`acphost serve`: the daemon, in the foreground."""

import os
from functools import partial

import anyio

from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.daemon.main import serve
from acphost.log import configure
from acphost.settings.load import load_settings


def run(options: Options) -> int:
    """Run the daemon until it is told to stop. Raises StartError, which has the exit code."""
    configure()
    settings = load_settings(flags=vars(options), environ=os.environ)
    anyio.run(partial(serve, settings, environ=os.environ))
    return Exit.OK
