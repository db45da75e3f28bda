"""Tells when the configuration may have changed: by the kernel, by watchfiles, or by looking.

Whatever tells, somebody also looks now and then: network file systems tell nothing, and a watch
can be lost.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from watchfiles import awatch

from acphost.log import get_logger
from acphost.settings.trail import watched_folders
from acphost.transport.inotify import Folders, Inotify

log = get_logger()

#: Milliseconds between looks of watchfiles' thread, which wakes for each: the price where the
#: kernel's own queue cannot be had.
WATCHFILES_STEP = 450
#: Seconds between looks of ours beside a watch, and where there is none.
NET, POLL = 30.0, 2.0
#: A change is complete when nothing more was told for so long, but is not waited for longer.
QUIET, IMPATIENT = 0.1, 0.5


class Notifier(Protocol):
    """What tells of changes in directories."""

    def watch(self, folders: Folders) -> None:
        """Watch these and no others. Raises OSError."""

    async def changed(self) -> None:
        """Return once something has changed."""

    def close(self) -> None:
        """Stop."""


class Watchfiles:
    """watchfiles as a notifier, for systems without inotify."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._folders: frozenset[Path] = frozenset()
        self._stop = anyio.Event()
        self._told = anyio.Event()

    def watch(self, folders: Folders) -> None:
        """Watch these directories and no others."""
        wanted = frozenset(folders)
        if wanted == self._folders:
            return
        self.close()
        self._folders, self._stop = wanted, anyio.Event()
        self._tasks.start_soon(self._follow, wanted, self._stop)

    async def _follow(self, folders: frozenset[Path], stop: anyio.Event) -> None:
        try:
            async for _ in awatch(
                *folders, watch_filter=None, step=WATCHFILES_STEP, debounce=WATCHFILES_STEP,
                rust_timeout=0, stop_event=stop, recursive=False,
            ):  # fmt: skip
                self._told.set()
        except (OSError, RuntimeError) as exc:
            # A directory went away, or the system has no watches left: the looks of ours remain.
            log.warning("watch_lost", reason=str(exc))
            if stop is self._stop:
                self._folders = frozenset()

    async def changed(self) -> None:
        """Return once something has changed."""
        await self._told.wait()
        self._told = anyio.Event()

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()


class ConfigWatch:
    """Tells when something about the configuration at `place` may have changed."""

    def __init__(self, place: Path, tasks: TaskGroup) -> None:
        self._place = place
        self._tasks = tasks
        self._notifier: Notifier | None = None
        self._nudge = anyio.Event()
        self._trouble: str | None = None

    @property
    def way(self) -> str:
        """How changes are noticed, for people."""
        if self._notifier is None:
            return f"a look every {POLL:g} s ({self._trouble})"
        return type(self._notifier).__name__.lower()

    def nudge(self) -> None:
        """Have `changed` return."""
        self._nudge.set()

    async def arm(self) -> None:
        """Watch what now leads to the configuration; what changes from here on is told."""
        folders = await anyio.to_thread.run_sync(watched_folders, self._place)
        try:
            if self._notifier is None:
                is_linux = sys.platform == "linux"
                self._notifier = Inotify() if is_linux else Watchfiles(self._tasks)
            self._notifier.watch(folders)
            self._trouble = None
        except OSError as exc:
            self.close()
            if self._trouble is None:
                log.warning("config_not_watched", reason=exc.strerror, instead=f"every {POLL:g} s")
            self._trouble = exc.strerror or str(exc)

    async def changed(self, due: float | None = None) -> None:
        """Return after a change that is complete, a nudge, `due` seconds, or when it is time."""
        wait = POLL if self._notifier is None else NET
        with anyio.move_on_after(wait if due is None else min(due, wait)):
            await self._told()
            with anyio.move_on_after(IMPATIENT):
                while await self._is_told_within(QUIET):
                    pass

    async def _is_told_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._told()
            return True
        return False

    async def _told(self) -> None:
        async with anyio.create_task_group() as tasks:

            async def first(wait: Callable[[], Awaitable[None]]) -> None:
                await wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(first, self._nudge.wait)
            if self._notifier is not None:
                tasks.start_soon(first, self._notifier.changed)
        if self._nudge.is_set():
            self._nudge = anyio.Event()

    def close(self) -> None:
        """Watch nothing any more."""
        notifier, self._notifier = self._notifier, None
        if notifier is not None:
            notifier.close()
