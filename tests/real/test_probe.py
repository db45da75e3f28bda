"""The agents tried out as a person would try a new one: what they keep of ACP, and what not."""

from pathlib import Path

from acphost.wire.agents import Promise, Severity
from tests.real.agents import RealAgent
from tests.real.hosting import hosting
from tests.support.model import ModelServer

#: What each is known to break, or cannot be trusted with (its notes say how).
KNOWN: dict[str, dict[Promise, bool | None]] = {
    # An array on its stdin ends it; an unknown session is answered `{}`, and resume of one silently
    # makes another.
    "hermes": {
        Promise.BAD_INPUT: False,
        Promise.UNKNOWN_SESSION: False,
        Promise.RESUME: None,
        Promise.RESUME_IS_SILENT: None,
    },
    "reasonix": {},
}


async def test_a_probe_finds_what_is_known_of_each(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    """In a scratch folder, with a model that answers everything at once; nothing is left."""
    async with hosting(tmp_path, model, agent) as host:
        check = await host.client.check_agent(agent.name)
        assert check.ready, check
        assert {each.severity for each in check.findings} == {Severity.OK}, check

        probe = await host.client.probe_agent(agent.name)
        found = {each.promise: each.holds for each in probe.results}
        # The model is done before anybody could stop it.
        found.pop(Promise.CANCEL)
        wanted = dict.fromkeys(found, True) | KNOWN[agent.name]
        assert found == wanted, probe
        assert not await host.processes()
        assert (await host.client.check_agent(agent.name)).version == probe.version
