"""`acphost logs`: what the daemon has written down of itself, wherever that goes."""

import os
from pathlib import Path
from typing import Any

import anyio
import msgspec

from acphost.cli.daemon import reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import state_dir_of
from acphost.cli.screen import Pen, err, out, short
from acphost.errors import AgentUnavailableError, ConnectionLostError, DaemonUnreachableError
from acphost.log import line_of
from acphost.service.choice import manager_of
from acphost.service.launchd import LOG_NAME
from acphost.transport.command import follow_command

_MEMBERS = {"at", "level", "event"}


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_logs, options)


async def _logs(options: Options) -> int:
    if options.trouble:
        return await _trouble(options)
    return await show_log(await _command(options), as_is=options.json)


async def _trouble(options: Options) -> int:
    async with reach(options) as client:
        told = await client.trouble(limit=max(1, min(options.lines, 500)))
    if options.json:
        print_json(told)
        return Exit.OK
    pen = out()
    for each in reversed(told.items):
        where = f"{each.agent_id} {short(each.session_id)}"
        pen.line(f"{each.at} {pen.paint(each.kind, 'yellow')} {where}: {pen.safe(each.text)}")
    if not told.items:
        pen.line("no trouble lately", "green")
    return Exit.OK


async def _command(options: Options) -> list[str]:
    """The program that prints the log of the daemon that runs, or of the last one."""
    manager = manager_of(os.environ)
    place = await _place(options)
    kept = state_dir_of(options) / LOG_NAME
    match place.get("to"):
        case "file" if place.get("path"):
            return _tail(Path(place["path"]), options)
        case "journal":
            return manager.log_command(lines=options.lines, follow=options.follow)
        case "terminal" | "elsewhere":
            raise CommandError(
                f"the daemon (pid {place['pid']}) logs to where it was started, and nobody keeps"
                " that; `acphost service install` does, or `acphost serve --log FILE`"
            )
    if kept.exists():
        return _tail(kept, options)
    if manager.captured_path() is None:
        raise CommandError("no daemon runs, none is installed as a service, and no log was kept")
    return manager.log_command(lines=options.lines, follow=options.follow)


async def _place(options: Options) -> dict[str, Any]:
    try:
        async with reach(options) as client:
            stats = await client.stats()
    except (DaemonUnreachableError, ConnectionLostError):
        return {}
    place = stats.get("log")
    return {**(place if isinstance(place, dict) else {}), "pid": stats.get("pid")}


def _tail(path: Path, options: Options) -> list[str]:
    return ["tail", "-n", str(options.lines), *(["-F"] if options.follow else []), str(path)]


async def show_log(command: list[str], *, as_is: bool) -> int:
    """Print what a program knows of the log; entries as a person reads them unless `as_is`."""
    printer = _Printer(out(), as_is=as_is)
    try:
        code, complaint = await follow_command(command, os.environ, printer.feed)
    except AgentUnavailableError as exc:
        raise CommandError(str(exc)) from exc
    printer.finish()
    if code:
        err().line(f"{command[0]}: {complaint.strip()}", "red")
        return Exit.FAILURE
    return Exit.OK


class _Printer:
    """Puts lines together and prints them."""

    def __init__(self, pen: Pen, *, as_is: bool) -> None:
        self._pen = pen
        self._as_is = as_is
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Print every line that this completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._print(line)

    def finish(self) -> None:
        """The last line may have no end."""
        if self._rest:
            self._print(self._rest)

    def _print(self, line: bytes) -> None:
        entry = None if self._as_is else _entry(line)
        if entry is None:
            self._pen.line(self._pen.safe(line.decode(errors="replace")))
        else:
            text = line_of(entry, colour=self._pen.has_colour)
            self._pen.line(text)


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return entry if isinstance(entry, dict) and entry.keys() >= _MEMBERS else None
