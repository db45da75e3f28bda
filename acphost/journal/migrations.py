"""The shape of the store, as numbered steps that only go forward."""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple


class Migration(NamedTuple):
    """One step: applied once, whole, with a record of itself."""

    number: int
    name: str
    statements: tuple[str, ...]


_FIRST = Migration(
    1,
    "sessions, runs and their events",
    (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT",
        """
        CREATE TABLE migrations (
            number INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            at INTEGER NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE sessions (
            key INTEGER PRIMARY KEY,
            session_id TEXT NOT NULL UNIQUE,
            agent_id TEXT NOT NULL,
            runtime TEXT NOT NULL,
            profile TEXT NOT NULL,
            title TEXT,
            workspace_id TEXT NOT NULL,
            cwd TEXT NOT NULL,
            document_id TEXT,
            actor_id TEXT NOT NULL,
            pinned INTEGER NOT NULL,
            status TEXT NOT NULL,
            status_reason TEXT,
            mode TEXT NOT NULL,
            continuity_code TEXT NOT NULL,
            continuity_reason TEXT,
            acp_session_id TEXT,
            resolved_model TEXT,
            additional_directories BLOB NOT NULL,
            mcp_servers BLOB NOT NULL,
            active_run_id TEXT,
            held_reason TEXT,
            queue_rev INTEGER NOT NULL,
            last_run_status TEXT,
            load_status TEXT,
            load_attempted INTEGER NOT NULL,
            replay_seen INTEGER NOT NULL,
            replay_seq INTEGER,
            replay_count INTEGER NOT NULL,
            supports_load INTEGER NOT NULL,
            supports_resume INTEGER NOT NULL,
            cold_packet_bytes INTEGER,
            cold_truncated_reason TEXT,
            settings BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL
        ) STRICT
        """,
        # In the order of a listing: those with an active run first, then the latest.
        """
        CREATE INDEX sessions_listed
            ON sessions ((active_run_id IS NULL), (-updated_at), (-key))
        """,
        """
        CREATE TABLE runs (
            key INTEGER PRIMARY KEY,
            run_id TEXT NOT NULL UNIQUE,
            session_key INTEGER NOT NULL,
            session_id TEXT NOT NULL,
            request_id TEXT NOT NULL,
            idempotency_key TEXT UNIQUE,
            fingerprint TEXT,
            agent_id TEXT NOT NULL,
            provider TEXT NOT NULL,
            profile TEXT NOT NULL,
            provider_run_id TEXT,
            actor_id TEXT NOT NULL,
            client_id TEXT,
            client_name TEXT,
            workspace_id TEXT NOT NULL,
            document_id TEXT,
            parent_run_id TEXT,
            resume_request_id TEXT,
            status TEXT NOT NULL,
            queue_order INTEGER NOT NULL,
            queue_rev INTEGER NOT NULL,
            preview TEXT NOT NULL,
            context_refs BLOB NOT NULL,
            target BLOB,
            target_hash TEXT,
            capability_hash TEXT,
            stop_reason TEXT,
            error_code TEXT,
            error TEXT,
            is_empty INTEGER NOT NULL,
            continuity TEXT,
            acp_session_id TEXT,
            cancel_requested_at INTEGER,
            hold_after INTEGER NOT NULL,
            first_seq INTEGER,
            last_seq INTEGER,
            terminal_seq INTEGER,
            dismissed_at INTEGER,
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            ended_at INTEGER,
            updated_at INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX runs_by_session ON runs (session_key, key)",
        """
        CREATE INDEX runs_live ON runs (session_key, queue_order)
            WHERE status IN ('pending', 'running')
        """,
        """
        CREATE INDEX runs_interrupted ON runs (session_key, key)
            WHERE status = 'interrupted' AND dismissed_at IS NULL
        """,
        """
        CREATE UNIQUE INDEX runs_resumed ON runs (parent_run_id, resume_request_id)
            WHERE parent_run_id IS NOT NULL
        """,
        "CREATE TABLE prompts (run_key INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT",
        """
        CREATE TABLE decisions (
            permission_id TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            session_key INTEGER NOT NULL,
            session_id TEXT NOT NULL,
            run_key INTEGER,
            run_id TEXT,
            tool_call_key TEXT,
            options BLOB NOT NULL,
            request BLOB NOT NULL,
            status TEXT NOT NULL,
            outcome TEXT,
            option_id TEXT,
            by BLOB,
            rule TEXT,
            created_at INTEGER NOT NULL,
            resolved_at INTEGER,
            expires_at INTEGER
        ) STRICT
        """,
        "CREATE INDEX decisions_by_session ON decisions (session_key)",
        "CREATE INDEX decisions_pending ON decisions (session_key) WHERE status = 'pending'",
        """
        CREATE TABLE bindings (
            binding_id TEXT PRIMARY KEY,
            session_key INTEGER NOT NULL,
            acp_session_id TEXT,
            launch_id TEXT,
            mode TEXT NOT NULL,
            status TEXT NOT NULL,
            reason TEXT,
            run_id TEXT,
            created_at INTEGER NOT NULL,
            ended_at INTEGER
        ) STRICT
        """,
        "CREATE INDEX bindings_by_session ON bindings (session_key)",
        "CREATE INDEX bindings_live ON bindings (session_key) WHERE status = 'live'",
        """
        CREATE TABLE processes (
            launch_id TEXT PRIMARY KEY,
            agent_id TEXT NOT NULL,
            session_id TEXT,
            pid INTEGER,
            birth TEXT,
            pgid INTEGER,
            boot_id TEXT,
            host_pid INTEGER,
            command BLOB NOT NULL,
            started_at INTEGER NOT NULL,
            ended_at INTEGER,
            exit_code INTEGER,
            exit_signal INTEGER
        ) STRICT
        """,
        "CREATE INDEX processes_unended ON processes (started_at) WHERE ended_at IS NULL",
        # Events of the host itself have neither session nor seq. A codec other than 0 says how
        # payload is packed; flags are those of `event`.
        """
        CREATE TABLE events (
            offset INTEGER PRIMARY KEY,
            session_key INTEGER,
            seq INTEGER,
            run_key INTEGER,
            kind TEXT NOT NULL,
            source TEXT NOT NULL,
            codec INTEGER NOT NULL DEFAULT 0,
            flags INTEGER NOT NULL DEFAULT 0,
            payload BLOB NOT NULL,
            host BLOB,
            origin BLOB,
            at INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE UNIQUE INDEX events_by_session ON events (session_key, seq)",
        "CREATE INDEX events_by_run ON events (run_key) WHERE run_key IS NOT NULL",
    ),
)

_SECOND = Migration(
    2,
    "sealed events",
    (
        # A segment holds the events of one session from first_seq to last_seq, all of them; plain
        # rows of that session come after its segments. `bytes` is what it takes, `raw_bytes` what
        # its payloads are.
        """
        CREATE TABLE segments (
            first_offset INTEGER PRIMARY KEY,
            last_offset INTEGER NOT NULL,
            session_key INTEGER NOT NULL,
            first_seq INTEGER NOT NULL,
            last_seq INTEGER NOT NULL,
            events INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            raw_bytes INTEGER NOT NULL,
            codec INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE UNIQUE INDEX segments_by_session ON segments (session_key, last_seq)",
        "CREATE INDEX segments_by_offset ON segments (last_offset, first_offset, session_key)",
        """
        CREATE TABLE segment_contents (
            first_offset INTEGER PRIMARY KEY,
            facts BLOB NOT NULL,
            payloads BLOB NOT NULL
        ) STRICT
        """,
        # Which runs a segment has events of; terminal_seq is that of the run's one terminal event.
        """
        CREATE TABLE sealed_runs (
            run_key INTEGER NOT NULL,
            first_offset INTEGER NOT NULL,
            last_seq INTEGER NOT NULL,
            terminal_seq INTEGER,
            PRIMARY KEY (run_key, first_offset)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX sealed_runs_by_segment ON sealed_runs (first_offset)",
    ),
)

_THIRD = Migration(
    3,
    "policy and usage",
    (
        "ALTER TABLE sessions ADD COLUMN policy BLOB NOT NULL DEFAULT X'5B5D'",
        "ALTER TABLE sessions ADD COLUMN usage BLOB NOT NULL DEFAULT X'7B7D'",
        "ALTER TABLE runs ADD COLUMN usage BLOB",
    ),
)

_CONTROL_GROUPS = Migration(
    4, "control groups of processes", ("ALTER TABLE processes ADD COLUMN cgroup TEXT",)
)

#: From here on a row of `events` may stand for so many, of which it is the last.
PACKING = 5
_PACKS = Migration(
    PACKING,
    "packs of events",
    ("ALTER TABLE events ADD COLUMN events INTEGER NOT NULL DEFAULT 1",),
)

#: From here on the ledger knows what processes have started.
DESCENDING = 6
_DESCENDANTS = Migration(
    DESCENDING, "descendants of processes", ("ALTER TABLE processes ADD COLUMN descendants TEXT",)
)

MIGRATIONS: tuple[Migration, ...] = (
    _FIRST, _SECOND, _THIRD, _CONTROL_GROUPS, _PACKS, _DESCENDANTS,
)  # fmt: skip


def schema_version(connection: sqlite3.Connection) -> int:
    """The number of the last migration this database has seen; 0 for an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(
    connection: sqlite3.Connection, *, at: int, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Apply what is missing, each step in a transaction of its own."""
    version = schema_version(connection)
    for migration in migrations:
        if migration.number > version:
            _apply(connection, migration, at)


def _apply(connection: sqlite3.Connection, migration: Migration, at: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in migration.statements:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO migrations (number, name, at) VALUES (?, ?, ?)",
            (migration.number, migration.name, at),
        )
        connection.execute(f"PRAGMA user_version = {migration.number:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
