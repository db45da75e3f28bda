"""The area `agent` of the socket: what is configured, whether it would work, how it behaves."""

from acphost.errors import AgentNotFoundError
from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire.agents import AgentCheck, AgentDescriptor, AgentList, AgentProbe
from acphost.wire.logins import AgentAuthenticateParams, AgentLogin


class AgentMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("agent/list", p.AgentListParams, Access.ANY, self.list),
            Method("agent/get", p.AgentParams, Access.ANY, self.get),
            Method("agent/check", p.AgentParams, Access.ANY, self.check),
            Method("agent/authenticate", AgentAuthenticateParams, Access.ANY, self.authenticate),
            Method("agent/logout", p.AgentParams, Access.ANY, self.logout),
            Method("agent/probe", p.AgentProbeParams, Access.ANY, self.probe),
        )

    async def list(self, client: ClientConnection, params: p.AgentListParams) -> AgentList:
        """The configured agents, and whether they can be started."""
        return await self._host.agents(client.known.actor_id)

    async def get(self, client: ClientConnection, params: p.AgentParams) -> AgentDescriptor:
        """One configured agent."""
        listed = (await self._host.agents(client.known.actor_id)).agents
        for agent in listed:
            if agent.agent_id == params.agent_id:
                return agent
        known = ", ".join(agent.agent_id for agent in listed) or "none"
        raise AgentNotFoundError(
            f"no agent {params.agent_id!r} is configured (configured: {known})"
        )

    async def check(self, client: ClientConnection, params: p.AgentParams) -> AgentCheck:
        """What can be told of an agent without starting it, each finding with its cure."""
        return await self._host.agent_desk.check(params.agent_id)

    async def authenticate(
        self, client: ClientConnection, params: AgentAuthenticateParams
    ) -> AgentLogin:
        """Logs in to an agent by one of its methods; sessions that waited for it go on.

        Of a method of type `terminal` it tells what to run there; that done, call it again with
        `completed`. It may take as long as a person takes.
        """
        return await self._host.logins.authenticate(params, client.origin)

    async def logout(self, client: ClientConnection, params: p.AgentParams) -> AgentLogin:
        """Logs out of an agent, where it offers that."""
        return await self._host.logins.logout(params.agent_id, client.origin)

    async def probe(self, client: ClientConnection, params: p.AgentProbeParams) -> AgentProbe:
        """Try an agent out in a scratch folder; minutes where its model is slow."""
        return await self._host.agent_desk.probe(params.agent_id, with_prompts=params.prompts)
