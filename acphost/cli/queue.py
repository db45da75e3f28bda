"""`acphost queue`: what waits in a session."""

import anyio

from acphost.cli.daemon import find_session, reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import age, err, one_line, out, short, table
from acphost.wire.host import QueuedRun

_PREVIEW = 60


def run(options: Options) -> int:
    """Run the command."""
    items = anyio.run(_queue, options)
    if options.json:
        print_json({"items": items})
        return Exit.OK
    if not items:
        err().line("nothing waits")
        return Exit.OK
    if items[0].held_reason:
        err().line(f"held: {items[0].held_reason}; `acphost queue SESSION release` lets it go on")
    pen = out()
    rows = [
        (
            str(each.position),
            short(each.run_id),
            age(each.created_at),
            one_line(each.preview, _PREVIEW),
        )
        for each in items
    ]
    for line in table(("BEHIND", "RUN", "SENT", "TEXT"), rows):
        pen.line(line)
    return Exit.OK


async def _queue(options: Options) -> list[QueuedRun]:
    async with reach(options) as client:
        session = await find_session(client, options.session)
        if options.action == "hold":
            await client.queue_hold(session.session_id, "held by hand")
        elif options.action == "release":
            await client.queue_release(session.session_id)
        return (await client.queue_list(session.session_id)).items
