"""The store's file: made whole, checked, refused, never replaced."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from acphost.archive.fsck import check_store
from acphost.errors import (
    StoreRefusedError,
)
from acphost.journal.delta import DIFFERENCE, Difference, pack
from acphost.journal.event import Draft
from acphost.journal.file import APPLICATION_ID, SCHEMA_VERSION
from acphost.journal.migrations import MIGRATIONS, PACKING, Migration, migrate
from acphost.journal.packs import PACK
from acphost.journal.statements import save_session
from acphost.journal.store import open_store
from acphost.journal.writer import SessionLog
from tests.support.stores import chunks, events_of, now, opened, session_row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_a_new_store_is_private_and_says_which_it_is(path: Path) -> None:
    async with opened(path) as store:
        await store.writer.settled(store.writer.append(None, [Draft("host.started", b"{}")], at=1))

        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == {0o600}
        assert store.store_id.startswith("store_")
        assert store.created_at == now()

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT number, at FROM migrations").fetchall() == [
            (migration.number, now()) for migration in MIGRATIONS
        ]
        # What is deleted can be given back.
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


async def test_what_a_crash_left_of_a_new_store_is_cleared_away(path: Path) -> None:
    left = [path.with_name(f"journal.db.new{suffix}") for suffix in ("", "-wal", "-journal")]
    for file in left:
        file.write_bytes(b"half")

    async with opened(path) as store:
        assert store.writer.head == 0
    assert not any(file.exists() for file in left)


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def write(path: Path, garbage: bytes) -> None:
    path.write_bytes(garbage)


def damage(path: Path) -> None:
    """Overwrite the beginning of most pages."""
    content = bytearray(path.read_bytes())
    for start in range(8 * 4096, len(content), 4096):
        content[start : start + 64] = os.urandom(64)
    path.write_bytes(content)


def truncate(path: Path) -> None:
    """Keep the first pages."""
    path.write_bytes(path.read_bytes()[: 4096 * 6])


async def refusal(path: Path) -> StoreRefusedError:
    before = content(path)
    with pytest.raises(StoreRefusedError) as caught:
        async with open_store(path, now=now):
            pass
    assert content(path) == before
    return caught.value


async def make(path: Path) -> None:
    async with opened(path) as store:
        store.writer.append(SessionLog(1, "sess_1"), chunks(500, size=100), at=1)
        await store.writer.drain()


async def test_a_newer_store_is_refused_with_both_versions(path: Path) -> None:
    await make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99").close()

    error = await refusal(path)

    assert error.details == {"path": str(path), "found": 99, "supported": SCHEMA_VERSION}
    assert "99" in str(error)
    assert str(SCHEMA_VERSION) in str(error)


async def test_a_store_that_another_program_keeps_locked_is_not_called_damaged(path: Path) -> None:
    await make(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE").close()
        other.execute("BEGIN IMMEDIATE").close()
        other.execute("INSERT INTO meta VALUES ('x', 1)").close()

        assert "locked" in str(await refusal(path))


async def test_the_database_of_another_program_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)").close()

    assert "another program" in str(await refusal(path))


@pytest.mark.parametrize("garbage", [b"", b"hello", b"SQLite format 3\0" + b"\0" * 4080])
async def test_what_is_no_store_is_refused_and_kept(path: Path, garbage: bytes) -> None:
    write(path, garbage)

    await refusal(path)


async def test_a_damaged_store_is_refused_and_kept(path: Path) -> None:
    await make(path)
    damage(path)

    await refusal(path)


async def test_a_truncated_store_is_refused_and_kept(path: Path) -> None:
    await make(path)
    truncate(path)

    await refusal(path)


async def test_a_wal_without_its_store_is_never_mixed_into_a_new_one(path: Path) -> None:
    path.with_name("journal.db-wal").write_bytes(b"frames")

    await refusal(path)
    assert content(path) is None


def test_migrations_go_forward_each_whole_or_not_at_all() -> None:
    last = MIGRATIONS[-1].number
    more = Migration(last + 1, "more", ("CREATE TABLE more (x)",))
    broken = Migration(last + 2, "broken", ("CREATE TABLE less (x)", "CREATE TABLE less (x)"))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, at=1)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, at=2, migrations=(*MIGRATIONS, more, broken))

        assert connection.execute("PRAGMA user_version").fetchone() == (last + 1,)
        assert connection.execute("SELECT number, name, at FROM migrations").fetchall() == [
            *((migration.number, migration.name, 1) for migration in MIGRATIONS),
            (last + 1, "more", 2),
        ]
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE name = 'less'").fetchall()
        assert tables == []


async def test_a_store_of_before_packs_is_checked_as_it_is_and_goes_on(path: Path) -> None:
    """Its events, whole or as differences, are read before and after; new ones are packed."""
    first, second = b'"' + b"x" * 400 + b'"', b'"' + b"x" * 399 + b'y"'
    async with opened(path) as store:
        store.writer.record([save_session(session_row())])
        await store.writer.drain()
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("ALTER TABLE events DROP COLUMN events")
        old.execute("ALTER TABLE processes DROP COLUMN descendants")
        old.execute("DELETE FROM migrations WHERE number >= ?", (PACKING,))
        old.execute(f"PRAGMA user_version = {PACKING - 1}")
        old.executemany(
            "INSERT INTO events (offset, session_key, seq, kind, source, codec, payload, at)"
            " VALUES (?, 1, ?, 'tool.updated', 'agent', ?, ?, 1)",
            [(1, 1, 0, first), (2, 2, DIFFERENCE, pack(Difference(1, 400, 1, b"y")))],
        )

    report = check_store(path)

    assert (report.findings, report.checked["events"]) == ([], 2)
    assert [note.check for note in report.notes] == ["identity"]
    async with opened(path) as store:
        log = SessionLog(1, "sess_1", 2)
        store.writer.append_alike(log, "message.delta", [b'"z"'] * 20, at=2)
        await store.writer.drain()
        rows = await events_of(store.reader, 1)
    assert [row.payload for row in rows] == [first, second, *[b'"z"'] * 20]
    report = check_store(path)
    assert (report.findings, report.notes, report.checked["events"]) == ([], [], 22)
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT seq, codec, events FROM events").fetchall()
    assert stored == [(1, 0, 1), (2, DIFFERENCE, 1), (22, PACK, 20)]
