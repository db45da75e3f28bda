"""The composition root: lock, open store, reconcile, bind, admit; and back in reverse order."""

import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acphost.daemon.configuration import Change, Configuration
from acphost.daemon.host import DaemonHost
from acphost.daemon.reload import Reloader
from acphost.daemon.supervision import Supervision
from acphost.ids import epoch_ms
from acphost.journal.health import StorageHealth, StorageState, WalState
from acphost.journal.store import Store, open_store
from acphost.journal.writer import WriterOptions
from acphost.log import get_logger
from acphost.provider.pool import AgentPool
from acphost.server.connection import Attendance
from acphost.server.editors import ClientEditors
from acphost.server.listen import serve_clients
from acphost.session.census import Census
from acphost.session.house import House, HouseOptions
from acphost.session.ledger import ProcessLedger
from acphost.session.recovery import reconcile, sweep_processes
from acphost.session.scribe import note
from acphost.session.vault import Vault
from acphost.settings.model import Settings
from acphost.transport import cgroups, processes, unix
from acphost.transport.activation import adopt
from acphost.transport.lock import StateLock
from acphost.transport.notify import Notifier
from acphost.transport.paths import default_socket_path, default_state_dir
from acphost.transport.signals import heeded
from acphost.version import VERSION
from acphost.wire.event import Kind

log = get_logger()

#: Seconds between switches of threads: a commit that is done should not wait 5 ms for the loop.
SWITCH_INTERVAL = 0.0005
#: How long (seconds) the last events may take to the disk.
LAST_WRITES = 10.0
#: And how long when it is to be quick.
HASTY_WRITES = 1.0
HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: How long clients may take to receive the last events.
FAREWELL = 1.0
#: What the goodbye may take beside its known parts, before a service manager becomes impatient.
SPARE = 5.0


async def serve(configuration: Configuration) -> None:
    """Run the daemon until it is told to stop. Raises StartError.

    A mistake in a file of the configuration does not keep it from starting: what the file says is
    left out, and the mistake is shown in status, journal and log until it is mended.
    """
    _prepare_process()
    settings, environ = configuration.settings, configuration.environ
    state_dir = Path(settings.state_dir or default_state_dir(environ))
    socket_path = Path(settings.socket or default_socket_path(environ))
    lock = StateLock.acquire(state_dir)
    try:
        async with AsyncExitStack() as stack:
            listener = adopt(socket_path, environ)
            if listener is not None:
                stack.callback(listener.close)
            daemon = Daemon(configuration, state_dir, socket_path, listener, announce=lock.announce)
            await daemon.run(stack)
    finally:
        lock.release()


