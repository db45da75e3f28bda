"""What the store's trouble is called, whether it can pass, and who waits for that."""

import math
import sqlite3
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import anyio

from acphost.errors import HostError, StorageError, StorageFullError
from acphost.ids import Clock


class StorageState(StrEnum):
    """Whether commits go through."""

    OK = "ok"
    FULL = "full"
    ERROR = "error"


class StorageHealth(NamedTuple):
    """State of the store, why, and since when (milliseconds since the epoch)."""

    state: StorageState = StorageState.OK
    reason: str | None = None
    since: int | None = None

    @property
    def reason_to_wait(self) -> str:
        """Why agents are not listened to, where there is no room for what they say."""
        waits = "the agent waits with what it has to say"
        if self.state is StorageState.OK:
            return f"{waits}: the disk is slow"
        return f"{waits}: the store cannot be written ({self.reason})"

    def error(self) -> HostError:
        """The state as what a client is told."""
        text = f"cannot write to the store: {self.reason}; it is tried again until it works"
        if self.state is StorageState.FULL:
            return StorageFullError(text, since=self.since)
        return StorageError(text, since=self.since)


class WalState(NamedTuple):
    """The write-ahead log: its size in bytes, and how far behind the database file is."""

    bytes: int = 0
    checkpointed_at: int | None = None
    #: Something was committed since it was last emptied.
    is_behind: bool = False
    #: A reader that does not end kept it from being emptied.
    is_starved: bool = False
    #: It is bigger than it is meant to become.
    is_over: bool = False


class Trouble(NamedTuple):
    """Why one commit failed; `is_busy` if only because somebody else is writing."""

    state: StorageState
    reason: str
    is_busy: bool = False


_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_PASSING = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


def trouble(exc: Exception) -> Trouble | None:
    """What a failed commit means for the store; None if it is a mistake in the program."""
    if isinstance(exc, StorageFullError):
        return Trouble(StorageState.FULL, str(exc))
    if isinstance(exc, StorageError):
        return Trouble(StorageState.ERROR, str(exc))
    if not isinstance(exc, sqlite3.OperationalError):
        return None
    extended: int | None = getattr(exc, "sqlite_errorcode", None)
    if extended is None:
        return None
    code = extended & 0xFF
    if code in _BUSY:
        return Trouble(StorageState.ERROR, f"another program holds its lock ({exc})", is_busy=True)
    if code not in _PASSING:
        return None
    # A file size limit is reported as a failed write, not as a full disk.
    is_full = code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_WRITE
    return Trouble(StorageState.FULL if is_full else StorageState.ERROR, str(exc))


class Watch:
    """Whether commits go through, and a turn to take for all who wait for any change."""

    def __init__(
        self, patience: float, on_health: Callable[[StorageHealth], None] | None, now: Clock
    ) -> None:
        self.health = StorageHealth()
        #: When those who wait are to be told, by the loop's clock.
        self.patience_ends = math.inf
        self._patience = patience
        self._on_health = on_health
        self._now = now
        #: There only while somebody waits: most commits of a stream have nobody to wake.
        self._turn: anyio.Event | None = None

    async def turn(self) -> None:
        """Return when something may have changed."""
        if self._turn is None:
            self._turn = anyio.Event()
        await self._turn.wait()

    def take_turn(self) -> None:
        """Let all who wait look again."""
        if self._turn is not None:
            self._turn.set()
            self._turn = None

    def degrade(self, problem: Trouble) -> None:
        """A commit failed; tells, unless that is known already."""
        known = self.health
        if (known.state, known.reason) == (problem.state, problem.reason):
            return
        if known.state is StorageState.OK:
            self.patience_ends = anyio.current_time() + self._patience
        since = self._now() if known.since is None else known.since
        self._change(StorageHealth(problem.state, problem.reason, since))

    def recover(self) -> None:
        """A commit went through; tells, if that is news."""
        if self.health.state is not StorageState.OK:
            self.patience_ends = math.inf
            self._change(StorageHealth())

    def _change(self, health: StorageHealth) -> None:
        self.health = health
        self.take_turn()
        if self._on_health is not None:
            self._on_health(health)
