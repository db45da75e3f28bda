"""`acphost grants`: folders that agents may use beside those of their sessions."""

from pathlib import Path

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import age, err, out, table
from acphost.cli.text import sendable
from acphost.client.client import Client
from acphost.wire.grants import Grant


def run(options: Options) -> int:
    """Run the command."""
    if options.action != "list" and not options.folder:
        err().line(f"acphost grants {options.action} needs a folder")
        return Exit.USAGE
    grants = anyio.run(_grants, options)
    if options.json:
        print_json({"items": grants})
        return Exit.OK
    if not grants:
        err().line("no folder is granted; agents use those of their sessions")
        return Exit.OK
    pen = out()
    rows = [(each.access, age(each.created_at), each.path) for each in grants]
    for line in table(("ACCESS", "GRANTED", "FOLDER"), rows):
        pen.line(line)
    return Exit.OK


async def _grants(options: Options) -> list[Grant]:
    async with reach(options) as client:
        if options.action == "add":
            await client.add_grant(
                _folder(options.folder), access="read" if options.read_only else "write"
            )
        elif options.action == "remove":
            await _remove(client, options.folder)
        return (await client.list_grants()).items


async def _remove(client: Client, given: str) -> None:
    wanted = _folder(given)
    found = [
        each
        for each in (await client.list_grants()).items
        if given == each.grant_id or wanted == each.path
    ]
    if not found:
        raise CommandError(f"{wanted} was not granted; `acphost grants` lists those that are")
    for each in found:
        await client.remove_grant(each.grant_id)


def _folder(given: str) -> str:
    """A folder as the daemon needs it: it works elsewhere."""
    return sendable(Path(given).expanduser().resolve())
