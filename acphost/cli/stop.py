"""`acphost stop`: end the daemon, and wait until it is gone."""

import os
from contextlib import suppress

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.cli.screen import err
from acphost.errors import ConnectionLostError
from acphost.transport.processes import birth

_POLL = 0.05
_PATIENCE_TO_SPEAK = 1.0


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_stop, options)


async def _stop(options: Options) -> int:
    pen = err()
    async with reach(options) as client:
        pid = client.info.host_info.pid
        born = birth(pid)
        with suppress(ConnectionLostError):  # it may be quicker to go than to answer
            await client.shutdown(force=options.force)
    with anyio.move_on_after(_PATIENCE_TO_SPEAK) as soon:
        await _gone(pid, born)
    if soon.cancelled_caught:
        pen.line("waiting for running turns to end …")
        await _gone(pid, born)
    pen.line(f"stopped (pid {pid})")
    return Exit.OK


async def _gone(pid: int, born: str | None) -> None:
    """Wait for the end of a process that is not our child."""
    while _lives(pid, born):  # noqa: ASYNC110 - only a parent is told, all others have to look
        await anyio.sleep(_POLL)


def _lives(pid: int, born: str | None) -> bool:
    if born is not None:
        return birth(pid) == born
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
