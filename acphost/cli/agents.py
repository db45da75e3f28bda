"""`acphost agents`: who is configured and can be started, and what one of them keeps of ACP."""

from collections.abc import Sequence

import anyio

from acphost.cli import login
from acphost.cli.daemon import reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import err, out, table
from acphost.client.client import Client
from acphost.wire.agents import AgentCheck, AgentDescriptor, AgentProbe, Severity

_MARKS = {
    Severity.OK: ("ok", "green"),
    Severity.WARNING: ("warning", "yellow"),
    Severity.PROBLEM: ("problem", "red"),
}
_HOLDS = {True: ("holds", "green"), False: ("broken", "red"), None: ("untried", "dim")}


def run(options: Options) -> int:
    """Run the command."""
    if options.action == "probe":
        if options.agent is None:
            raise CommandError("name the agent to probe: acphost agents probe ID", Exit.USAGE)
        return anyio.run(_probe, options)
    if options.action in ("login", "logout"):
        return login.run(options)
    return anyio.run(_check if options.action == "check" else _list, options)


async def _list(options: Options) -> int:
    async with reach(options) as client:
        listed = await client.agents()
    if options.json:
        print_json(listed)
    else:
        _show_agents(listed.agents)
    return Exit.OK


def _show_agents(agents: Sequence[AgentDescriptor]) -> None:
    pen = out()
    rows = [
        (
            each.agent_id,
            each.display_name,
            each.runtime,
            "ready" if each.health.state == "ready" else "not ready",
            "; ".join([*each.health.problems, *_broken(each)]) or " ".join(each.health.launch),
        )
        for each in agents
    ]
    head, *lines = table(("ID", "NAME", "RUNTIME", "STATE", "COMMAND OR PROBLEM"), rows)
    pen.line(head, "bold")
    for line in lines:
        pen.line(pen.safe(line))


def _broken(agent: AgentDescriptor) -> list[str]:
    """What it was seen not to keep when it was tried out, in few words."""
    if agent.probe is None or not agent.probe.broken:
        return []
    promises = ", ".join(each.replace("_", " ") for each in agent.probe.broken)
    return [f"does not keep: {promises} (probed {agent.probe.at[:10]})"]


async def _check(options: Options) -> int:
    """One agent, or all of them; fails if one that was named would not work."""
    async with reach(options) as client:
        checks = [await client.check_agent(agent_id) for agent_id in await _named(client, options)]
    if options.json:
        print_json(checks[0] if options.agent else checks)
    else:
        for check in checks:
            _show_check(check)
    return Exit.FAILURE if options.agent and not checks[0].ready else Exit.OK


async def _named(client: Client, options: Options) -> list[str]:
    if options.agent:
        return [options.agent]
    return [agent.agent_id for agent in (await client.agents()).agents]


def _show_check(check: AgentCheck) -> None:
    pen = out()
    version = f" {check.version}" if check.version else ""
    pen.line(f"{check.agent_id}{version}: {'ready' if check.ready else 'not ready'}", "bold")
    for finding in check.findings:
        word, style = _MARKS[finding.severity]
        pen.line(f"  {pen.paint(f'{word:7}', style)}  {pen.safe(finding.message)}")
        if finding.cure and finding.severity is not Severity.OK:
            pen.line(f"           {pen.safe(finding.cure)}", "dim")


async def _probe(options: Options) -> int:
    if not options.json:
        asked = "" if options.no_prompts else "; it asks its model two short things"
        err().line(f"probing {options.agent} in a scratch folder{asked} …", "dim")
    async with reach(options) as client:
        found = await client.probe_agent(options.agent, prompts=not options.no_prompts)
    if options.json:
        print_json(found)
    else:
        _show_probe(found)
    return Exit.OK if all(each.holds is not False for each in found.results) else Exit.FAILURE


def _show_probe(found: AgentProbe) -> None:
    pen = out()
    pen.line(pen.safe(f"{found.agent_id}: {found.name} {found.version}".rstrip(": ")), "bold")
    for each in found.results:
        word, style = _HOLDS[each.holds]
        promise = f"{each.promise.replace('_', ' '):32}"
        note = pen.safe(each.note or "")
        pen.line(f"  {pen.paint(f'{word:7}', style)}  {promise} {note}".rstrip())
