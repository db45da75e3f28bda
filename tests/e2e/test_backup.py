"""Backup, check and restore, as a person does it: with a daemon at work, and without one."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from acphost.errors import InvalidParamsError
from tests.support.daemon import Daemon, is_alive, running_daemon
from tests.support.terminal import Finished, acphost

SCRIPT = """
ON prompt "flood"
    MARK ${DIR}/begun
    FLOOD 6000
ON prompt "stay"
    MARK ${DIR}/staying
    STAY
ON prompt
    MSG "an answer"
"""
SECRETS = [{"name": "m", "command": "/bin/true", "args": [],
            "env": [{"name": "TOKEN", "value": "s3cret-s3cret"}]}]  # fmt: skip


async def say(daemon: Daemon, *words: str) -> Finished:
    """Run a command for this daemon."""
    where = ("--state-dir", str(daemon.state), "--config", str(daemon.folder))
    return await acphost(daemon.socket, *words, *where, cwd=daemon.work)


async def test_a_backup_while_an_agent_streams() -> None:
    """It is whole and consistent, for our eyes only, and neither stops nor loses the stream."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session(mcpServers=SECRETS)
        run = await daemon.send(session, "flood")
        await daemon.marked("begun")
        target = daemon.folder / "backup.db"
        done = await say(daemon, "backup", str(target))
        checked = await say(daemon, "fsck", str(target), "--json")
        beside = await say(daemon, "fsck", "--json")
        ended = await daemon.wait(run)

        assert (done.code, ended.status) == (0, "completed"), done.err
        assert str(target) in done.out
        assert target.stat().st_mode & 0o777 == 0o600
        assert b"s3cret" not in target.read_bytes()
        report = json.loads(checked.out)
        assert (checked.code, report["findings"]) == (0, [])
        assert report["storeId"] == daemon.client.store_id
        report = json.loads(beside.out)
        assert (beside.code, report["findings"]) == (0, [])
        assert report["daemonPid"] == daemon.pid

        # The daemon takes an absolute path; what is there stays unless told otherwise.
        with pytest.raises(InvalidParamsError, match="absolute"):
            await daemon.client.backup("backup.db")
        refused = await say(daemon, "backup", str(target))
        assert (refused.code, "exists" in refused.err) == (1, True)
        again = await say(daemon, "backup", str(target), "--force", "--with-secrets", "--json")
        assert json.loads(again.out)["secrets"] == 1
        assert b"s3cret" in target.read_bytes()


async def test_a_restore_brings_back_what_was_there() -> None:
    """No daemon may run; the store that it replaces is kept; what waited waits, and is held."""
    async with running_daemon(SCRIPT, check=False) as daemon:
        session = await daemon.session()
        first = await daemon.ask(session, "first")
        running = await daemon.send(session, "stay")
        waiting = await daemon.send(session, "waits")
        await daemon.marked("staying")
        target = daemon.folder / "backup.db"
        assert (await say(daemon, "backup", str(target))).code == 0
        await daemon.cancel(running)
        assert (await daemon.wait(waiting)).status == "completed"
        later = await daemon.ask(session, "later")
        old_store = daemon.client.store_id

        refused = await say(daemon, "restore", str(target))
        assert (refused.code, str(daemon.pid) in refused.err) == (3, True)
        assert (await daemon.run(later)).status == "completed"

        await daemon.stop()
        restored = await say(daemon, "restore", str(target))
        assert restored.code == 0, restored.err
        (aside,) = daemon.state.glob("journal-*.db")
        assert str(aside) in restored.out
        assert (await say(daemon, "fsck", str(aside))).code == 0
        # Elsewhere, since the client that followed the old store is refused by this one.
        daemon.socket = daemon.folder / "s2"
        daemon.flags += ["--socket", str(daemon.socket)]
        await daemon.start(is_followed=False)
        async with daemon.connect() as client:
            assert client.store_id != old_store
            assert (await client.run(first.host_run_id)).status == "completed"
            # It had been running when the backup was made; nobody there knows how it ended.
            assert (await client.run(running.host_run_id)).status == "interrupted"
            (queued,) = (await client.queue_list(session)).items
            assert (queued.run_id, queued.held_reason) == (waiting.host_run_id, "host_restarted")
            runs = (await client.list_runs()).items
            assert later.host_run_id not in {run.host_run_id for run in runs}
        checked = await say(daemon, "fsck")
        assert (checked.code, "clean" in checked.out) == (0, True), checked.out
        assert daemon.prompts() == ["first", "stay", "waits", "later"]


