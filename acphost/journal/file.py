"""The store's file before it is opened: made whole, or checked, never replaced."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from acphost.errors import StoreRefusedError
from acphost.ids import StoreId, mint
from acphost.journal.migrations import MIGRATIONS, migrate, schema_version

#: "acph", in the header of every store: tells ours from any other SQLite file.
APPLICATION_ID = 0x61637068
SCHEMA_VERSION = MIGRATIONS[-1].number

#: A store too big to be checked in this many seconds is opened as far as it was found sound.
_CHECK_SECONDS = 5.0
_LOCK_SECONDS = 1.0
_CURE = "move it away to begin a new store, or restore a backup"
_SIDE_FILES = ("-journal", "-wal", "-shm")


class Origin(NamedTuple):
    """What a store is since it was made."""

    store_id: StoreId
    created_at: int


def prepare(path: Path, *, at: int) -> Origin:
    """Make the store if there is none, else check it and bring it up to date.

    Raises StoreRefusedError.
    """
    if not os.path.lexists(path):
        _create(path, at)
    return _check(path, at)


def _create(path: Path, at: int) -> None:
    """A whole store under another name, then renamed: a crash leaves all of it or nothing."""
    for suffix in _SIDE_FILES:
        left = path.with_name(path.name + suffix)
        if left.exists():
            # Its frames would be replayed into the new file.
            raise StoreRefusedError(
                f"{left} belongs to a store whose file {path} is missing: restore that file, "
                f"or remove {left.name} to begin a new store",
                path=str(path),
            )
    new = path.with_name(path.name + ".new")
    _remove(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        # Only a file without tables takes it: what is deleted later can then be given back.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(connection, at=at)
        connection.execute(
            "INSERT INTO meta (name, value) VALUES ('storeId', ?), ('created', ?)",
            (mint("store"), at),
        )
        connection.execute("PRAGMA journal_mode = WAL").close()
    new.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _remove(path: Path) -> None:
    for suffix in ("", *_SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def half_restored(path: Path) -> Path:
    """Where a backup that is to replace the store is prepared; it may hold secrets."""
    return path.with_name(f".{path.name}.restored")


def _check(path: Path, at: int) -> Origin:
    # Whoever was making them has not lived to the end of it: the caller holds the lock now.
    _remove(path.with_name(path.name + ".new"))
    _remove(half_restored(path))
    check_size(path)
    try:
        with closing(
            sqlite3.connect(path, timeout=_LOCK_SECONDS, isolation_level=None)
        ) as connection:
            check_identity(connection, path)
            _check_pages(connection, path)
            migrate(connection, at=at)
            known = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    except sqlite3.OperationalError as exc:
        # Locked, no room, no permission: the file itself may be sound.
        raise StoreRefusedError(
            f"cannot open the store {path}: {exc}; end the program that holds it, or make room, "
            "and start again",
            path=str(path),
        ) from exc
    except sqlite3.DatabaseError as exc:
        raise StoreRefusedError(
            f"cannot open the store {path}: {exc}; {_CURE}", path=str(path)
        ) from exc
    try:
        return Origin(StoreId(str(known["storeId"])), int(known["created"]))
    except KeyError as exc:
        raise StoreRefusedError(
            f"{path} does not say which store it is; {_CURE}", path=str(path)
        ) from exc


def check_size(path: Path) -> None:
    """Raises StoreRefusedError for what cannot be a database at all.

    It does not open the file: when a process closes any descriptor of it, all locks that its other
    connections hold there are gone, and with them the log they write to (POSIX record locks).
    """
    try:
        size = path.stat().st_size
    except OSError as exc:
        raise StoreRefusedError(
            f"cannot read the store {path}: {exc.strerror}", path=str(path)
        ) from exc
    if not size:
        raise StoreRefusedError(
            f"{path} is empty (0 bytes), which no store ever is: its content is lost; {_CURE}",
            path=str(path),
        )


def check_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreRefusedError for another program's database, or a newer one of ours."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise StoreRefusedError(
            f"{path} is the database of another program "
            f"(application id {application:#010x}, ours is {APPLICATION_ID:#010x}); "
            "choose another state directory, or move that file away",
            path=str(path),
        )
    version = schema_version(connection)
    if version > SCHEMA_VERSION:
        raise StoreRefusedError(
            f"{path} has schema {version}, this acphost knows up to {SCHEMA_VERSION}: "
            "start the newer acphost that wrote it, or restore a backup made before the upgrade",
            path=str(path),
            found=version,
            supported=SCHEMA_VERSION,
        )


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    deadline = time.monotonic() + _CHECK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    finally:
        connection.set_progress_handler(None, 0)
    if found != "ok":
        raise StoreRefusedError(f"{path} is damaged ({found}); {_CURE}", path=str(path))
