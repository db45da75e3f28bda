"""The daemon as clients see it: identity, limits, figures, and the way to stop it."""

import os
import resource
from collections.abc import Callable
from typing import Protocol

import msgspec
from anyio import to_thread
from msgspec import Raw

from acphost.daemon.backups import Backups, secrets_folder
from acphost.daemon.configuration import Configuration
from acphost.daemon.log_file import log_place
from acphost.daemon.reload import Reloader
from acphost.daemon.upkeep import Upkeep
from acphost.errors import OverloadedError
from acphost.ids import SubscriptionId, epoch_ms
from acphost.journal.store import Store
from acphost.provider.pool import AgentPool
from acphost.server.connection import (
    RETRY_AFTER_MS,
    Attendance,
    ClientConnection,
    ConnectionLimits,
)
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
from acphost.settings.model import Settings
from acphost.transport import processes
from acphost.version import VERSION
from acphost.wire.agents import AgentList
from acphost.wire.base import optional_timestamp, timestamp
from acphost.wire.daemon import BackupDone, HostInfo, Limits, Pong, Reloaded, RetentionDone
from acphost.wire.params import BackupParams
from acphost.wire.trouble import RuntimeHealth, StoreHealth

#: Areas whose answers are true at any time: events are history, whatever their runs are now.
_ALWAYS = frozenset({"initialize", "host", "agent", "events"})


class Stop(Protocol):
    """How the daemon is told to end."""

    def __call__(self, *, force: bool) -> None:
        """Drain and end; with force at once."""


