"""Which agent is meant where none is named."""

from acphost.errors import AgentUnavailableError
from acphost.wire.agents import AgentList

#: The bundled one, which is only there to be looked at.
_BUNDLED = "demo"


def default_agent(listed: AgentList) -> str:
    """The configured default; else the only agent, or the first that can be started.

    Shipped agents are configured whether installed or not, so being there is not enough. The
    bundled one is taken only if there is no other. Raises AgentUnavailableError.
    """
    if listed.default_agent is not None:
        return listed.default_agent
    agents = listed.agents
    if len(agents) == 1:
        return agents[0].agent_id
    ready = [each for each in agents if each.health.installed and not each.health.problems]
    if not ready:
        raise AgentUnavailableError("no agent can be started; `acphost agents` tells why")
    return min(ready, key=lambda each: each.agent_id == _BUNDLED).agent_id
