"""`acphost serve`: the daemon, in the foreground."""

import os
from functools import partial
from pathlib import Path

import anyio

from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.cli.screen import err
from acphost.daemon.configuration import Configuration
from acphost.daemon.log_file import LogFile
from acphost.daemon.log_stream import stderr
from acphost.daemon.main import serve
from acphost.log import configure


def run(options: Options) -> int:
    """Run the daemon until it is told to stop. Raises StartError, which has the exit code."""
    log = stderr() if options.log is None else LogFile(Path(options.log).absolute())
    configure(stream=log, colour=err().has_colour)
    anyio.run(partial(serve, Configuration(vars(options), os.environ)))
    return Exit.OK
