"""The daemon as the socket needs it: the seam between what listens and what it is part of."""

from typing import Protocol

from msgspec import Raw

from acphost.ids import SubscriptionId
from acphost.server.connection import ClientConnection
from acphost.server.subscription import Subscription, View
from acphost.session.agents import AgentDesk
from acphost.session.commands import Commands
from acphost.session.house import House
from acphost.session.library import Library
from acphost.session.logbook import Logbook
from acphost.session.logins import Logins
from acphost.session.processes import ProcessBoard
from acphost.session.queries import Queries
from acphost.session.queue_commands import QueueCommands
from acphost.session.status import StatusBoard
from acphost.wire.agents import AgentList
from acphost.wire.daemon import BackupDone, HostInfo, Limits, Pong, Reloaded, RetentionDone
from acphost.wire.params import BackupParams
from acphost.wire.trouble import RuntimeHealth


class Host(Protocol):
    """The daemon itself, as far as clients may ask it."""

    house: House
    commands: Commands
    queue: QueueCommands
    queries: Queries
    board: StatusBoard
    processes: ProcessBoard
    agent_desk: AgentDesk
    logbook: Logbook
    logins: Logins
    library: Library
    info: HostInfo
    store_id: str

    @property
    def limits(self) -> Limits:
        """What each client is held to."""

    @property
    def admins(self) -> list[str]:
        """Actors with the role admin; empty: all."""

    def check_ready(self, method: str) -> None:
        """Raises while a method cannot be answered truthfully yet."""

    def ping(self) -> Pong:
        """Alive, since when."""

    async def stats(self) -> Raw:
        """Figures of the daemon."""

    async def health(self) -> RuntimeHealth:
        """What the daemon rests on."""

    async def schema(self) -> Raw:
        """What the socket speaks, as JSON Schema."""

    def stop(self, *, force: bool) -> None:
        """Drain and end, or end at once."""

    async def reload(self) -> Reloaded:
        """Read the configuration again."""

    async def retention(self, *, dry_run: bool) -> RetentionDone:
        """Delete what goes by the configured rules, or only tell."""

    async def backup(self, params: BackupParams) -> BackupDone:
        """Copy the store into a file."""

    async def agents(self, actor_id: str) -> AgentList:
        """What is configured."""

    def subscription(
        self, subscription_id: SubscriptionId, view: View, after: int, connection: ClientConnection
    ) -> Subscription:
        """A cursor over this daemon's journal."""

    @property
    def head(self) -> int:
        """The last committed offset."""
