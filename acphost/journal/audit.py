"""A store as a check sees it: opened to read only, at one moment, trusting nothing in it."""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from acphost.errors import StorageError, StoreRefusedError
from acphost.journal.audit_selects import (
    DECISIONS,
    EVENTS,
    LIVE_BINDINGS,
    PLAIN_EVENTS,
    REPEATED_KEYS,
    RUNS,
    SEALED_EVENTS,
    SEALED_RUNS,
    SEALED_STRAYS,
    SEGMENTS,
    SESSIONS,
    SHAPES,
    STRAYS,
    UNENDED,
    AuditedBinding,
    AuditedDecision,
    AuditedEvent,
    AuditedProcess,
    AuditedRun,
    AuditedSegment,
    AuditedSession,
)
from acphost.journal.event import EventRow
from acphost.journal.file import SCHEMA_VERSION, check_identity, check_size
from acphost.journal.history import Bounds, History
from acphost.journal.migrations import DESCENDING, MIGRATIONS, PACKING, migrate, schema_version
from acphost.journal.packs import PACK, StoredRow, unpacked
from acphost.journal.segment_cache import SegmentCache
from acphost.journal.segments import SealedRun, SegmentHead

#: Steps of SQLite's machine between two calls that tell a person it is still at work.
_STEPS = 2_000_000
_LOCK_SECONDS = 5.0

#: The schema that brought segments.
_SEALING = 2
#: The events of a store whose schema knows no packs.
_UNPACKED = "CREATE TEMP VIEW events AS SELECT *, 1 AS events FROM main.events"
#: Stray rows of one sort that are named.
_NAMED = 20


class Audit:
    """One moment of a store. Raises StorageError where it cannot be read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # -- the file ---------------------------------------------------------------------------------

    def schema_version(self) -> int:
        """The number of the last migration it has seen."""
        return schema_version(self._connection)

    def meta(self) -> dict[str, object]:
        """What the store says of itself."""
        return {str(name): value for name, value in self.rows("SELECT name, value FROM meta")}

    def damage(self, limit: int, on_step: Callable[[], None] | None = None) -> list[str]:
        """What SQLite finds wrong with pages, indexes and types."""
        self._connection.set_progress_handler(on_step, _STEPS)
        try:
            found = [str(row[0]) for row in self.rows(f"PRAGMA integrity_check({limit:d})")]
        finally:
            self._connection.set_progress_handler(None, 0)
        return [] if found == ["ok"] else found

    def pages(self) -> int:
        """How many pages it has."""
        ((number,),) = self.rows("PRAGMA page_count")
        return int(str(number))

    def unlike_schema(self) -> list[str]:
        """Tables and indexes that are missing or not as our migrations make them."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
            known = [each for each in MIGRATIONS if each.number <= self.schema_version()]
            migrate(model, at=0, migrations=known)
            wanted: dict[str, object] = dict(model.execute(SHAPES).fetchall())
        found = {str(name): sql for name, sql in self.rows(SHAPES)}
        missing = [f"{name} is missing" for name in wanted if name not in found]
        other = [
            f"{name} is not as it was made"
            for name in wanted
            if name in found and _squeezed(found[name]) != _squeezed(wanted[name])
        ]
        return missing + other

    def count(self, table: str) -> int:
        """How many rows a table has."""
        ((number,),) = self.rows(f"SELECT count(*) FROM {table}")  # noqa: S608  our own name
        return int(str(number))

    # -- what is in it ----------------------------------------------------------------------------

    def sessions(self) -> list[AuditedSession]:
        """Every session."""
        return [AuditedSession._make(row) for row in self.rows(SESSIONS)]

    def events(self, session_key: int | None) -> Iterator[AuditedEvent]:
        """The plain events of a session, or (None) those of the host, by seq."""
        history = History(self._connection, SegmentCache())
        for *row, events in self.rows(EVENTS, session_key):
            event = AuditedEvent._make(row)
            if event.codec == PACK and event.seq is not None:
                yield from _events_of(event, int(str(events)))
                continue
            if events != 1:
                raise StorageError(f"seq {event.seq} is one event, and says it is {events}")
            if event.codec and session_key is not None and event.seq is not None:
                event = event._replace(payload=self._exact(history, session_key, event.seq))
            yield event

    def _exact(self, history: History, session_key: int, seq: int) -> bytes:
        """The payload of a packed event as it was appended."""
        try:
            (row,) = history.after_seq(session_key, seq - 1, Bounds(1, 1, seq))
        except (StorageError, sqlite3.Error, ValueError) as exc:
            raise StorageError(f"cannot unpack seq {seq}: {exc}") from exc
        return row.payload

    def segments(self, session_key: int) -> Iterator[AuditedSegment]:
        """The segments of a session; its plain events come after them."""
        if not self.has_segments:
            return
        for *head, events, raw_bytes, facts, payloads in self.rows(SEGMENTS, session_key):
            yield AuditedSegment._make(
                (SegmentHead._make(head), events, raw_bytes, facts, payloads)
            )

    def sealed_runs(self, first_offset: int) -> list[SealedRun]:
        """What a segment is said to have of which runs."""
        return [SealedRun._make(row) for row in self.rows(SEALED_RUNS, first_offset)]

    def count_events(self) -> int:
        """How many events it should have, sealed ones too."""
        ((number,),) = self.rows(PLAIN_EVENTS)
        plain = int(str(number))
        if not self.has_segments:
            return plain
        ((sealed,),) = self.rows(SEALED_EVENTS)
        return plain + int(str(sealed))

    @property
    def has_segments(self) -> bool:
        """Whether its schema knows sealed events."""
        return self.schema_version() >= _SEALING

    def runs(self, session_key: int) -> list[AuditedRun]:
        """The runs of a session."""
        return [AuditedRun._make(row) for row in self.rows(RUNS, session_key)]

    def decisions(self, session_key: int) -> list[AuditedDecision]:
        """The decisions of a session."""
        return [AuditedDecision._make(row) for row in self.rows(DECISIONS, session_key)]

    def live_bindings(self) -> list[AuditedBinding]:
        """Bindings that nobody ended."""
        return [AuditedBinding._make(row) for row in self.rows(LIVE_BINDINGS)]

    def unended_processes(self) -> list[AuditedProcess]:
        """Launches that were not seen to end."""
        seen = "descendants" if self.schema_version() >= DESCENDING else "NULL"
        return [AuditedProcess._make(row) for row in self.rows(UNENDED.format(seen))]

    def strays(self) -> list[tuple[str, str]]:
        """Rows whose owner is missing: what they are, and which."""
        known = STRAYS | SEALED_STRAYS if self.has_segments else STRAYS
        return [
            (what, str(name))
            for what, sql in known.items()
            for (name,) in self.rows(f"{sql} LIMIT {_NAMED}")
        ]

    def repeated_keys(self) -> list[tuple[str, str]]:
        """Idempotency keys of more than one run, and those runs."""
        return [(str(key), str(runs)) for key, runs in self.rows(REPEATED_KEYS)]

    def rows(self, sql: str, *parameters: object) -> Iterator[Sequence[object]]:
        """Rows as they are read. Raises StorageError."""
        try:
            yield from self._connection.execute(sql, parameters)
        except sqlite3.Error as exc:
            raise StorageError(f"cannot read it: {exc}") from exc