def _prepare_process() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL)
    processes.set_subreaper()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # launchd starts us with 256; each agent takes several.
        wanted = hard if hard != resource.RLIM_INFINITY else 65_536
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Daemon:
    """Everything that lives as long as the process."""

    def __init__(
        self,
        configuration: Configuration,
        state_dir: Path,
        socket_path: Path,
        inherited: unix.Listener | None = None,
        *,
        announce: Callable[[Path], None],
    ) -> None:
        """`inherited`: the socket, if a service manager has opened it already.

        `announce` is told the socket as soon as clients are served there.
        """
        self._announce = announce
        self._configuration = configuration
        self._environ = configuration.environ
        self._state_dir = state_dir
        self._socket_path = socket_path
        self._inherited = inherited
        notifier = Notifier.of(configuration.environ, os.getpid())
        self._supervision = Supervision(notifier, self._mood)
        self._store: Store | None = None
        self._pool: AgentPool | None = None
        self._stop = anyio.Event()
        self._hurry = anyio.Event()
        self._may_open = anyio.Event()
        self._is_bound = anyio.Event()
        self._is_wal_over = False
        self._had_terminal = sys.stderr.isatty()

    @property
    def _settings(self) -> Settings:
        """As they are now."""
        return self._configuration.settings

    def stop(self, *, force: bool) -> None:
        """Drain and end; asked twice, or with force, end at once."""
        if force or self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self, stack: AsyncExitStack) -> None:
        """Start, admit clients, and end when told to."""
        options = WriterOptions(
            on_health=self._on_health,
            on_wal=self._on_wal,
            wal_limit=lambda: self._settings.journal.wal_limit,
        )
        store = await stack.enter_async_context(
            open_store(self._state_dir / "journal.db", now=epoch_ms, options=options)
        )
        self._store = store
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.writer.run)
            reloader = Reloader(
                self._configuration, tell=self._tell, on_change=self._on_configuration
            )
            tasks.start_soon(self._heed_signals, reloader)
            ledger = ProcessLedger(store.writer, epoch_ms)
            tasks.start_soon(Census(store.feed, ledger).run)
            pool, house, attendance = self._make_house(store, ledger)
            host = DaemonHost(
                store, house, pool, self._configuration, attendance, reloader, stop=self.stop
            )
            tasks.start_soon(self._recover, store, host, pool, tasks)
            await self._may_open.wait()
            listener = self._inherited or unix.bind(self._socket_path)
            self._is_bound.set()
            self._announce(self._socket_path)
            try:
                tasks.start_soon(serve_clients, listener, host, attendance)
                tasks.start_soon(reloader.run)
                await self._supervision.ready()
                tasks.start_soon(self._supervision.run)
                await self._stop.wait()
            finally:
                listener.close()
            await self._supervision.leaving(self._longest_goodbye())
            await self._leave(store, house, pool)
            await self._write_out(store)
            await _say_farewell(attendance)
            tasks.cancel_scope.cancel()

    async def _recover(
        self, store: Store, host: DaemonHost, pool: AgentPool, tasks: TaskGroup
    ) -> None:
        """Put right what the last daemon left, and go to work.

        The socket opens behind it, unless the disk keeps it waiting: then it opens at once, and
        tells just that.
        """
        swept = await sweep_processes(store, epoch_ms)
        await to_thread.run_sync(cgroups.tidy)
        reconciled = await reconcile(store, epoch_ms, pool.traits_of, self._settings.queue)
        await host.agent_desk.remember()
        await tasks.start(pool.run)
        await tasks.start(host.house.run)
        host.is_ready = True
        self._may_open.set()
        await self._is_bound.wait()
        tasks.start_soon(host.upkeep.run)
        told = {"version": VERSION, "pid": os.getpid(),
                "processesEnded": swept, "sessionsReconciled": reconciled}  # fmt: skip
        self._tell(Kind.HOST_STARTED, told)
        log.info("ready", socket=str(self._socket_path), swept=swept, reconciled=reconciled)

    def _make_house(
        self, store: Store, ledger: ProcessLedger
    ) -> tuple[AgentPool, House, Attendance]:
        attendance = Attendance()
        pool = AgentPool(
            lambda: self._settings,
            self._environ,
            ledger=ledger,
            now=epoch_ms,
            room=store.writer.room,
            version=VERSION,
            tell=lambda told: self._tell(Kind.AGENT_STATE, told),
        )
        house = House(
            store,
            pool,
            HouseOptions(
                settings=lambda: self._settings,
                now=epoch_ms,
                is_attended=attendance.anybody,
                vault=Vault(self._state_dir / "secrets"),
                editors=ClientEditors(attendance),
            ),
        )
        self._pool = pool
        return pool, house, attendance

    async def _leave(self, store: Store, house: House, pool: AgentPool) -> None:
        """Let turns end within the deadline, then end everything else."""
        log.info("stopping", drain=self._settings.drain.timeout)
        store.writer.append(None, [note(Kind.HOST_STOPPING)], at=epoch_ms())
        house.close()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._give_up, tasks.cancel_scope)
            with anyio.move_on_after(self._settings.drain.timeout):
                await house.turns_over()
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._kill_on_hurry, pool)
            await house.leave()
            tasks.cancel_scope.cancel()

    def _longest_goodbye(self) -> float:
        """Seconds until the process is gone at the latest."""
        agents = self._settings.agents.values()
        graces = max((agent.eof_grace + agent.term_grace for agent in agents), default=0.0)
        drain = self._settings.drain.timeout
        return drain + graces + processes.KILL_GRACE + LAST_WRITES + FAREWELL + SPARE

    def _mood(self) -> str:
        """How it fares, for whoever asks the service manager."""
        if self._store is None or self._pool is None:
            return "starting"
        health = self._store.writer.health
        if health.state is not StorageState.OK:
            return f"the store cannot be written: {health.reason}"
        running = sum(1 for each in self._pool.processes if each.pid)
        problem = "; the configuration has mistakes" if self._configuration.problem else ""
        return f"serving {self._socket_path}, {running} agents{problem}"

    async def _write_out(self, store: Store) -> None:
        """All of it on disk, but a disk that is full is not waited for without end.

        What is not written then was not told to anybody either: the next start finds the state as
        clients saw it last.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._give_up, tasks.cancel_scope, HASTY_WRITES)
            with anyio.move_on_after(LAST_WRITES):
                await store.writer.drain()
            tasks.cancel_scope.cancel()
        if store.writer.uncommitted_bytes:
            log.error("left_unwritten", bytes=store.writer.uncommitted_bytes)

    async def _give_up(self, scope: anyio.CancelScope, grace: float = 0) -> None:
        await self._hurry.wait()
        await anyio.sleep(grace)
        scope.cancel()

    async def _kill_on_hurry(self, pool: AgentPool) -> None:
        await self._hurry.wait()
        pool.kill()

    async def _heed_signals(self, reloader: Reloader) -> None:
        # Once it ends, what is left is to close the store; cutting that short would help nobody.
        with heeded(HEEDED) as signals:
            async for number in signals:
                # A terminal that was closed means its foreground programs to end.
                has_lost_terminal = self._had_terminal and not sys.stderr.isatty()
                if number == signal.SIGHUP and not has_lost_terminal:
                    reloader.ask()
                else:
                    self.stop(force=False)
                if not has_lost_terminal:
                    log.info("signal", name=number.name)

    def _on_configuration(self, change: Change) -> None:
        """What runs goes on with what it was started with; the next start uses what is new."""
        if self._pool is not None:
            for agent_id in change.agents:
                self._pool.reset(agent_id)

    def _tell(self, kind: Kind, told: Mapping[str, object]) -> None:
        if self._store is not None:
            self._store.writer.append(None, [note(kind, told)], at=epoch_ms())

    def _on_health(self, health: StorageHealth) -> None:
        """Tell the log and, as soon as it can be kept, the journal."""
        is_well = health.state is StorageState.OK
        (log.info if is_well else log.error)("storage", state=health.state, reason=health.reason)
        if not is_well:
            self._may_open.set()
        kind = Kind.STORAGE_RECOVERED if is_well else Kind.STORAGE_DEGRADED
        self._tell(kind, {"state": health.state, "reason": health.reason})

    def _on_wal(self, wal: WalState) -> None:
        """Tell when the write-ahead log passes its limit, in either direction (FAULTS DB-1)."""
        if wal.is_over is self._is_wal_over:
            return
        self._is_wal_over = wal.is_over
        told: dict[str, object] = {
            "walBytes": wal.bytes,
            "limitBytes": self._settings.journal.wal_limit,
        }
        if not wal.is_over:
            log.info("wal_within_limit", **told)
            self._tell(Kind.STORAGE_RECOVERED, {"state": StorageState.OK, "reason": None, **told})
            return
        reason = "the write-ahead log is over its limit: a program that reads the store holds it"
        log.warning("wal_over_limit", **told)
        self._tell(Kind.STORAGE_WARNING, {"state": StorageState.OK, "reason": reason, **told})


async def _say_farewell(attendance: Attendance) -> None:
    """Clients get what is on its way to them before their connections close."""
    with anyio.move_on_after(FAREWELL):
        for connection in tuple(attendance.connections):
            await connection.outbox.flushed()
