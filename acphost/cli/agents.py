"""`acphost agents`: who is configured, and who can be started."""

import anyio

from acphost.cli.daemon import reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import out, table
from acphost.wire.host import AgentList


def run(options: Options) -> int:
    """Run the command."""
    listed = anyio.run(_agents, options)
    if options.json:
        print_json(listed)
        return Exit.OK
    pen = out()
    rows = [
        (
            each.agent_id,
            each.display_name,
            each.runtime,
            "ready" if each.health.installed and not each.health.problems else "not ready",
            "; ".join(each.health.problems) or " ".join(each.health.launch),
        )
        for each in listed.agents
    ]
    head, *lines = table(("ID", "NAME", "RUNTIME", "STATE", "COMMAND OR PROBLEM"), rows)
    pen.line(head, "bold")
    for line in lines:
        pen.line(pen.safe(line))
    return Exit.OK


async def _agents(options: Options) -> AgentList:
    async with reach(options) as client:
        return await client.agents()
