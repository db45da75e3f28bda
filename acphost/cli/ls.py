"""`acphost ls`: the sessions."""

import sys
from pathlib import Path

import anyio
import msgspec

from acphost.cli.daemon import all_sessions, reach, workspace_of
from acphost.cli.exits import CommandError, Exit
from acphost.cli.parser import Options
from acphost.cli.screen import age, err, one_line, out, short, shortened, table
from acphost.wire.host import Session

#: So much of a folder is shown also where there is little room.
_FOLDER = 20


def run(options: Options) -> int:
    """Run the command."""
    sessions = anyio.run(_sessions, options)
    if options.json:
        print_json({"items": sessions})
    elif sessions:
        _print(sessions)
    elif options.here or options.agent:
        err().line("no such session; `acphost ls` shows all")
    else:
        err().line("no sessions yet; `acphost send` begins one")
    return Exit.OK


async def _sessions(options: Options) -> list[Session]:
    if options.here and options.host is not None:
        raise CommandError("--here is a folder of this machine, not of --host", Exit.USAGE)
    workspace = workspace_of(Path.cwd()) if options.here else None
    async with reach(options) as client:
        return await all_sessions(client, workspace_id=workspace, agent_id=options.agent)


def _print(sessions: list[Session]) -> None:
    pen = out()
    rows = [
        (
            short(each.session_id),
            each.agent_id,
            each.status,
            str(each.queued_count or ""),
            age(each.updated_at),
            shortened(_folder(each.cwd), max(_FOLDER, pen.columns // 3)),
            one_line(each.title or "", 40),
        )
        for each in sessions
    ]
    names = ("ID", "AGENT", "STATUS", "QUEUED", "CHANGED", "FOLDER", "TITLE")
    head, *lines = table(names, rows, pen.width)
    pen.line(head, "bold")
    for line in lines:
        pen.line(line.rstrip())


def _folder(cwd: str) -> str:
    """A path as people write it."""
    home = str(Path.home())
    return "~" + cwd[len(home) :] if cwd == home or cwd.startswith(home + "/") else cwd


def print_json(value: object) -> None:
    """One JSON object on stdout: indented for a person, on one line for a program."""
    encoded = msgspec.json.encode(value)
    if sys.stdout.isatty():
        encoded = msgspec.json.format(encoded, indent=2)
    sys.stdout.write(encoded.decode() + "\n")