def _events_of(pack: AuditedEvent, events: int) -> Iterator[AuditedEvent]:
    row = EventRow(
        pack.offset, None, pack.seq, pack.run_key, pack.kind, "", pack.codec, pack.flags,
        pack.payload, pack.host, pack.origin, 0,
    )  # fmt: skip
    try:
        rows = unpacked(StoredRow(row, events))
    except ValueError as exc:
        raise StorageError(f"cannot unpack seq {pack.seq}: {exc}") from exc
    for each in rows:
        yield pack._replace(offset=each.offset, seq=each.seq, codec=0, payload=each.payload)


def _squeezed(sql: object) -> str:
    return " ".join(str(sql).replace('"', "").split())


@contextmanager
def audit(path: Path) -> Generator[Audit]:
    """The store at `path` as it is now, whoever goes on writing to it meanwhile.

    Raises StoreRefusedError for what is no store, or one of a newer program.
    """
    with closing(open_to_read(path)) as connection:
        if schema_version(connection) < PACKING:
            # In front of the table it stands for; nothing is written but in this connection.
            connection.executescript(
                f"PRAGMA query_only = OFF; {_UNPACKED}; PRAGMA query_only = ON"
            )
        connection.execute("BEGIN")
        yield Audit(connection)


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises StoreRefusedError for what is no store of ours."""
    check_size(path)
    try:
        connection = _connected(path, "mode=ro")
    except sqlite3.OperationalError as exc:
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise _unreadable(path, exc) from exc
        try:
            # Where nothing may be written not even the index of an empty WAL can be made.
            connection = _connected(path, "immutable=1")
        except sqlite3.Error as again:
            raise _unreadable(path, again) from again
    except sqlite3.Error as exc:
        raise _unreadable(path, exc) from exc
    try:
        check_identity(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(path: Path, option: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{option}",
        uri=True,
        timeout=_LOCK_SECONDS,
        isolation_level=None,
    )
    try:
        # A text of a damaged store may be anything; it is to be told, not to be tripped over.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA query_only = ON").close()
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _unreadable(path: Path, exc: sqlite3.Error) -> StoreRefusedError:
    return StoreRefusedError(f"cannot read {path}: {exc}", path=str(path), known=SCHEMA_VERSION)
