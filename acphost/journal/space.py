"""How much room the store takes, what it holds, and how it gives room back."""

import sqlite3
from typing import NamedTuple

from acphost.journal.history import snapshot

#: Pages that are given back at a time.
STEP = 256
#: As much is kept for what is written next: pages, and a share of the file.
_KEPT_PAGES = 64
_KEPT_SHARE = 0.05
#: What SQLite calls a file that gives room back when it is told to.
_INCREMENTAL = 2


class Space(NamedTuple):
    """Figures of the store, in bytes unless said otherwise."""

    #: Of the file once the WAL is written back, and of it what is free.
    bytes: int
    free_bytes: int
    can_shrink: bool
    segments: int
    sealed_events: int
    #: Of segments, and of the payloads they hold.
    sealed_bytes: int
    sealed_raw_bytes: int

    @property
    def used_bytes(self) -> int:
        """What is not free."""
        return self.bytes - self.free_bytes


_SEALED = (
    "SELECT count(*), coalesce(sum(events), 0), coalesce(sum(bytes), 0),"
    " coalesce(sum(raw_bytes), 0) FROM segments"
)


def read_space(connection: sqlite3.Connection) -> Space:
    """The figures at this moment."""

    def pragma(name: str) -> int:
        value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    with snapshot(connection):
        sealed = connection.execute(_SEALED).fetchone()
        pages, free, size = pragma("page_count"), pragma("freelist_count"), pragma("page_size")
        is_willing = pragma("auto_vacuum") == _INCREMENTAL
    can_shrink = is_willing and free > _KEPT_PAGES + _KEPT_SHARE * pages
    return Space(pages * size, free * size, can_shrink, *sealed)


# -- sessions -------------------------------------------------------------------------------------


class Holding(NamedTuple):
    """A session that does nothing and that nobody keeps: what could be deleted."""

    session_id: str
    agent_id: str
    title: str | None
    updated_at: int
    #: What it takes, about.
    bytes: int


# An event costs its own bytes, and about a hundred for its row and its place in three indexes.
_HOLDINGS = """
    SELECT t.session_id, t.agent_id, t.title, t.updated_at,
        coalesce((SELECT sum(g.bytes) FROM segments g WHERE g.session_key = t.key), 0)
        + coalesce((
            SELECT sum(length(e.payload) + coalesce(length(e.host), 0)
                + coalesce(length(e.origin), 0) + 100)
            FROM events e WHERE e.session_key = t.key), 0)
        + coalesce((
            SELECT sum(length(p.content) + 500)
            FROM runs r JOIN prompts p ON p.run_key = r.key WHERE r.session_key = t.key), 0)
    FROM sessions t
    WHERE NOT t.pinned AND t.active_run_id IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs q
        WHERE q.session_key = t.key AND q.status IN ('pending', 'running')
    )
    ORDER BY t.updated_at, t.key
"""


def read_holdings(connection: sqlite3.Connection) -> list[Holding]:
    """Sessions that are neither pinned, nor active, nor have a queue; the longest unused first."""
    return [Holding._make(row) for row in connection.execute(_HOLDINGS)]