async def test_a_backup_of_a_daemon_that_was_killed() -> None:
    """Read from the file; what the dead daemon left open is told, and closed at the next start."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.send(session, "stay")
        await daemon.marked("staying")
        (agent,) = daemon.launches()
        await daemon.kill()
        target = daemon.folder / "backup.db"
        done = await say(daemon, "backup", str(target))
        checked = await say(daemon, "fsck")
        assert (done.code, checked.code) == (0, 0), done.err + checked.out
        assert "open bindings" in checked.out
        if is_alive(agent):
            assert "still runs" in checked.out
        await daemon.start()
        assert (await daemon.get(session)).status == "held"
        after = await say(daemon, "fsck", "--json")
        assert json.loads(after.out)["notes"] == []


async def test_a_spoilt_backup_is_not_restored() -> None:
    """Unless told to: the store stays as it is, and the finding is shown."""
    async with running_daemon(SCRIPT) as daemon:
        await daemon.ask(await daemon.session(), "hello")
        target = daemon.folder / "backup.db"
        await say(daemon, "backup", str(target))
        await daemon.stop()
        spoil(target)
        before = daemon.journal.path.read_bytes()
        refused = await say(daemon, "restore", str(target))
        missing = await say(daemon, "restore", str(daemon.folder / "nothing"))

        assert refused.code == 1
        assert "seq 3 missing" in refused.out
        assert "nothing was changed" in refused.err
        assert missing.code == 78
        assert daemon.journal.path.read_bytes() == before


def spoil(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM events WHERE seq = 3")


async def test_secrets_come_back_where_they_were_taken_along() -> None:
    """Into 0600 files of their own, not into the store."""
    async with running_daemon(SCRIPT, check=False) as daemon:
        session = await daemon.session(mcpServers=SECRETS)
        target = daemon.folder / "backup.db"
        assert (await say(daemon, "backup", "--with-secrets", str(target))).code == 0
        await daemon.stop()
        (kept,) = (daemon.state / "secrets").iterdir()
        secret = kept.read_bytes()
        kept.unlink()
        assert (await say(daemon, "restore", str(target))).code == 0

        assert kept.read_bytes() == secret
        assert kept.stat().st_mode & 0o777 == 0o600
        assert kept.name == f"{session}.json"
        assert b"s3cret" not in daemon.journal.path.read_bytes()


async def test_what_fsck_exits_with(tmp_path: Path) -> None:
    """78 for what is no store, told with the reason."""
    (tmp_path / "x").write_text("no store")
    no_store = await acphost(None, "fsck", str(tmp_path / "x"))
    missing = await acphost(None, "fsck", "--state-dir", str(tmp_path))

    assert (no_store.code, missing.code) == (78, 78)
    assert "not a database" in no_store.err
    assert str(tmp_path / "journal.db") in missing.err


async def test_a_kill_in_the_middle_of_a_backup() -> None:
    """Of the daemon that makes it: there is no half of a file under the name that was asked for."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "flood")
        target = daemon.folder / "backup.db"
        async with daemon.wire() as client:
            await client.send(
                {
                    "jsonrpc": "2.0",
                    "id": 9,
                    "method": "host/backup",
                    "params": {"path": str(target)},
                }
            )
            daemon.signal(signal.SIGKILL)
            await daemon.exit_code()
        if target.exists():
            assert (await say(daemon, "fsck", str(target))).code == 0
        await daemon.start()
        assert (await say(daemon, "fsck")).code == 0


async def test_who_looks_at_the_store_after_a_backup_takes_nothing_away() -> None:
    """Locks of a process end with any descriptor of the file it closes: then a stranger who is the
    last to leave, as it seems to him, would remove the log that the daemon goes on writing to.
    """
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "before")
        await daemon.client.backup(str(daemon.folder / "copy.db"))
        wal = daemon.journal.path.with_name("journal.db-wal")
        inode = wal.stat().st_ino
        assert daemon.journal.query("SELECT * FROM runs")
        assert wal.stat().st_ino == inode
        run = await daemon.ask(session, "after")
        await daemon.kill()

        (kept,) = daemon.journal.query("SELECT * FROM runs WHERE run_id = ?", run.host_run_id)
        assert kept["status"] == "completed"
        await daemon.start()
