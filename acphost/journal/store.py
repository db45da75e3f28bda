"""The store: one SQLite file with its writer, its readers and its feed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from acphost.ids import Clock, StoreId
from acphost.journal.connection import writing
from acphost.journal.feed import Feed
from acphost.journal.file import prepare
from acphost.journal.pool import read_pool
from acphost.journal.reader import Reader
from acphost.journal.recovery import read_heads
from acphost.journal.writer import Writer, WriterOptions

_DEFAULTS = WriterOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open store; `writer.run` is its owner's to start."""

    path: Path
    store_id: StoreId
    created_at: int
    writer: Writer
    reader: Reader
    feed: Feed


@asynccontextmanager
async def open_store(
    path: Path, *, now: Clock, options: WriterOptions = _DEFAULTS
) -> AsyncGenerator[Store]:
    """The store at `path`, made if there is none; the caller holds the state directory's lock.

    Raises StoreRefusedError for a file that is newer than this program, damaged, or not a store.
    """
    origin = await anyio.to_thread.run_sync(partial(prepare, path, at=now()))
    async with (
        writing(path, busy_timeout=options.busy_timeout) as connection,
        read_pool(path, busy_timeout=options.busy_timeout) as pool,
    ):
        feed = Feed()
        heads = await connection.call(read_heads)
        yield Store(
            path=path,
            store_id=origin.store_id,
            created_at=origin.created_at,
            writer=Writer(connection, feed, heads, now=now, options=options),
            reader=Reader(pool),
            feed=feed,
        )
