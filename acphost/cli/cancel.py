"""`acphost cancel`: stop a run, and see how it ends."""

import anyio

from acphost.cli.daemon import all_sessions, pick, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import out, short
from acphost.client.client import Client
from acphost.client.connecting import PATIENCE
from acphost.wire.host import Run, RunStatus
from acphost.wire.params import RunListParams


def run(options: Options) -> int:
    """Run the command."""
    ended = anyio.run(_cancel, options)
    if options.json:
        print_json(ended)
    else:
        out().line(f"run {short(ended.host_run_id)}: {ended.status}")
    return Exit.OK


async def _cancel(options: Options) -> Run:
    async with reach(options, patience=PATIENCE) as client:
        run_id = await _find_run(client, options.target)
        run = await client.cancel(run_id, hold_queue=options.hold)
        return run if options.no_wait else await client.wait(run_id)


async def _find_run(client: Client, wanted: str) -> str:
    """A run that is not over, by its own id or by its session's."""
    runs = [
        run.host_run_id
        for status in (RunStatus.RUNNING, RunStatus.PENDING)
        for run in (await client.list_runs(RunListParams(status=status, limit=200))).items
    ]
    sessions = {each.session_id: each for each in await all_sessions(client)}
    found = pick(wanted, [*runs, *sessions], "run or session")
    session = sessions.get(found)
    if session is None:
        return found
    if session.active_run_id is None:
        raise CommandError(f"session {short(found)} runs nothing now")
    return session.active_run_id
