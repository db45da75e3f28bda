"""Locks by name, for steps that must not run twice at the same time for the same thing."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio


class KeyedLocks:
    """A lock for each key in use: whoever holds one is alone with that key."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[anyio.Lock, int]] = {}

    @asynccontextmanager
    async def holding(self, key: str) -> AsyncGenerator[None]:
        """Hold the lock of `key` for the length of the block."""
        lock, users = self._locks.get(key, (anyio.Lock(), 0))
        self._locks[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = lock, users - 1
