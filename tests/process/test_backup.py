"""Backups of a store that is being written to, and a backup in the place of a store."""

import os
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from acphost.archive.fsck import check_store
from acphost.errors import ConflictError, StorageError, StoreRefusedError
from acphost.journal.backup import back_up, replace_store
from acphost.journal.file import prepare
from acphost.journal.rows import ProcessRow
from acphost.journal.statements import save_process, save_session
from acphost.journal.store import Store
from acphost.journal.writer import SessionLog
from tests.support.stores import chunks, now, opened, session_row


def begin(store: Store) -> SessionLog:
    """A session to write to."""
    store.writer.record([save_session(session_row(1))])
    return SessionLog(1, "sess_1")


def seqs(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT seq FROM events WHERE session_key = 1 ORDER BY offset"
        return [seq for (seq,) in connection.execute(sql)]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_a_backup_is_one_moment_of_a_store_that_goes_on(tmp_path: Path) -> None:
    """Commits between its steps neither tear it nor make it begin anew."""
    path, target = tmp_path / "journal.db", tmp_path / "backup.db"
    async with opened(path) as store:
        log = begin(store)
        store.writer.append(log, chunks(5000, size=1000), at=now())
        await store.writer.drain()
        steps = 0

        def on_step(done: int, total: int) -> None:
            nonlocal steps
            steps += 1
            anyio.from_thread.run(write_more)

        async def write_more() -> None:
            await store.writer.durable(store.writer.append(log, chunks(10), at=now()))

        copied = await anyio.to_thread.run_sync(partial(back_up, path, target, on_step=on_step))
        at_the_end = log.seq

    assert steps > 3
    assert at_the_end == 5000 + 10 * steps
    assert seqs(target) == list(range(1, 5001))
    assert copied.bytes == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["backup.db", "journal.db"]
    assert check_store(target, here=False).findings == []


async def test_what_is_in_the_wal_only_is_in_the_backup(tmp_path: Path) -> None:
    """The store of a daemon that was killed: its last commits are not in the file itself yet."""
    path, killed = tmp_path / "journal.db", tmp_path / "killed.db"
    async with opened(path) as store:
        await store.writer.durable(store.writer.append(begin(store), chunks(7), at=now()))
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")

    back_up(killed, tmp_path / "backup.db")

    assert seqs(tmp_path / "backup.db") == list(range(1, 8))


async def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    """Neither a file, nor a link to one, nor ever the store itself or a folder."""
    path, target = tmp_path / "journal.db", tmp_path / "notes"
    async with opened(path):
        pass
    target.write_text("mine")
    with pytest.raises(ConflictError, match="exists"):
        back_up(path, target)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConflictError, match="exists"):
        back_up(path, tmp_path / "link")
    assert target.read_text() == "mine"
    for never in (path, tmp_path):
        with pytest.raises(ConflictError, match="cannot be replaced"):
            back_up(path, never, force=True)

    back_up(path, target, force=True)

    assert check_store(target, here=False).is_clean


