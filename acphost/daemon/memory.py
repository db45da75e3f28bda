"""Memory that is free inside the process goes back to the system, where the allocator keeps it."""

import ctypes
from collections.abc import Callable

import anyio
import anyio.to_thread

#: Seconds between two looks; with nothing done since the last one nothing happens.
INTERVAL = 60.0


def _trim() -> Callable[[], object] | None:
    """What glibc offers for it: a daemon's threads leave free pages between those in use."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return lambda: trim(0)


async def give_memory_back(head: Callable[[], int], interval: float = INTERVAL) -> None:
    """Now and then, when the journal has grown since, until cancelled."""
    trim = _trim()
    if trim is None:
        return
    seen = head()
    while True:
        await anyio.sleep(interval)
        if head() != seen:
            seen = head()
            # It takes milliseconds, without the interpreter's lock.
            await anyio.to_thread.run_sync(trim)
