"""One SQLite connection on a thread of its own: each call is one whole step of work on it."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import aiosqlite
import anyio

from acphost.journal.delta import Repeats
from acphost.journal.event import Stretch
from acphost.journal.insert import insert_statements
from acphost.journal.statements import Statement

T = TypeVar("T")

#: The WAL is cut back to this when it is reset, in bytes, and checkpointed at that many pages.
WAL_LIMIT = 16 * 1024 * 1024
_CHECKPOINT_PAGES = 2000
#: aiosqlite wants to know how its cursors fetch; none of them is used here.
_UNUSED_CHUNK = 64


class JournalConnection(aiosqlite.Connection):
    """A connection whose calls each do all they do in one go on its thread."""

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work`, run on the connection's thread.

        Cancelling the caller does not stop the work: it ends whole, and unseen.
        """
        return await self.start(work)

    def start(self, work: Callable[[sqlite3.Connection], T]) -> "asyncio.Future[T]":
        """Begin `work` at once, if the thread is free; as `call` apart from that."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((future, partial(work, self._conn)))
        return future


class WritingConnection(JournalConnection):
    """The connection of the one writer."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], path: Path) -> None:
        super().__init__(connector, _UNUSED_CHUNK)
        self._wal = f"{path}-wal"
        self._repeats = Repeats()

    def transact(
        self,
        alike: Sequence[Stretch],
        statements: Sequence[Statement],
        *,
        before_commit: Callable[[], None] | None = None,
        on_commit: Callable[[], None],
    ) -> "asyncio.Future[int]":
        """Write events and rows in one transaction, all or none; gives the size of the WAL.

        `on_commit` runs on the loop as soon as they are on disk, before anybody who waits.
        """
        loop = asyncio.get_running_loop()

        def work(connection: sqlite3.Connection) -> int:
            try:
                steps = [*insert_statements(alike, self._repeats), *statements]
                _transact(connection, steps, before_commit)
            except BaseException:
                # It has taken note of events that are not in the store.
                self._repeats.clear()
                raise
            # Whoever waits for a result is woken a turn of the loop later than what is called.
            loop.call_soon_threadsafe(on_commit)
            return self._wal_bytes()

        return self.start(work)

    async def empty_wal(self, patience_ms: int = 0) -> tuple[int, bool]:
        """Write the WAL back and truncate it; readers that have begun are waited for so long.

        Returns its size, and whether all of it was written back.
        """

        def work(connection: sqlite3.Connection) -> tuple[int, bool]:
            patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
            connection.execute(f"PRAGMA busy_timeout = {patience_ms:d}").close()
            try:
                is_blocked = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.OperationalError:
                # No room in the database file, say; the next commit will tell.
                is_blocked = 1
            finally:
                connection.execute(f"PRAGMA busy_timeout = {patience}").close()
            return self._wal_bytes(), not is_blocked

        return await self.call(work)

    async def shorten(self, pages: int) -> tuple[int, bool]:
        """Take free pages from the end of the file; returns the size of the WAL, and if it did."""

        def work(connection: sqlite3.Connection) -> tuple[int, bool]:
            try:
                # As a script, because a plain call stops after the first page.
                connection.executescript(f"PRAGMA incremental_vacuum({pages:d})").close()
            except sqlite3.OperationalError:
                return self._wal_bytes(), False
            return self._wal_bytes(), True

        return await self.call(work)

    def _wal_bytes(self) -> int:
        try:
            return os.stat(self._wal).st_size  # noqa: PTH116  each commit asks, a Path is slow
        except FileNotFoundError:
            return 0


def _transact(
    connection: sqlite3.Connection,
    steps: Sequence[Statement],
    before_commit: Callable[[], None] | None,
) -> None:
    if len(steps) == 1 and before_commit is None:
        # A statement outside of a transaction is one by itself: an event of a slow stream.
        connection.execute(*steps[0])
        return
    # IMMEDIATE: a deferred one that turns from reading to writing fails at once, without waiting.
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql, parameters in steps:
            connection.execute(sql, parameters)
        if before_commit is not None:
            before_commit()
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have already rolled back by themselves.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@asynccontextmanager
async def writing(path: Path, *, busy_timeout: float) -> AsyncGenerator[WritingConnection]:
    """The connection that writes; synchronous=FULL makes a commit survive a power cut."""

    def connect() -> sqlite3.Connection:
        return _connected(
            path,
            "rw",
            busy_timeout,
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            # macOS: without it a disk may keep to itself what it was told to keep.
            "PRAGMA fullfsync = ON",
            f"PRAGMA journal_size_limit = {WAL_LIMIT}",
            f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        )

    async with _opened(WritingConnection(connect, path)) as connection:
        yield connection


@asynccontextmanager
async def reading(path: Path, *, busy_timeout: float) -> AsyncGenerator[JournalConnection]:
    """A connection that cannot write."""

    def connect() -> sqlite3.Connection:
        return _connected(path, "ro", busy_timeout, "PRAGMA query_only = ON")

    async with _opened(JournalConnection(connect, _UNUSED_CHUNK)) as connection:
        yield connection


def _connected(path: Path, mode: str, busy_timeout: float, *pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        cached_statements=256,
    )
    try:
        for pragma in pragmas:
            connection.execute(pragma).close()
    except BaseException:
        connection.close()
        raise
    return connection


_Opened = TypeVar("_Opened", bound=JournalConnection)


@asynccontextmanager
async def _opened(connection: _Opened) -> AsyncGenerator[_Opened]:
    _ = await connection
    try:
        yield connection
    finally:
        # Its thread is no daemon thread: left running it would keep the process from ending.
        with anyio.CancelScope(shield=True):
            await connection.close()
