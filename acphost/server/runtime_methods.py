"""The part of the area `runtime` that looks for trouble."""

from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.wire.params import NoParams
from acphost.wire.trouble import RuntimeHealth, RuntimeLogs, RuntimeLogsParams


class RuntimeMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def logs(self, client: ClientConnection, params: RuntimeLogsParams) -> RuntimeLogs:
        """What went wrong lately: complaints of agents, failed tools, refused permissions."""
        return await self._host.logbook.latest(params)

    async def health(self, client: ClientConnection, params: NoParams) -> RuntimeHealth:
        """What the daemon rests on: whether agents can be started and events be kept."""
        return await self._host.health()
