"""`acphost session`: sessions named, pinned, copied, deleted, and those that an agent keeps."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import msgspec

from acphost.cli.daemon import all_sessions, pick, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import err, one_line, out, short, table
from acphost.cli.text import sendable
from acphost.client.client import Client
from acphost.wire.library import Discovered, SessionDeleted

_TITLE = 200


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_run, options)


async def _run(options: Options) -> int:
    async with reach(options) as client:
        told = await _ACTIONS[options.action](client, options)
    if options.json:
        print_json(told)
    return Exit.OK


def _say(options: Options, text: str) -> None:
    if not options.json:
        out().line(text)


async def _find(client: Client, options: Options) -> str:
    sessions = {each.session_id: each for each in await all_sessions(client)}
    return pick(options.target, sessions, "session")


async def _rename(client: Client, options: Options) -> msgspec.Struct:
    session = await client.rename(await _find(client, options), options.text)
    title = one_line(session.title or "named by its agent", _TITLE)
    _say(options, f"session {short(session.session_id)}: {title}")
    return session


async def _pin(client: Client, options: Options) -> msgspec.Struct:
    is_pinned = options.action == "pin"
    session = await client.pin(await _find(client, options), pinned=is_pinned)
    _say(options, f"session {short(session.session_id)}: {'' if is_pinned else 'not '}pinned")
    return session


async def _fork(client: Client, options: Options) -> msgspec.Struct:
    session_id = await _find(client, options)
    title = msgspec.UNSET if options.text is None else options.text
    session = await client.fork(session_id, title=title)
    _say(options, f"go on with: acphost send --session {short(session.session_id)} …")
    return session


async def _delete(client: Client, options: Options) -> msgspec.Struct:
    session_id = await _find(client, options)
    _confirm(options, session_id)
    done = await client.delete_session(session_id, external=options.external)
    if not options.json:
        _tell_deleted(done)
    return done


def _confirm(options: Options, session_id: str) -> None:
    """Have a person say so once more; without one, the command line must."""
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError("nothing was deleted: add --yes to say that it is meant", Exit.USAGE)
    where = "here and where its agent keeps it" if options.external else "here"
    err().write(f"delete session {short(session_id)} {where} for good? (y/N) ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was deleted")


def _tell_deleted(done: SessionDeleted) -> None:
    out().line("deleted")
    external = done.external
    if external.requested and external.status != "deleted":
        said = f": {external.error}" if external.error else ""
        err().line(f"but not where the agent keeps it: {external.status}{said}", "yellow")


async def _discover(client: Client, options: Options) -> msgspec.Struct:
    if options.here and options.host is not None:
        raise CommandError("--here is a folder of this machine, not of --host", Exit.USAGE)
    found = await client.discover(options.target, sendable(Path.cwd()) if options.here else None)
    if not options.json:
        _show(found)
    return found


def _show(found: Discovered) -> None:
    if not found.supported:
        err().line(f"agent {found.agent_id} cannot list its sessions")
        return
    rows = [
        (
            each.acp_session_id,
            short(each.session_id) if each.session_id else "-",
            each.updated_at or "",
            each.cwd,
            each.title or "",
        )
        for each in found.sessions
    ]
    pen = out()
    head, *lines = table(("ID", "HERE", "CHANGED", "FOLDER", "TITLE"), rows)
    pen.line(head, "bold")
    for line in lines:
        pen.line(line.rstrip())
    if found.problem:
        err().line(f"the list is not whole: {found.problem}", "yellow")


async def _adopt(client: Client, options: Options) -> msgspec.Struct:
    if options.text is None:
        raise CommandError("say which: acphost session adopt AGENT ID", Exit.USAGE)
    listed = await client.discover(options.target)
    known = {each.acp_session_id: each.cwd for each in listed.sessions}
    cwd = known.get(options.text) or _folder(options)
    session = await client.adopt(options.target, options.text, cwd)
    _say(options, f"go on with: acphost send --session {short(session.session_id)} …")
    return session


def _folder(options: Options) -> str:
    """Where a session goes on whose own folder nobody knows."""
    return sendable(Path.cwd()) if options.host is None else str(options.there.home)


_ACTIONS: dict[str, Callable[[Client, Options], Awaitable[msgspec.Struct]]] = {
    "rename": _rename,
    "pin": _pin,
    "unpin": _pin,
    "fork": _fork,
    "delete": _delete,
    "discover": _discover,
    "adopt": _adopt,
}
