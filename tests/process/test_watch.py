"""How a change of the configuration is noticed: by the kernel, by watchfiles, or by looking."""

import errno
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acphost.daemon import watch
from acphost.daemon.watch import ConfigWatch, Watchfiles
from acphost.transport.inotify import Folders, Inotify
from tests.support.patience import PATIENCE

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="inotify is a part of Linux")


@asynccontextmanager
async def watching(place: Path) -> AsyncGenerator[ConfigWatch]:
    """An armed watch of a folder."""
    async with anyio.create_task_group() as tasks:
        told = ConfigWatch(place, tasks)
        await told.arm()
        with anyio.fail_after(PATIENCE):
            yield told
        told.close()
        tasks.cancel_scope.cancel()


@linux_only
async def test_only_the_wanted_names_wake() -> None:
    """A journal or a socket in the same folder is nobody's business."""
    async with anyio.TemporaryDirectory() as name:
        folder, inotify = Path(name), Inotify()
        inotify.watch({folder: frozenset({"config.toml"})})
        (folder / "journal.db").write_text("x")
        (folder / "config.toml").write_text("x")
        with anyio.fail_after(PATIENCE):
            await inotify.changed()
        (folder / "journal.db").write_text("y")
        with anyio.move_on_after(0.1) as scope:
            await inotify.changed()
        assert scope.cancelled_caught
        inotify.close()


@linux_only
async def test_a_folder_that_is_gone_cannot_be_watched_and_says_so_when_it_goes() -> None:
    async with anyio.TemporaryDirectory() as name:
        folder, inotify = Path(name) / "sub", Inotify()
        with pytest.raises(FileNotFoundError):
            inotify.watch({folder: None})
        folder.mkdir()
        inotify.watch({folder: frozenset({"x"})})
        folder.rmdir()
        with anyio.fail_after(PATIENCE):
            await inotify.changed()
        inotify.watch({Path(name): None})
        inotify.close()


async def test_watchfiles_tells_as_well() -> None:
    """What is used where there is no inotify."""
    async with anyio.TemporaryDirectory() as name, anyio.create_task_group() as tasks:
        folder, other = Path(name) / "one", Path(name) / "two"
        folder.mkdir()
        other.mkdir()
        notifier = Watchfiles(tasks)
        for watched in (folder, other):
            notifier.watch({watched: None})
            number = 0
            with anyio.fail_after(PATIENCE):
                told = False
                while not told:
                    # Its thread may not be there yet when the first file is.
                    (watched / str(number)).write_text("x")
                    number += 1
                    with anyio.move_on_after(1.0):
                        await notifier.changed()
                        told = True
        notifier.close()


async def test_without_watches_it_looks_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's inotify instances are used up: told in the status, and taken again when free."""

    class UsedUp:
        def __init__(self, *_: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        def watch(self, folders: Folders) -> None:
            """Never reached."""

    monkeypatch.setattr(watch, "POLL", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(watch, "Inotify", UsedUp)
        patch.setattr(watch, "Watchfiles", UsedUp)
        async with anyio.TemporaryDirectory() as name, watching(Path(name)) as told:
            assert "Too many open files" in told.way
            await told.changed()
            patch.undo()
            await told.arm()
            assert "Too many open files" not in told.way


async def test_a_nudge_and_a_date_end_the_wait() -> None:
    async with anyio.TemporaryDirectory() as name, watching(Path(name)) as told:
        told.nudge()
        await told.changed()
        await told.changed(0.01)
