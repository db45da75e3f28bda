"""The lock that makes a daemon the only one of its state directory."""

import fcntl
import os
import stat
from pathlib import Path

from acphost.errors import AlreadyRunningError, StartError, StateFolderError
from acphost.transport.private import PASSING, private_directory

LOCK_NAME = "daemon.lock"


class StateLock:
    """Held from `acquire` to `release`, at the latest until the process ends.

    The file is never removed: whoever had opened it before could lock a file without a name
    while somebody else locks its successor.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, state_dir: Path) -> "StateLock":
        """Lock `state_dir`, which is made with mode 0700 if missing.

        Raises AlreadyRunningError with the holder's pid; StateFolderError, or StartError where
        another start may help, if it cannot be locked.
        """
        private_directory(state_dir)
        path = state_dir / LOCK_NAME
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as exc:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise _already_running(state_dir, holder) from exc
        except OSError as exc:
            os.close(descriptor)
            raise StartError(f"cannot lock {path}: {exc.strerror}") from exc
        return cls(descriptor)

    def announce(self, socket: Path) -> None:
        """Write down where clients are served from now on; before, the daemon is starting."""
        if self._descriptor is not None:
            os.pwrite(self._descriptor, f"{os.getpid()}\n{socket}\n".encode(errors="replace"), 0)

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def starting_daemon(state_dir: Path) -> int | None:
    """The pid of the daemon that has the lock and serves no clients yet."""
    holder = lock_holder(state_dir)
    return holder if holder is not None and _announced(state_dir) == "" else None


def stranded_daemon(state_dir: Path, socket: Path) -> int | None:
    """The pid of the daemon that serves clients at `socket` and whose file there has gone."""
    holder = lock_holder(state_dir)
    is_its = holder is not None and _announced(state_dir) == str(socket)
    return holder if is_its and not os.path.lexists(socket) else None


def _announced(state_dir: Path) -> str | None:
    """The socket that is written down beside the lock; empty: none yet."""
    try:
        lines = (state_dir / LOCK_NAME).read_bytes().splitlines()
    except OSError:
        return None
    return os.fsdecode(lines[1]) if len(lines) > 1 else ""


def lock_holder(state_dir: Path) -> int | None:
    """The pid of the daemon that holds the lock of `state_dir`; None if nobody holds it."""
    try:
        descriptor = os.open(state_dir / LOCK_NAME, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as exc:
        kind = StartError if exc.errno in PASSING else StateFolderError
        raise kind(f"cannot open lock file {path}: {exc.strerror}") from exc
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise StateFolderError(f"cannot use lock file {path}: it is not a regular file of ours")
    return descriptor


def _holder(descriptor: int) -> int | None:
    text, _, _ = os.pread(descriptor, 32, 0).partition(b"\n")
    return int(text) if text.isdigit() else None


def _already_running(state_dir: Path, holder: int | None) -> AlreadyRunningError:
    # No pid yet: it has taken the lock this very moment.
    who = "another daemon" if holder is None else f"the daemon with pid {holder}"
    return AlreadyRunningError(
        f"{who} already serves {state_dir}; stop it with `acphost stop`", pid=holder
    )
