"""Memory that was freed goes back to the system."""

import platform
from pathlib import Path

import anyio
import pytest

from acphost.daemon.memory import give_memory_back
from tests.support.patience import PATIENCE

CHUNK, CHUNKS = 50_000, 1000


def resident() -> int:
    """Bytes of this process that are really there."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
async def test_what_lies_between_things_in_use_is_given_back_once_there_was_work() -> None:
    """Free pages that the allocator would keep, because something lives behind them."""
    head = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give_memory_back, lambda: head, 0.01)
        await anyio.wait_all_tasks_blocked()
        chunks = [bytearray(b"x") * CHUNK for _ in range(CHUNKS)]
        kept = chunks[::20]
        del chunks
        before = resident()
        head += 1
        with anyio.fail_after(PATIENCE):
            while resident() > before - CHUNK * CHUNKS // 2:  # noqa: ASYNC110  a figure
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert len(kept) == CHUNKS // 20
