"""`acphost retention`: delete what the rules of the configuration let go, or show it."""

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import size
from acphost.cli.screen import age, err, one_line, out, short, table
from acphost.wire.daemon import RetentionDone


def run(options: Options) -> int:
    """Run the command."""
    done = anyio.run(_retain, options)
    if options.json:
        print_json(done)
        return Exit.OK
    if done.max_age_days is None and done.max_bytes is None:
        err().line("nothing is ever deleted: [journal.retention] in the configuration is not set")
        return Exit.OK
    _print(done)
    return Exit.OK


async def _retain(options: Options) -> RetentionDone:
    async with reach(options) as client:
        return await client.retention(dry_run=options.dry_run)


def _print(done: RetentionDone) -> None:
    pen = out()
    rows = [
        (
            short(each.session_id),
            each.agent_id,
            age(each.updated_at),
            size(each.bytes),
            each.cause,
            one_line(each.title or "", 40),
        )
        for each in done.sessions
    ]
    if rows:
        head, *lines = table(("ID", "AGENT", "CHANGED", "SIZE", "CAUSE", "TITLE"), rows)
        pen.line(head, "bold")
        for line in lines:
            pen.line(line.rstrip())
    did = "would go" if done.dry_run else "deleted"
    count = "1 session" if len(rows) == 1 else f"{len(rows)} sessions"
    freed, used = size(done.bytes), size(done.used_bytes)
    err().line(f"{count} {did}, {freed}; the journal holds {used}")
