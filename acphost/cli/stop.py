"""`acphost stop`: end the daemon, and wait until it is gone."""

import os
from contextlib import suppress
from math import inf

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.cli.screen import err
from acphost.errors import ConnectionLostError
from acphost.service.choice import manager_of
from acphost.transport.processes import Process, birth, is_alive, wait_gone

#: Running turns may take a while to end; a silent wait looks like a hang.
_SPEAK_AFTER = 1.0


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_stop, options)


async def _stop(options: Options) -> int:
    pen = err()
    async with reach(options) as client:
        pid = client.info.host_info.pid
        daemon = Process(pid, birth(pid) or "")
        with suppress(ConnectionLostError):  # it may be quicker to go than to answer
            await client.shutdown(force=options.force)
    await wait_gone([daemon], _SPEAK_AFTER)
    if is_alive(daemon):
        pen.line("waiting for running turns to end …")
        await wait_gone([daemon], inf)
    pen.line(f"stopped (pid {pid})")
    if manager_of(os.environ).captured_path() is not None:
        pen.line("the installed service starts it again as soon as somebody connects", "dim")
    return Exit.OK
