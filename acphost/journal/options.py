"""How the writer may be set."""

from collections.abc import Callable
from dataclasses import dataclass

from acphost.journal.health import StorageHealth, WalState

WAL_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """Limits of the writer in bytes and seconds, and hooks for tests and health."""

    batch_bytes: int = 1024 * 1024
    budget_bytes: int = 4 * 1024 * 1024
    #: How long a degraded store is waited for before callers are told.
    patience: float = 2.0
    #: How long another program may hold the lock before that counts as degraded.
    lock_grace: float = 10.0
    busy_timeout: float = 1.0
    first_retry: float = 0.05
    last_retry: float = 1.0
    #: After this much quiet the WAL is written back and truncated.
    idle_checkpoint: float = 5.0
    #: Runs on the worker thread inside each transaction; may wait, or raise a storage error.
    before_commit: Callable[[], None] | None = None
    #: Runs on the loop when the store becomes degraded, changes its trouble, or recovers.
    on_health: Callable[[StorageHealth], None] | None = None
    #: The WAL is not meant to become bigger than this.
    wal_limit: Callable[[], int] = lambda: WAL_LIMIT
    #: Runs on the loop after each attempt to empty the WAL, and when it passes its limit.
    on_wal: Callable[[WalState], None] | None = None
