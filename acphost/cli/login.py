"""`acphost agents login|logout`: in the agent's own way, in a terminal where it wants one."""

import os
import subprocess
import sys

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import err, out
from acphost.client.client import Client
from acphost.daemon.configuration import Configuration
from acphost.provider.runtimes import traits_of
from acphost.settings.environment import child_environment
from acphost.wire.logins import AgentLogin, TerminalLogin


def run(options: Options) -> int:
    """Run the command."""
    if options.agent is None:
        raise CommandError(f"name the agent: acphost agents {options.action} ID", Exit.USAGE)
    return anyio.run(_logout if options.action == "logout" else _login, options)


async def _logout(options: Options) -> int:
    async with reach(options) as client:
        done = await client.logout(options.agent)
    _report(options, done, "logged out")
    return Exit.OK


async def _login(options: Options) -> int:
    async with reach(options) as client:
        method_id = options.method or await _only_method(client, options.agent)
        login = await client.authenticate(options.agent, method_id)
        if login.terminal is not None:
            _run_there(login.terminal, _configured(options))
            login = await client.authenticate(options.agent, method_id, completed=True)
    _report(options, login, "logged in")
    return Exit.OK


async def _only_method(client: Client, agent_id: str) -> str:
    """The way to log in where there is but one."""
    offered = (await client.authenticate(agent_id)).methods
    if len(offered) == 1:
        return offered[0].id
    if not offered:
        raise CommandError(f"agent {agent_id!r} offers no login")
    pen = err()
    for method in offered:
        pen.line(pen.safe(f"  {method.id:<20} {method.name}"))
    raise CommandError(f"say which: acphost agents login {agent_id} METHOD", Exit.USAGE)


def _configured(options: Options) -> dict[str, str]:
    """What the agent as it is configured here sees: its variables never come over the socket."""
    settings = Configuration(vars(options), os.environ).settings
    agent = settings.agents.get(options.agent)
    if agent is None:
        raise CommandError(f"agent {options.agent!r} is not in the configuration found here")
    traits = traits_of(agent.runtime, settings.folder)
    return traits.environment(child_environment(agent, os.environ))


def _run_there(login: TerminalLogin, environ: dict[str, str]) -> None:
    """Give the terminal to the agent's login; it is good if it ends with 0."""
    if not sys.stdin.isatty():
        raise CommandError("this login needs a terminal", Exit.USAGE)
    command = [*login.command, *login.args]
    try:
        code = subprocess.call(command, env={**environ, **login.env})  # noqa: S603  (its own)
    except OSError as exc:
        raise CommandError(f"cannot run {command[0]}: {exc.strerror}") from exc
    if code != 0:
        raise CommandError(f"the login ended with exit code {code}; nothing was changed")


def _report(options: Options, done: AgentLogin, word: str) -> None:
    if options.json:
        print_json(done)
        return
    out().line(word)
    if done.sessions:
        err().line(f"{len(done.sessions)} sessions that had waited for it go on")
