"""Read-only connections, lent for one call each."""

import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio

from acphost.errors import StorageError
from acphost.journal.connection import JournalConnection, reading

T = TypeVar("T")
Values = tuple[object, ...]


class ReadPool:
    """A few connections; whoever finds none free waits in line."""

    def __init__(self, connections: Sequence[JournalConnection]) -> None:
        self._free = list(connections)
        self._places = anyio.Semaphore(len(connections))

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work`: all of one read, from its first statement to its last row.

        Raises StorageError when the store cannot be read.
        """
        async with self._places:
            connection = self._free.pop()
            try:
                return await connection.call(work)
            except sqlite3.Error as exc:
                raise StorageError(f"cannot read the store: {exc}") from exc
            finally:
                # A cancelled call may still be at work; the next one is served after it.
                self._free.insert(0, connection)

    async def all(self, sql: str, parameters: Sequence[object] = ()) -> list[Values]:
        """Every row of one statement."""
        return await self.call(lambda connection: connection.execute(sql, parameters).fetchall())


@asynccontextmanager
async def read_pool(path: Path, *, busy_timeout: float, size: int = 2) -> AsyncGenerator[ReadPool]:
    """A pool of connections on the store at `path`."""
    async with AsyncExitStack() as stack:
        yield ReadPool(
            [
                await stack.enter_async_context(reading(path, busy_timeout=busy_timeout))
                for _ in range(size)
            ]
        )
