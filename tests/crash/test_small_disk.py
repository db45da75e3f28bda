"""A file system that is really full, in a namespace of its own."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import anyio
import pytest

from acphost.archive.fsck import check_store
from acphost.errors import StorageFullError
from tests.crash.points import IS_LONG
from tests.process.test_disk_full import SCRIPT, is_full, storage
from tests.support.daemon import Daemon, is_alive, marked_processes, running_daemon
from tests.support.journal_file import JournalFile
from tests.support.patience import PATIENCE

SIZE, BALLAST = 28 << 20, 24 << 20


def missing() -> str:
    """What keeps these tests from being run here; empty if nothing does."""
    if not IS_LONG:
        return "they are in `make crash`"
    if shutil.which("unshare") is None:
        return "there is no unshare"
    tried = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    return tried.stderr.strip() and f"no namespaces: {tried.stderr.strip()}"


def on_a_small_disk(daemon: Daemon) -> None:
    """Have it start with its state directory on a file system that has hardly any room."""
    daemon.state.mkdir(mode=0o700)
    steps = (
        f'mount -t tmpfs -o size={SIZE},mode=700 tmpfs "$0"'
        f' && head -c {BALLAST} /dev/zero > "$0/ballast" && exec "$@"'
    )
    daemon.wrapper = ["unshare", "-rm", "sh", "-c", steps, str(daemon.state)]


def copied(daemon: Daemon, state: Path) -> JournalFile:
    """The store as it is now: SQLite itself does not find its way into another namespace.

    Nothing is written while it is copied.
    """
    folder = Path(tempfile.mkdtemp(dir=daemon.folder))
    for name in ("journal.db", "journal.db-wal"):
        shutil.copy(state / name, folder / name)
    return JournalFile(folder / "journal.db")


@pytest.mark.skipif(bool(missing()), reason=f"a small file system needs a namespace: {missing()}")
async def test_a_file_system_that_is_full_is_waited_for() -> None:
    """No room (ENOSPC) in the middle of a turn: told, sends refused; with room it goes on."""
    async with running_daemon(SCRIPT, prepare=on_a_small_disk, check=False) as daemon:
        state = Path(f"/proc/{daemon.pid}/root{daemon.state}")
        session = await daemon.session()
        run = await daemon.send(session, "much")
        await is_full(daemon)

        with pytest.raises(StorageFullError):
            await daemon.send(session, "refused")
        (agent,) = daemon.launches()
        assert is_alive(agent)
        told = {int(event.offset) for event in daemon.seen}
        assert told <= {row.offset for row in copied(daemon, state).rows()}

        (state / "ballast").unlink()
        assert (await daemon.wait(run)).status == "completed"
        assert await storage(daemon) == "ok"
        assert len(await daemon.events(run, "message.delta")) == 4_000
        assert (await daemon.ask(session, "after")).status == "completed"
        with anyio.fail_after(PATIENCE):
            await daemon.has_event(session, "run.completed")
        journal = copied(daemon, state)
        assert check_store(journal.path, here=False).is_clean
        stored = {row.offset: row.payload for row in journal.rows()}
        assert all(stored[int(event.offset)] == bytes(event.payload) for event in daemon.seen)
        launches = {row["launch_id"] for row in journal.query("SELECT launch_id FROM processes")}
        await daemon.stop()
        assert marked_processes(launches) == []
