"""The area `host` of the socket: the daemon itself."""

from typing import Annotated

from msgspec import Raw

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire.base import carries
from acphost.wire.daemon import BackupDone, Pong, Reloaded, RetentionDone
from acphost.wire.host import Done


class HostMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("host/ping", p.NoParams, Access.ANY, self.ping),
            Method("host/stats", p.NoParams, Access.ANY, self.stats),
            Method("host/schema", p.NoParams, Access.ANY, self.schema),
            Method("host/reload", p.NoParams, Access.ADMIN, self.reload),
            Method("host/backup", p.BackupParams, Access.ADMIN, self.backup),
            Method("host/retention", p.RetentionParams, Access.ADMIN, self.retention),
            Method("host/shutdown", p.ShutdownParams, Access.ADMIN, self.shutdown),
        )

    async def ping(self, client: ClientConnection, params: p.NoParams) -> Pong:
        """Whether the daemon is alive, and since when."""
        return self._host.ping()

    async def stats(
        self, client: ClientConnection, params: p.NoParams
    ) -> Annotated[Raw, carries(dict[str, object])]:
        """Figures of the daemon: its clients, agents, journal and configuration."""
        return await self._host.stats()

    async def schema(
        self, client: ClientConnection, params: p.NoParams
    ) -> Annotated[Raw, carries(dict[str, object])]:
        """The JSON Schema of all that the socket takes, returns and says."""
        return await self._host.schema()

    async def reload(self, client: ClientConnection, params: p.NoParams) -> Reloaded:
        """Reads the configuration again."""
        return await self._host.reload()

    async def backup(self, client: ClientConnection, params: p.BackupParams) -> BackupDone:
        return await self._host.backup(params)

    async def retention(self, client: ClientConnection, params: p.RetentionParams) -> RetentionDone:
        return await self._host.retention(dry_run=params.dry_run)

    async def shutdown(self, client: ClientConnection, params: p.ShutdownParams) -> Done:
        self._host.stop(force=params.force)
        return Done()