async def test_a_disk_that_takes_nothing_leaves_nothing(tmp_path: Path) -> None:
    """No half of a backup, and the cause in the message."""
    path = tmp_path / "journal.db"
    async with opened(path):
        pass
    with pytest.raises(StorageError, match="No such file"):
        back_up(path, tmp_path / "no" / "backup.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreRefusedError, match="empty"):
        back_up(tmp_path / "empty.db", tmp_path / "backup.db")

    assert names(tmp_path) == ["empty.db", "journal.db"]


async def test_a_restored_store_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The replaced one stays whole beside it, its WAL included, and can be put back."""
    path, backup, aside = (tmp_path / name for name in ("journal.db", "backup.db", "aside.db"))
    async with opened(path) as store:
        log = begin(store)
        await store.writer.durable(store.writer.append(log, chunks(3), at=now()))
        await anyio.to_thread.run_sync(back_up, path, backup)
        await store.writer.durable(store.writer.append(log, chunks(2), at=now()))
        first = store.store_id

    restored = await anyio.to_thread.run_sync(
        partial(replace_store, backup, path, at=now(), aside=aside)
    )

    assert (seqs(path), seqs(aside)) == ([1, 2, 3], [1, 2, 3, 4, 5])
    assert restored.aside == aside
    async with opened(path) as store:
        assert store.store_id == restored.store_id != first
        # Numbers go on where the backup ended.
        heads = await store.reader.heads()
        assert heads.offset == 3
    assert check_store(path).is_clean
    replace_store(aside, path, at=now(), aside=tmp_path / "again.db")
    assert seqs(path) == [1, 2, 3, 4, 5]


async def test_launches_that_the_backup_does_not_know_are_still_to_be_ended(
    tmp_path: Path,
) -> None:
    """What a killed daemon left running is in the ledger of the store that is replaced."""
    path, backup = tmp_path / "journal.db", tmp_path / "backup.db"
    async with opened(path) as store:
        await anyio.to_thread.run_sync(back_up, path, backup)
        launch = ProcessRow(launch_id="launch_1", agent_id="fake", pid=7, started_at=now())
        await store.writer.durable(store.writer.record([save_process(launch)]))

    replace_store(backup, path, at=now(), aside=tmp_path / "aside.db")

    async with opened(path) as store:
        assert [row.launch_id for row in await store.reader.processes()] == ["launch_1"]


async def test_a_damaged_store_can_be_replaced(tmp_path: Path) -> None:
    """It goes aside as it is."""
    path, backup = tmp_path / "journal.db", tmp_path / "backup.db"
    async with opened(path):
        pass
    back_up(path, backup)
    path.write_bytes(b"no store any more")

    replace_store(backup, path, at=now(), aside=tmp_path / "aside.db")

    assert check_store(path).is_clean
    assert (tmp_path / "aside.db").read_bytes() == b"no store any more"


async def test_secrets_are_taken_along_only_if_given(tmp_path: Path) -> None:
    """They leave the store again when it is restored, also from its free pages."""
    path, backup = tmp_path / "journal.db", tmp_path / "backup.db"
    async with opened(path):
        pass
    secret = b'{"TOKEN":"s3cret-s3cret"}'
    back_up(path, backup, secrets={"sess_1.json": secret})
    assert secret in backup.read_bytes()
    assert check_store(backup, here=False).is_clean

    restored = replace_store(backup, path, at=now(), aside=tmp_path / "aside.db")

    assert restored.secrets == {"sess_1.json": secret}
    assert b"s3cret" not in path.read_bytes()


async def test_what_a_killed_backup_left_is_removed_by_a_later_one(tmp_path: Path) -> None:
    """Also where the pid is that of this process again; what others are at is left alone."""
    path, target = tmp_path / "journal.db", tmp_path / "backup.db"
    part = "part_0196d0a1b2c0123456789abcdef"
    dead = await anyio.run_process(["sh", "-c", "echo $$"])
    gone = [
        f".older.db.{int(dead.stdout)}.{part}",
        f".older.db.{int(dead.stdout)}.{part}-journal",
        f".backup.db.{os.getpid()}.{part}",
    ]
    kept = [f".backup.db.{os.getppid()}.{part}", ".notes.part_1", f".backup.db.0.{part}"]
    for name in [*gone, *kept]:
        (tmp_path / name).touch()
    async with opened(path) as store:
        begin(store)
        await store.writer.drain()
        seen: list[str] = []
        back_up(path, target, on_step=lambda *_: seen.extend(names(tmp_path)))

    left = names(tmp_path)
    assert not set(gone) & set(left)
    assert set(kept) <= set(left)
    (ours,) = {name for name in seen if name.startswith(f".backup.db.{os.getpid()}.")}
    assert ours not in left


def test_a_restore_that_was_killed_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    """The copy it was preparing may hold secrets."""
    path = tmp_path / "journal.db"
    prepare(path, at=now())
    (tmp_path / ".journal.db.restored").touch()
    (tmp_path / ".journal.db.restored-journal").touch()

    prepare(path, at=now())

    assert names(tmp_path) == ["journal.db"]
