"""Copies of a store: one consistent moment in one file, and a copy in the place of the store."""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from acphost.errors import ConflictError, StorageError, StorageFullError, StoreRefusedError
from acphost.ids import mint
from acphost.journal.audit import open_to_read
from acphost.journal.file import half_restored
from acphost.journal.health import StorageState, trouble

#: Pages of one step, about 1 MB: the disk is not kept from others for longer.
_STEP = 256
_SECRETS = "CREATE TABLE backup_secrets (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT"
_HAS_SECRETS = "SELECT 1 FROM sqlite_schema WHERE name = 'backup_secrets'"
_UNENDED = "SELECT * FROM processes WHERE ended_at IS NULL"
_SIDE_FILES = ("-wal", "-shm", "-journal")
#: A copy that is not whole yet: hidden, beside its target, with the pid of who makes it.
_UNFINISHED = re.compile(
    r"(?P<copy>\..+\.(?P<pid>[1-9]\d{0,8})\.part_[0-9a-f]+)(-wal|-shm|-journal)?", re.ASCII
).fullmatch
#: Those of this process.
_being_made: set[str] = set()

OnStep = Callable[[int, int], None]


class Copied(NamedTuple):
    """What was written."""

    bytes: int
    milliseconds: int
    secrets: int


def back_up(
    store: Path,
    target: Path,
    *,
    force: bool = False,
    secrets: Mapping[str, bytes] | None = None,
    on_step: OnStep | None = None,
) -> Copied:
    """Copy the store as it is at this moment to `target`, which only we can read.

    Raises ConflictError where something is there and not `force`; StorageError, StorageFullError
    where it cannot be written, StoreRefusedError if there is no store. It blocks.
    """
    began = time.monotonic()
    if os.path.lexists(target):
        if not force:
            raise _exists(target)
        if target.is_dir() or (target.exists() and target.samefile(store)):
            raise ConflictError(f"{target} cannot be replaced; choose another name")
    new = target.with_name(f".{target.name}.{os.getpid()}.{mint('part')}")
    _being_made.add(new.name)
    try:
        _remove_unfinished(target.parent)
        _copy(store, new, on_step)
        with closing(_open_copy(new)) as copy:
            _keep_secrets(copy, secrets or {})
            _check(copy, target)
        size = new.stat().st_size
        _sync(new)
        _put(new, target, force=force)
    except sqlite3.Error as exc:
        raise _failed(target, exc) from exc
    except OSError as exc:
        raise StorageError(f"cannot write {target}: {exc.strerror or exc}") from exc
    finally:
        _remove(new)
        _being_made.discard(new.name)
    return Copied(size, int((time.monotonic() - began) * 1000), len(secrets or {}))


def _copy(store: Path, new: Path, on_step: OnStep | None) -> None:
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))

    def stepped(_: int, remaining: int, total: int) -> None:
        if on_step is not None:
            on_step(total - remaining, total)

    with closing(open_to_read(store)) as source, closing(_open_copy(new)) as copy:
        # The moment is chosen here: without it each commit of the daemon would begin the copy anew.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        source.backup(copy, pages=_STEP, progress=stepped)
        # One file, without a WAL that could be forgotten when it is carried away.
        copy.execute("PRAGMA journal_mode = DELETE").close()


