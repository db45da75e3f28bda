"""Agents looked at without starting them, and tried out before they are relied on."""

from acphost.wire.agents import AgentCheck, AgentProbe, Promise, Severity
from tests.support.daemon import Daemon, running_daemon
from tests.support.terminal import acphost

GOOD = """
INIT {"protocolVersion": 1, "agentInfo": {"name": "good", "version": "1.0"},
      "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"resume": {}}}}
ON prompt ~"Count"
    MSG "one "
    GATE ${DIR}/never
ON prompt
    MSG "ready"
"""
#: It takes every request for right, and cannot continue what it says it can.
POOR = """
INIT {"protocolVersion": 1, "agentInfo": {"name": "poor", "version": "2.0"},
      "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"resume": null}}}
ON acphost/probe
    ANSWER {}
ON load
    FAIL -32603 "the database is locked"
ON prompt
    MSG "ready"
"""


def holds(probe: AgentProbe) -> dict[str, bool | None]:
    return {each.promise: each.holds for each in probe.results}


async def test_a_good_agent_keeps_every_promise() -> None:
    """Each is tried on the wire, in processes that are gone afterwards."""
    async with running_daemon(GOOD) as daemon:
        daemon.expected.add("garbage")
        probe = await daemon.client.probe_agent("fake")

        assert (probe.name, probe.version) == ("good", "1.0")
        assert holds(probe) == dict.fromkeys(Promise, True)
        assert len(daemon.launches()) == 3
        assert await daemon.client.processes() == []
        assert [each.severity for each in (await check(daemon)).findings] == [Severity.OK]


async def check(daemon: Daemon) -> AgentCheck:
    return await daemon.client.check_agent("fake")


async def test_without_prompts_nothing_is_said_to_the_model() -> None:
    """What cannot be tried then is told to be untried, never to hold."""
    async with running_daemon(GOOD) as daemon:
        daemon.expected.add("garbage")
        probe = await daemon.client.probe_agent("fake", prompts=False)

        assert daemon.prompts() == []
        assert holds(probe)[Promise.PROMPT] is None
        assert holds(probe)[Promise.LOAD] is None
        assert holds(probe)[Promise.BAD_INPUT] is True


async def test_what_a_probe_saw_broken_is_not_tried_again() -> None:
    """A load that failed in the probe is skipped from then on, also by the next daemon."""
    async with running_daemon(POOR) as daemon:
        daemon.expected.add("garbage")
        probe = await daemon.client.probe_agent("fake")
        found = holds(probe)
        assert (found[Promise.LOAD], found[Promise.UNKNOWN_METHOD]) == (False, False)
        loads = len(daemon.heard("session/load"))
        codes = {each.code for each in (await check(daemon)).findings}
        assert {"probe_load", "probe_unknown_method_refused"} <= codes

        await daemon.restart()
        (listed,) = [each for each in (await daemon.client.agents()).agents
                     if each.agent_id == "fake"]  # fmt: skip
        assert listed.probe == probe
        assert listed.health.version == "2.0"
        shown = (await acphost(daemon.socket, "agents")).out
        assert "does not keep: unknown method refused," in shown
        session = await daemon.session()
        await daemon.ask(session, "first")
        reset = {"sessionId": session, "next": "continue"}
        await daemon.client.request("runtime/reset", reset, dict)
        again = await daemon.ask(session, "second")

        assert again.continuity == "cold_resumed"
        assert len(daemon.heard("session/load")) == loads


async def test_an_agent_that_is_not_there_says_how_to_get_it() -> None:
    """The check names the program and the cure, and a probe does not pretend to have tried."""
    command = {"command": ["no-such-agent-anywhere"]}
    async with running_daemon(prepare=lambda made: made.configure(agent=command)) as daemon:
        found = await check(daemon)
        assert not found.ready
        assert "no-such-agent-anywhere" in found.findings[0].message
        assert found.findings[0].cure

        probe = await daemon.client.probe_agent("fake")
        assert holds(probe) == {Promise.INITIALIZE: False}


async def test_a_variable_that_is_not_there_is_named() -> None:
    """`env_pass` of a variable that the daemon itself does not have is a warning."""
    async with running_daemon(GOOD, agent={"env_pass": ["ACP_NO_SUCH_KEY"]}) as daemon:
        found = await check(daemon)
        assert found.ready
        (warning,) = [each for each in found.findings if each.severity == Severity.WARNING]
        assert "ACP_NO_SUCH_KEY" in warning.message


async def test_what_may_surprise_is_shown_where_agents_are_listed() -> None:
    """A Hermes whose model approves is ready all the same; the list says who approves."""

    def prepare(daemon: Daemon) -> None:
        daemon.path("config.yaml").write_text("approvals: {mode: smart}\n")
        env = {**daemon.agent_environ, "HERMES_HOME": str(daemon.folder)}
        daemon.configure(agent={"runtime": "hermes", "env": env})

    async with running_daemon(GOOD, prepare=prepare) as daemon:
        listed = {each.agent_id: each for each in (await daemon.client.agents()).agents}
        health = listed["fake"].health
        assert (health.installed, health.state) == (True, "ready")
        assert "a model approves" in health.problems[0]
