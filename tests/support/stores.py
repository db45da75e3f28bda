"""Stores for tests, and what to put into them."""

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from acphost.journal.event import Draft, EventRow
from acphost.journal.feed import Batch
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.journal.store import Store, open_store
from acphost.journal.writer import WriterOptions
from tests.support.patience import PATIENCE

Row = TypeVar("Row", SessionRow, RunRow)
_DEFAULTS = WriterOptions()


def now() -> int:
    """The moment at which all tests take place."""
    return 1_764_490_000_000


@asynccontextmanager
async def opened(path: Path, options: WriterOptions = _DEFAULTS) -> AsyncGenerator[Store]:
    """A store whose writer runs; whatever is done with it ends."""
    async with (
        open_store(path, now=now, options=options) as store,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(store.writer.run)
        with anyio.fail_after(PATIENCE):
            yield store
        tasks.cancel_scope.cancel()


async def all_events(reader: Reader) -> list[EventRow]:
    """The whole journal."""
    return await reader.events_after_offset(0, limit=100_000, max_bytes=1 << 30)


async def events_of(reader: Reader, session_key: int) -> list[EventRow]:
    """The whole history of a session."""
    return await reader.events_after_seq(session_key, 0, limit=100_000, max_bytes=1 << 30)


def session_row(key: int = 1, **changes: object) -> SessionRow:
    """A session of that key; `sess_<key>`."""
    row = SessionRow(
        key=key, session_id=f"sess_{key}", agent_id="hermes", runtime="hermes", profile="default",
        workspace_id="local:a", cwd="/", actor_id="uid:1", created_at=key, updated_at=key,
    )  # fmt: skip
    return _changed(row, changes)


def run_row(key: int, session_key: int = 1, **changes: object) -> RunRow:
    """A run of that key; `run_<key>`."""
    row = RunRow(
        key=key, session_key=session_key, run_id=f"run_{key}", session_id=f"sess_{session_key}",
        request_id=f"q{key}", agent_id="hermes", provider="acp_hermes", profile="default",
        actor_id="uid:1", workspace_id="local:a", queue_order=key, created_at=key, updated_at=key,
    )  # fmt: skip
    return _changed(row, changes)


def _changed(row: Row, changes: dict[str, object]) -> Row:
    for name, value in changes.items():
        setattr(row, name, value)
    return row


def chunks(count: int, size: int = 0) -> list[Draft]:
    """Drafts of text, each different."""
    return [Draft("message.delta", b'"%d%b"' % (place, b"x" * size)) for place in range(count)]


class Listener:
    """Keeps the rows it is given, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[EventRow]] = []

    def deliver(self, batch: Batch) -> None:
        """What the feed calls."""
        self.batches.append(batch.rows)

    @property
    def rows(self) -> list[EventRow]:
        """All of them."""
        return [row for rows in self.batches for row in rows]


class Gate:
    """Holds transactions inside the writer's thread until it is opened."""

    def __init__(self) -> None:
        self.passed = 0
        self._arrived = threading.Event()
        self._open = threading.Event()

    def __call__(self) -> None:
        """What the writer calls."""
        self._arrived.set()
        assert self._open.wait(PATIENCE)
        self.passed += 1

    async def reached(self) -> None:
        """Return when a transaction is held."""
        assert await anyio.to_thread.run_sync(self._arrived.wait, PATIENCE)

    def open(self) -> None:
        """Let this one pass, and all that follow."""
        self._open.set()