def _open_copy(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    # Nobody knows of it before it is whole: it is made durable once, at the end.
    connection.execute("PRAGMA synchronous = OFF").close()
    return connection


def _keep_secrets(copy: sqlite3.Connection, secrets: Mapping[str, bytes]) -> None:
    if secrets:
        copy.execute(_SECRETS)
        copy.executemany("INSERT INTO backup_secrets VALUES (?, ?)", list(secrets.items()))


def _check(copy: sqlite3.Connection, target: Path) -> None:
    (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StorageError(
            f"{target} was not written: the copy is damaged ({found}); `acphost fsck` tells more"
        )


def _put(new: Path, target: Path, *, force: bool) -> None:
    if force:
        new.replace(target)
    else:
        try:
            # Unlike a renaming this fails if somebody else was there first.
            target.hardlink_to(new)
        except FileExistsError as exc:
            raise _exists(target) from exc
        except OSError:
            # A file system without links.
            if os.path.lexists(target):
                raise _exists(target) from None
            new.replace(target)
    _sync(target.parent)


# -- back in its place -----------------------------------------------------------------------------


class Restored(NamedTuple):
    """What became of the store that was there, and of its name."""

    store_id: str
    aside: Path | None
    secrets: dict[str, bytes]


def replace_store(backup: Path, store: Path, *, at: int, aside: Path) -> Restored:
    """Put a copy of `backup` in the place of `store`, which goes to `aside`; all or nothing.

    The caller holds the state directory's lock. What follows in the restored store is not what
    followed in the old one, so it gets an id of its own: cursors of the old one are refused.
    Raises StorageError, StoreRefusedError. It blocks.
    """
    new = half_restored(store)
    store_id = mint("store")
    try:
        _remove(new)
        _copy(backup, new, None)
        with closing(_open_copy(new)) as copy:
            secrets = _take_secrets(copy)
            copy.execute(
                "INSERT INTO meta (name, value) SELECT 'restoredFrom', value FROM meta"
                " WHERE name = 'storeId' ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            )
            copy.executemany(
                "INSERT INTO meta (name, value) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [("storeId", store_id), ("restoredAt", at)],
            )
            is_there = store.exists()
            if is_there:
                _carry_ledger(store, copy)
            _check(copy, store)
        _sync(new)
        if is_there:
            _set_aside(store, aside)
        new.replace(store)
        _sync(store.parent)
    except sqlite3.Error as exc:
        raise _failed(store, exc) from exc
    except OSError as exc:
        raise StorageError(f"cannot write {store}: {exc.strerror or exc}") from exc
    finally:
        _remove(new)
    return Restored(store_id, aside if is_there else None, secrets)


def _take_secrets(copy: sqlite3.Connection) -> dict[str, bytes]:
    """What the backup has of secrets; the store keeps none of it."""
    if copy.execute(_HAS_SECRETS).fetchone() is None:
        return {}
    found = dict(copy.execute("SELECT name, content FROM backup_secrets").fetchall())
    # Dropped alone they would stay readable in pages that are free.
    copy.execute("PRAGMA secure_delete = ON").close()
    copy.execute("DROP TABLE backup_secrets")
    return found


def _carry_ledger(store: Path, copy: sqlite3.Connection) -> None:
    """Launches that the old store has not seen end: the next start must still find them."""
    try:
        with closing(open_to_read(store)) as old:
            cursor = old.execute(_UNENDED)
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
    except (sqlite3.Error, StoreRefusedError):
        # Its own damage may be why it is replaced.
        return
    known = {row[1] for row in copy.execute("PRAGMA table_info(processes)")}
    if rows and known.issuperset(columns):
        marks = ", ".join("?" * len(columns))
        copy.executemany(
            f"INSERT OR REPLACE INTO processes ({', '.join(columns)}) VALUES ({marks})",  # noqa: S608
            rows,
        )


def _set_aside(store: Path, aside: Path) -> None:
    """Give the store a second name; its own is taken over by what replaces it."""
    try:
        with closing(sqlite3.connect(store, isolation_level=None)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    except sqlite3.Error:
        # Damaged, then: what it has in its WAL goes along with it.
        pass
    aside.hardlink_to(store)
    for suffix in _SIDE_FILES:
        left = store.with_name(store.name + suffix)
        if left.exists():
            # Left there its frames would be replayed into the restored file.
            left.rename(aside.with_name(aside.name + suffix))
    _sync(store.parent)


# -- files -----------------------------------------------------------------------------------------


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_unfinished(folder: Path) -> None:
    """Remove what backups left there whose process did not live to the end of them."""
    with suppress(OSError):  # whether a copy can be made is for the copy to tell
        for path in list(folder.iterdir()):
            found = _UNFINISHED(path.name)
            if found is not None and not _is_being_made(found["copy"], int(found["pid"])):
                path.unlink()


def _is_being_made(name: str, pid: int) -> bool:
    if pid == os.getpid():
        # In a container each daemon has the pid of the one before it.
        return name in _being_made
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _remove(path: Path) -> None:
    for suffix in ("", *_SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _exists(target: Path) -> ConflictError:
    return ConflictError(f"{target} exists; choose another name, or replace it with --force")


def _failed(target: Path, exc: sqlite3.Error) -> StorageError | StorageFullError:
    problem = trouble(exc)
    text = f"cannot write {target}: {exc}"
    if problem is not None and problem.state is StorageState.FULL:
        return StorageFullError(text)
    return StorageError(text)