class DaemonHost:
    """What `server.methods` asks of the daemon."""

    def __init__(
        self,
        store: Store,
        house: House,
        pool: AgentPool,
        configuration: Configuration,
        attendance: Attendance,
        reloader: Reloader,
        *,
        stop: Stop,
    ) -> None:
        self._store = store
        self._pool = pool
        self._configuration = configuration
        self._reloader = reloader
        self._attendance = attendance
        self._started = epoch_ms()
        self._end = stop
        settings_now: Callable[[], Settings] = lambda: self._settings  # noqa: E731  read late
        #: What the last daemon left is put right.
        self.is_ready = False
        self.house = house
        self.commands = Commands(store, pool, house, vault=house.vault, now=epoch_ms)
        self.queries = Queries(store, house)
        self.queue = QueueCommands(store, house, self.queries)
        self.upkeep = Upkeep(store, house, settings_now)
        self.board = StatusBoard(house, self.queries, pool, settings_now, store.writer)
        self.processes = ProcessBoard(store.reader, pool, house, epoch_ms)
        self.logbook = Logbook(store.reader, self.queries)
        self.agent_desk = AgentDesk(
            pool, store.reader, store.writer, lambda: configuration.environ, epoch_ms
        )
        self.library = Library(store, pool, house, self.commands, epoch_ms)
        self.logins = Logins(pool, house, store.writer, epoch_ms)
        self.info = HostInfo(name="acphost", version=VERSION, pid=os.getpid())
        self.store_id: str = store.store_id
        self._schema: Raw | None = None
        self._backups = Backups(store.path, secrets_folder(store.path))

    @property
    def _settings(self) -> Settings:
        """As they are now."""
        return self._configuration.settings

    @property
    def limits(self) -> Limits:
        """What a client that connects now is told."""
        limits = self._settings.limits
        return Limits(max_line_bytes=limits.client_line_bytes, max_in_flight=limits.max_in_flight)

    @property
    def connection_limits(self) -> ConnectionLimits:
        """What each client is held to."""
        limits = self._settings.limits
        return ConnectionLimits(
            max_line=limits.client_line_bytes,
            max_in_flight=limits.max_in_flight,
            handshake_timeout=limits.handshake_timeout,
        )

    @property
    def max_connections(self) -> int:
        """How many clients may be connected at a time; agents and the store need files too."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return min(self._settings.limits.max_connections, max(8, files // 2))

    @property
    def admins(self) -> list[str]:
        """Actors with the role admin."""
        return self._settings.admins

    @property
    def head(self) -> int:
        """The last committed offset."""
        return self._store.writer.head

    def check_ready(self, method: str) -> None:
        """Raises until what a crash left is put right: before, the store is not to be believed."""
        if self.is_ready or method.partition("/")[0] in _ALWAYS:
            return
        health = self._store.writer.health
        if health.since is not None:
            raise health.error()
        raise OverloadedError("the daemon is starting", retryAfterMs=RETRY_AFTER_MS)

    def ping(self) -> Pong:
        """Alive, and since when."""
        now = epoch_ms()
        return Pong(now=timestamp(now), uptime_ms=now - self._started)

    async def schema(self) -> Raw:
        """What the socket speaks; made when somebody asks, beside the loop, and kept."""
        if self._schema is None:
            from acphost.schema.document import encoded  # noqa: PLC0415  few daemons are ever asked

            self._schema = Raw(await to_thread.run_sync(encoded))
        return self._schema

    def stop(self, *, force: bool) -> None:
        """Drain and end."""
        self._end(force=force)

    async def agents(self, actor_id: str) -> AgentList:
        """What is configured, and whether it can be started."""
        agents = await self.board.agents(self._configuration.environ)
        default = self._settings.default_agent
        return AgentList(actor_id=actor_id, agents=agents, default_agent=default)

    async def retention(self, *, dry_run: bool) -> RetentionDone:
        """Delete what goes by the configured rules, or only tell."""
        return await self.upkeep.retention(dry_run=dry_run)

    async def reload(self) -> Reloaded:
        """Read the configuration again."""
        return await self._reloader.reload(is_asked=True)

    async def backup(self, params: BackupParams) -> BackupDone:
        """Copy the store into a file, while the work goes on."""
        return await self._backups.make(params)

    async def health(self) -> RuntimeHealth:
        """What the daemon rests on: agents and store."""
        health = self._store.writer.health
        return RuntimeHealth(
            agents=[await self.agent_desk.check(agent_id) for agent_id in self._settings.agents],
            store=StoreHealth(
                state=health.state, reason=health.reason, since=optional_timestamp(health.since)
            ),
        )

    async def stats(self) -> Raw:
        """Figures for people and monitors; no promise about members but those of `storage`."""
        writer = self._store.writer
        health, wal = writer.health, writer.wal
        figures = {
            "pid": os.getpid(),
            "version": VERSION,
            "startedAt": timestamp(self._started),
            "connections": len(self._attendance.connections),
            "descriptors": {
                "open": len(os.listdir("/dev/fd")),  # noqa: PTH208  names are enough
                "limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            },
            "containment": processes.containment(),
            "agents": [
                {
                    "agentId": process.plan.agent_id,
                    "pid": process.pid,
                    "launchId": process.plan.launch_id,
                    "sessions": len(process.sinks),
                    "anomalies": process.connection.anomalies,
                    "unreadBytes": process.connection.unread_bytes,
                }
                for process in self._pool.processes
                if process.pid
            ],
            "journal": {
                "storeId": self._store.store_id,
                "headOffset": writer.head,
                "uncommittedBytes": writer.uncommitted_bytes,
                "agentsWait": not writer.has_room,
                "walBytes": wal.bytes,
                "walLimitBytes": self._settings.journal.wal_limit,
                "walOverLimit": wal.is_over,
                "walStarved": wal.is_starved,
                "checkpointedAt": optional_timestamp(wal.checkpointed_at),
                **await self.upkeep.figures(),
            },
            "config": self._reloader.view,
            "log": log_place(self._configuration.flags, self._configuration.environ),
            "storage": {
                "state": health.state,
                "reason": health.reason,
                "since": optional_timestamp(health.since),
            },
        }
        return Raw(msgspec.json.encode(figures))

    def subscription(
        self, subscription_id: SubscriptionId, view: View, after: int, connection: ClientConnection
    ) -> Subscription:
        """A cursor over this daemon's journal."""
        return Subscription(
            subscription_id,
            view,
            after=after,
            feed=self._store.feed,
            reader=self._store.reader,
            outbox=connection.outbox,
            head=lambda: self._store.writer.head,
        )
