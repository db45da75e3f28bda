"""`acphost service`: the daemon under systemd or launchd, in one command and out again."""

import os
import sys
from functools import partial

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.logs import show_log
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import Pen, out
from acphost.client.client import Client
from acphost.service.choice import manager_of
from acphost.service.manager import ServiceManager, ServiceState
from acphost.service.plan import own_program, plan_service

_ACTIVE = {"active", "running"}


def run(options: Options) -> int:
    """Run the command."""
    manager = manager_of(os.environ)
    match options.action:
        case "install" if options.print:
            return _print(options, manager)
        case "install":
            return anyio.run(_install, options, manager)
        case "uninstall":
            return anyio.run(_uninstall, options, manager)
        case "logs":
            return _logs(options, manager)
        case _:
            return anyio.run(_status, options, manager)


def _print(options: Options, manager: ServiceManager) -> int:
    plan = plan_service(vars(options), os.environ, own_program(sys.argv[0]))
    pen = out()
    for path, content in manager.files(plan).items():
        pen.line(f"# {path}", "bold")
        pen.line(content.decode())
    return Exit.OK


async def _install(options: Options, manager: ServiceManager) -> int:
    plan = plan_service(vars(options), os.environ, own_program(sys.argv[0]))
    changed = await manager.install(plan)
    # Not taken on trust: the service counts as installed when its daemon has answered.
    async with reach(options) as client:
        answer = await _answer(client)
    if options.json:
        print_json({"changed": [str(path) for path in changed], **answer})
        return Exit.OK
    pen = out()
    for path in changed:
        pen.line(f"wrote {path}")
    if not changed:
        pen.line("nothing to change")
    pen.line(f"acphost {answer['version']} runs (pid {answer['pid']}) and answers on {plan.socket}")
    pen.line('try it: acphost send --agent demo "hello"', "dim")
    return Exit.OK


async def _answer(client: Client) -> dict[str, object]:
    await client.ping()
    host = client.info.host_info
    return {"version": host.version, "pid": host.pid, "socket": str(client.path)}


async def _uninstall(options: Options, manager: ServiceManager) -> int:
    gone = await manager.uninstall()
    if options.json:
        print_json({"removed": [str(path) for path in gone]})
        return Exit.OK
    pen = out()
    for path in gone:
        pen.line(f"removed {path}")
    pen.line("sessions and journal stay in the state folder" if gone else "it was not installed")
    return Exit.OK


async def _status(options: Options, manager: ServiceManager) -> int:
    state = await manager.state()
    if options.json:
        print_json(state)
    else:
        _show(out(), state)
    wakes = state.state == "inactive" and state.socket_state in _ACTIVE
    return Exit.OK if state.state in _ACTIVE or wakes else Exit.FAILURE


def _show(pen: Pen, state: ServiceState) -> None:
    if not state.installed:
        pen.line("not installed; `acphost service install` does it")
        return
    pairs = (
        ("service", _or_none(state.state, state.status)),
        ("socket", state.socket_state),
        ("pid", state.pid),
        ("restarts", state.restarts),
        ("ended", _ended(state)),
        ("files", ", ".join(state.files)),
    )
    for name, value in pairs:
        if value is not None:
            pen.line(f"{pen.paint(f'{name:<10}', 'bold')} {pen.safe(str(value))}")


def _or_none(state: str | None, status: str | None) -> str:
    known = state or "not loaded"
    return f"{known}: {status}" if status else known


def _ended(state: ServiceState) -> str | None:
    if state.state in _ACTIVE or state.result in {None, "success"}:
        return None
    return f"{state.result}, exit code {state.exit_code}; `acphost service logs` may say why"


def _logs(options: Options, manager: ServiceManager) -> int:
    command = manager.log_command(lines=options.lines, follow=options.follow)
    if options.print:
        print(" ".join(command))
        return Exit.OK
    if manager.captured_path() is None:
        raise CommandError("not installed as a service; `acphost logs` finds the log of any daemon")
    return anyio.run(partial(show_log, command, as_is=options.json))
