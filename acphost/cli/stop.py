"""`acphost stop`: end the daemon, and wait until it is gone."""

import os
import signal
import time
from contextlib import suppress

import anyio

from acphost.cli.daemon import all_sessions, reach, stranded
from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.cli.screen import err, short
from acphost.client.client import Client
from acphost.errors import AcpHostError, ConnectionLostError, DaemonUnreachableError
from acphost.service.choice import manager_of
from acphost.transport.processes import Process, birth, is_alive, send, wait_gone

#: Running turns may take a while to end; a silent wait looks like a hang.
_SPEAK_AFTER = 1.0
_SPEAK_AGAIN = 10.0
#: So many of the sessions at work are named.
_MOST_NAMED = 3


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_stop, options)


async def _stop(options: Options) -> int:
    pen, began = err(), time.monotonic()
    try:
        async with reach(options) as client:
            pid = client.info.host_info.pid
            daemon = Process(pid, birth(pid) or "")
            waits_for = await _at_work(client)
            with suppress(ConnectionLostError):  # it may be quicker to go than to answer
                await client.shutdown(force=options.force)
    except DaemonUnreachableError:
        lost = None if options.host is not None else stranded(options)
        if lost is None:
            raise
        pid, daemon, waits_for = lost, Process(lost, birth(lost) or ""), []
        # The second is what `--force` asks for.
        for _ in range(1 + options.force):
            send(daemon, signal.SIGTERM)
    await wait_gone([daemon], _SPEAK_AFTER)
    if is_alive(daemon):
        cure = "" if options.force else "; `acphost stop --force` does not wait"
        pen.line(f"waiting for {', '.join(waits_for) or 'the agents'} to end{cure} …")
        while is_alive(daemon):
            await wait_gone([daemon], _SPEAK_AGAIN)
            if is_alive(daemon):
                pen.line(f"still waiting, {int(time.monotonic() - began)} s by now …")
    pen.line(f"stopped (pid {pid})")
    if manager_of(os.environ).captured_path() is not None:
        pen.line("the installed service starts it again as soon as somebody connects", "dim")
    return Exit.OK


async def _at_work(client: Client) -> list[str]:
    """The turns that the end has to wait for, as people name them."""
    try:
        sessions = [each for each in await all_sessions(client) if each.active_run_id]
    except AcpHostError:  # it is starting, or its disk is full: it can be stopped all the same
        return []
    named = [
        f"the turn of {each.agent_id} in session {short(each.session_id)} ({each.status})"
        for each in sessions[:_MOST_NAMED]
    ]
    more = len(sessions) - len(named)
    return [*named, f"{more} more"] if more else named
