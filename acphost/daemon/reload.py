"""Follows the configuration: what is saved well counts at once, what is not changes nothing."""

from collections.abc import Callable, Mapping

import anyio
import anyio.to_thread

from acphost.daemon.configuration import Change, Configuration, Snapshot, snapshot_of
from acphost.daemon.watch import ConfigWatch
from acphost.errors import ConfigError
from acphost.ids import epoch_ms
from acphost.log import get_logger
from acphost.settings.check import Mistake
from acphost.settings.load import load_settings
from acphost.settings.model import Settings
from acphost.settings.read import refuse
from acphost.wire.base import timestamp
from acphost.wire.daemon import Reloaded
from acphost.wire.event import Kind

log = get_logger()

#: A mistake must still be there after so many seconds before anybody is told: a file that is being
#: written has mistakes.
SECOND_LOOK = 0.3
#: A file that is gone or empty may be one that an editor is about to write; so long (seconds) its
#: last content counts.
GONE_GRACE = 5.0

Tell = Callable[[Kind, Mapping[str, object]], None]


class Reloader:
    """Keeps a Configuration up to its files."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        tell: Tell,
        on_change: Callable[[Change], None],
    ) -> None:
        self._configuration = configuration
        self._tell = tell
        self._on_change = on_change
        self._watch: ConfigWatch | None = None
        self._one_at_a_time = anyio.Lock()
        #: The files as they were when they were last judged, and when they were last good.
        self._judged: Snapshot | None = configuration.good
        self._good: Snapshot = configuration.good or {}
        self._gone_since: float | None = None
        self._is_asked = False

    @property
    def view(self) -> dict[str, object]:
        """As `host/stats` tells it."""
        way = self._watch.way if self._watch is not None else "not yet"
        return {**self._configuration.view(), "noticedBy": way}

    def ask(self) -> None:
        """Reload now, as a person wishes."""
        self._is_asked = True
        if self._watch is not None:
            self._watch.nudge()

    async def run(self) -> None:
        """Follow the files until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._watch = watch = ConfigWatch(self._configuration.place, tasks)
            try:
                while True:
                    # Before the files are read, so that no change falls in between.
                    await watch.arm()
                    is_asked, self._is_asked = self._is_asked, False
                    await self.reload(is_asked=is_asked)
                    await watch.changed(self._grace_left())
            finally:
                watch.close()

    # -- one look ---------------------------------------------------------------------------------

    async def reload(self, *, is_asked: bool) -> Reloaded:
        """Take the files as they are now; unasked, only a change that is complete."""
        async with self._one_at_a_time:
            while True:
                snapshot = await anyio.to_thread.run_sync(snapshot_of, self._configuration.place)
                if snapshot == self._judged and not is_asked and self._gone_since is None:
                    return self._outcome(None)
                if not is_asked and self._is_waiting_for(snapshot):
                    return self._outcome(None)
                try:
                    settings = await anyio.to_thread.run_sync(self._load, snapshot, is_asked)
                except ConfigError as exc:
                    if not is_asked and not await self._stays(snapshot):
                        continue
                    self._reject(exc, snapshot)
                    return self._outcome(None)
                if await self._is_still(snapshot):
                    return self._outcome(self._accept(settings, snapshot, is_asked=is_asked))

    def _load(self, snapshot: Snapshot, is_asked: bool) -> Settings:
        if not is_asked:
            refuse(
                Mistake(file, (), "is empty; what it said before still counts")
                for file in self._emptied(snapshot)
            )
        configuration = self._configuration
        return load_settings(flags=configuration.flags, environ=configuration.environ)

    async def _stays(self, snapshot: Snapshot) -> bool:
        """Whether a mistake is more than a moment of a file that is being written."""
        await anyio.sleep(SECOND_LOOK)
        return await self._is_still(snapshot)

    async def _is_still(self, snapshot: Snapshot) -> bool:
        return snapshot == await anyio.to_thread.run_sync(snapshot_of, self._configuration.place)

    # -- files that are gone ----------------------------------------------------------------------

    def _emptied(self, snapshot: Snapshot) -> list[str]:
        return [f for f, said in self._good.items() if said and snapshot.get(f) == b""]

    def _is_waiting_for(self, snapshot: Snapshot) -> bool:
        """Whether a file is gone or empty, and not yet for so long that it is meant."""
        gone = [f for f in self._good if f not in snapshot] + self._emptied(snapshot)
        now = anyio.current_time()
        if not gone:
            self._gone_since = None
            return False
        if self._gone_since is None:
            self._gone_since = now
            self._configuration.problem = (
                f"{', '.join(gone)}: gone or empty; what it said counts for {GONE_GRACE:g} s more"
            )
        if now - self._gone_since < GONE_GRACE:
            return True
        self._gone_since = None
        return False

    def _grace_left(self) -> float | None:
        if self._gone_since is None:
            return None
        return max(0.0, self._gone_since + GONE_GRACE - anyio.current_time())

    # -- what comes of it -------------------------------------------------------------------------

    def _reject(self, error: ConfigError, snapshot: Snapshot) -> None:
        configuration, is_news = self._configuration, snapshot != self._judged
        self._judged = snapshot
        configuration.reject(error)
        if is_news:
            log.error("config_rejected", problem=configuration.problem)
            told = {"problem": configuration.problem, "mistakes": configuration.mistakes}
            self._tell(Kind.CONFIG_REJECTED, told)

    def _accept(self, settings: Settings, snapshot: Snapshot, *, is_asked: bool) -> Change:
        configuration = self._configuration
        is_cured = self._judged is not None and bool(configuration.mistakes)
        self._judged = self._good = snapshot
        self._gone_since = None
        change = configuration.accept(settings)
        if is_asked:
            # Somebody has perhaps just installed what was missing: every agent gets a new chance.
            self._on_change(change._replace(agents=sorted({*change.agents, *settings.agents})))
        elif change.keys:
            self._on_change(change)
        if change.keys or is_cured or is_asked:
            configuration.loaded_at = epoch_ms()
        if change.keys or is_cured:
            log.info("config_reloaded", changed=change.keys)
            told = {
                "files": settings.read_from,
                "changed": change.keys,
                "agents": change.agents,
                "needsRestart": change.needs_restart,
            }
            self._tell(Kind.CONFIG_RELOADED, told)
        return change

    def _outcome(self, change: Change | None) -> Reloaded:
        configuration = self._configuration
        return Reloaded(
            changed=change.keys if change else [],
            agents=change.agents if change else [],
            needs_restart=change.needs_restart if change else [],
            files=configuration.settings.read_from,
            loaded_at=timestamp(configuration.loaded_at),
            problem=configuration.problem,
            mistakes=configuration.mistakes,
        )
