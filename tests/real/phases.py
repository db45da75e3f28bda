"""The phases of a turn, and how a test gets into each: something happens to the turn there."""

from collections.abc import Awaitable, Callable

from acphost.wire.event import Kind
from acphost.wire.host import Run
from tests.real.agents import RealAgent
from tests.real.hosting import Host, Talk, reached
from tests.support.model import Echo, Gate, ModelServer, Say, Think

#: Starts a turn and returns once it is in the phase; the turn stays there until the gate opens.
Enter = Callable[[Host, Talk, RealAgent, ModelServer, Gate], Awaitable[Run]]


async def _text(host: Host, talk: Talk, agent: RealAgent, model: ModelServer, gate: Gate) -> Run:
    run = await talk.begin(f"Count. {model.scene([Say('one two three '), gate, Say('four')])}")
    await talk.until(run, Kind.MESSAGE_DELTA, "three")
    return run


async def _thought(host: Host, talk: Talk, agent: RealAgent, model: ModelServer, gate: Gate) -> Run:
    run = await talk.begin(f"Muse. {model.scene([Think('well well '), gate, Say('no')])}")
    await talk.until(run, Kind.THOUGHT_DELTA, "well")
    return run


async def _silence(host: Host, talk: Talk, agent: RealAgent, model: ModelServer, gate: Gate) -> Run:
    run = await talk.begin(f"Listen. {model.scene([gate, Say('too late')])}")
    await reached(gate)
    return run


async def _tool(host: Host, talk: Talk, agent: RealAgent, model: ModelServer, gate: Gate) -> Run:
    hold = agent.mcp("toolbox", "hold", url=model.door(gate))
    run = await talk.begin(f"Hold the door. {model.scene([hold], [Echo()])}")
    await talk.until(run, Kind.TOOL_STARTED)
    await reached(gate)
    return run


async def _permission(
    host: Host, talk: Talk, agent: RealAgent, model: ModelServer, gate: Gate
) -> Run:
    write = agent.write(host.asked_for(agent) / "never.txt", "no\n")
    run = await talk.begin(f"Write it. {model.scene([write], [Echo()])}")
    await talk.until(run, Kind.PERMISSION_REQUESTED)
    return run


PHASES: dict[str, Enter] = {
    "text": _text,
    "thought": _thought,
    "silence": _silence,
    "tool": _tool,
    "permission": _permission,
}
