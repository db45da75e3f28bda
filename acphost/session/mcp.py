"""The MCP servers that an agent is given: those of the configuration and those of the session.

The same list goes with every way to open a session, in the shape that strict agents insist on
(guide section 3.4). A server that the agent cannot use, or that cannot be started, is left out and
named: the session does not wait for it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw

from acphost.errors import AgentUnavailableError
from acphost.journal.rows import SessionRow
from acphost.session.requests import has_secrets, masked_servers
from acphost.session.scribe import Scribe, note
from acphost.session.vault import Vault
from acphost.settings.model import McpSettings
from acphost.transport.program import find_program
from acphost.wire.acp import AgentCapabilities
from acphost.wire.event import Kind, Origin


class Offer(NamedTuple):
    """One server: what is passed, or why it is not."""

    name: str
    transport: str
    wire: Raw | None
    reason: str | None = None


class _Known(msgspec.Struct):
    name: str
    type: str | None = None


class McpDesk:
    """Puts together what one session's agent is given, and tells what became of each server."""

    def __init__(
        self,
        row: SessionRow,
        scribe: Scribe,
        vault: Vault,
        *,
        configured: Callable[[], Mapping[str, McpSettings]],
        environment: Callable[[], dict[str, str]],
        takes_any: bool,
    ) -> None:
        """`takes_any`: not of those agents that have no tools at all."""
        self._row = row
        self._scribe = scribe
        self._vault = vault
        self._configured = configured
        self._environment = environment
        self._takes_any = takes_any
        self.offers: list[Offer] = []
        #: The agent was given others than the session has now.
        self.is_changed = False
        self._turn = anyio.Lock()

    @property
    def names(self) -> list[str]:
        """The servers that the agent was given last."""
        return [offer.name for offer in self.offers if offer.wire is not None]

    @property
    def skipped(self) -> list[str]:
        """Those that it was not given, each with the reason."""
        return [f"{each.name}: {each.reason}" for each in self.offers if each.wire is None]

    def suspected(self, exc: AgentUnavailableError) -> AgentUnavailableError:
        """An agent that did not open a session may have waited for one of its servers."""
        if not self.names:
            return exc
        names = ", ".join(self.names)
        return AgentUnavailableError(
            f"{exc} (it was given the MCP servers {names})", **{**exc.details, "mcp": self.names}
        )

    async def replace(self, servers: list[Raw], origin: Origin) -> None:
        """Other servers of the session's own; they go with the next way to open it."""
        async with self._turn:
            kept = await self._vault.read(self._row.session_id)
            if _said(kept or self._row.mcp_servers) == _said(msgspec.json.encode(servers)):
                return
            secret = has_secrets(servers)
            if secret:
                await self._vault.keep(self._row.session_id, msgspec.json.encode(servers))
            self._row.mcp_servers = masked_servers(servers)
            self.is_changed = True
            names = [msgspec.json.decode(raw, type=_Known).name for raw in servers]
            told = {"changed": {"mcpServers": names}, "pending": True}
            ticket = self._scribe.write([note(Kind.SESSION_CONFIG_UPDATED, told, origin=origin)])
            if kept is not None and not secret:
                # Not before: as long as the row has only masks of them, they are the servers.
                await self._scribe.durable(ticket)
                await self._vault.forget(self._row.session_id)

    async def servers(self, capabilities: AgentCapabilities) -> list[Raw]:
        """What is passed to an agent that says it can do this; news of it goes to the journal."""
        self.is_changed = False
        if not self._takes_any:
            return []
        kept = await self._vault.read(self._row.session_id)
        given = msgspec.json.decode(kept or self._row.mcp_servers, type=list[Raw])
        own = [_of_session(raw, capabilities) for raw in given]
        named = {offer.name for offer in own}
        offers = [
            await self._of_config(name, server, capabilities)
            for name, server in self._configured().items()
            if name not in named and server.is_for(self._row.agent_id)
        ]
        self._tell([*offers, *own])
        return [offer.wire for offer in self.offers if offer.wire is not None]

    async def _of_config(
        self, name: str, server: McpSettings, capabilities: AgentCapabilities
    ) -> Offer:
        if server.url is not None:
            pairs = _pairs(server.headers)
            wire = {"type": server.transport, "name": name, "url": server.url, "headers": pairs}
            return _gated(name, server.transport, wire, capabilities)
        env = self._environment() | server.env
        try:
            command = await anyio.to_thread.run_sync(
                find_program, server.command or "", self._row.cwd, env
            )
        except AgentUnavailableError as exc:
            return Offer(name, "stdio", None, str(exc))
        wire = {"name": name, "command": command, "args": server.args, "env": _pairs(server.env)}
        return Offer(name, "stdio", Raw(msgspec.json.encode(wire)))

    def _tell(self, offers: list[Offer]) -> None:
        """Each server once, and again when something about it is new; never a value of its env."""
        known = {(each.name, each.transport, each.reason) for each in self.offers}
        self.offers = offers
        drafts = [
            note(
                Kind.MCP_STATUS,
                {
                    "server": offer.name,
                    "state": "configured" if offer.wire is not None else "skipped",
                    "transport": offer.transport,
                    "toolCount": None,
                    "error": offer.reason,
                },
            )
            for offer in offers
            if (offer.name, offer.transport, offer.reason) not in known
        ]
        if drafts:
            self._scribe.write(drafts)


def _said(servers: bytes) -> object:
    return msgspec.json.decode(servers)


def _of_session(raw: Raw, capabilities: AgentCapabilities) -> Offer:
    """One of those that `session/create` named; its shape was checked then."""
    known = msgspec.json.decode(raw, type=_Known)
    wire = msgspec.json.decode(raw, type=dict[str, object])
    if known.type in (None, "stdio"):
        # Older agents know no such type: a server without one is one that is started.
        wire.pop("type", None)
        filled = {"args": [], "env": [], **wire}
        return Offer(known.name, "stdio", Raw(msgspec.json.encode(filled)))
    if known.type in ("http", "sse"):
        wire = {"headers": [], **wire}
    return _gated(known.name, known.type or "", wire, capabilities)


def _gated(
    name: str, transport: str, wire: Mapping[str, object], capabilities: AgentCapabilities
) -> Offer:
    """Only what the agent says it takes; a strict one would refuse the whole session."""
    if capabilities.mcp_capabilities.get(transport):
        return Offer(name, transport, Raw(msgspec.json.encode(wire)))
    return Offer(name, transport, None, f"the agent takes no MCP servers over {transport}")


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
