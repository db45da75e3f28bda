"""The Unix socket: private from its first instant, never somebody else's."""

import errno
import fcntl
import os
import socket
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio

from acphost.errors import SocketPathError
from acphost.log import get_logger
from acphost.transport.dial import check_path
from acphost.transport.private import private_directory
from acphost.transport.socket_stream import SocketStream, peer_pid, peer_uid

__all__ = ["Listener", "SocketStream", "accept_loop", "bind", "peer_uid"]

_BACKLOG = 128
#: What `accept` may run out of; the waiting connection stays in the backlog.
_SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_ACCEPT_PAUSE = 0.1
#: How often, and with which pause (seconds) after each, a socket has to refuse to count as stale:
#: macOS refuses also where a backlog is full, which takes a daemon that lives but a moment.
_REFUSALS, _REFUSAL_PAUSE = (1, 0.0) if sys.platform == "linux" else (10, 0.05)

log = get_logger()


# -- listening ------------------------------------------------------------------------------------


class Listener:
    """A bound socket and the file that is its name."""

    def __init__(self, bound: socket.socket, path: Path, *, is_ours: bool = True) -> None:
        """`is_ours`: we made the file and remove it; else a service manager keeps it."""
        self.socket = bound
        self.path = path
        self.is_ours = is_ours
        self._identity = _identity(path)
        self.is_closed = False

    def in_place(self) -> bool:
        """Whether the name still leads to us."""
        return _identity(self.path) == self._identity

    def close(self) -> None:
        """Remove the file if it is still ours, and stop listening."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            if self.is_ours:
                self._remove()
        except (OSError, SocketPathError) as exc:
            log.warning("socket_not_removed", path=str(self.path), reason=str(exc))
        finally:
            # Who waits for clients is woken: the descriptor's number will be somebody else's.
            with suppress(anyio.NoEventLoopError):  # then nobody waits
                anyio.notify_closing(self.socket)
            self.socket.close()

    def _remove(self) -> None:
        # Before the socket is closed: as long as it is open no other file gets our inode.
        with _sole_binder(self.path):
            if self.in_place():
                self.path.unlink()


def bind(path: Path) -> Listener:
    """Listen on `path`, in a directory that is ours alone.

    Raises SocketPathError with the reason; a file that is in the way is removed only if it is a
    socket of ours to which nobody listens any more.
    """
    check_path(path)
    private_directory(path.parent, SocketPathError)
    try:
        with _sole_binder(path):
            _clear(path)
            return Listener(_bound(path), path)
    except OSError as exc:
        raise SocketPathError(f"cannot listen on {path}: {exc.strerror}", path=str(path)) from exc


@contextmanager
def _sole_binder(path: Path) -> Iterator[None]:
    """Between two daemons at the same path, one looks and acts while the other waits outside."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as exc:
        raise SocketPathError(f"another daemon is about to use {path}; try again") from exc
    finally:
        os.close(descriptor)


def _clear(path: Path) -> None:
    """Remove a stale socket. Raises SocketPathError if something else is there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    problem = _in_the_way(path, found)
    if problem is not None:
        raise SocketPathError(f"cannot listen on {path}: {problem}", path=str(path))
    path.unlink()


def _in_the_way(path: Path, found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link is in the way; remove it"
    if not stat.S_ISSOCK(found.st_mode):
        return "a file that is no socket is in the way; move it elsewhere"
    if found.st_uid != os.geteuid():
        return f"a socket of uid {found.st_uid} is in the way"
    for _ in range(_REFUSALS):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                time.sleep(_REFUSAL_PAUSE)
                continue
            except OSError as exc:
                return f"a socket is in the way that may be in use ({exc.strerror})"
            pid = peer_pid(probe)
            return "another program listens there" + (f" (pid {pid})" if pid else "")
    return None  # the one sign that whoever bound it is gone


def _bound(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        umask = os.umask(0o177)
        try:
            bound.bind(os.fspath(path))
        finally:
            os.umask(umask)
        bound.listen(_BACKLOG)
    except BaseException:
        bound.close()
        raise
    return bound


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# -- connections ----------------------------------------------------------------------------------


async def accept_loop(
    listener: Listener, handler: Callable[[SocketStream], Awaitable[None]]
) -> None:
    """Run `handler` for each connection of our own user, until the listener is closed.

    Returns when the last of them has ended.

    What goes wrong with one connection ends that one. The stream is closed when its handler ends.
    """
    is_short = False
    async with anyio.create_task_group() as connections:
        # It may be closed before this has begun, or between two turns of the loop in here.
        while not listener.is_closed:
            try:
                await anyio.wait_readable(listener.socket)
            except anyio.ClosedResourceError:
                return
            if listener.is_closed:
                return
            try:
                accepted, _ = listener.socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError as exc:
                if exc.errno not in _SHORT_OF:
                    raise
                if not is_short:
                    log.warning("cannot_accept", reason=exc.strerror)
                is_short = True
                # It stays readable: without a pause this would be a busy loop.
                await anyio.sleep(_ACCEPT_PAUSE)
                continue
            is_short = False
            connections.start_soon(_serve, accepted, handler)


async def _serve(
    accepted: socket.socket, handler: Callable[[SocketStream], Awaitable[None]]
) -> None:
    with accepted:
        try:
            stream = SocketStream(accepted)
        except OSError:  # it had hung up before: macOS does not tell any more who it was
            return
        try:
            with stream:
                if stream.peer_uid == os.geteuid():
                    await handler(stream)
                else:
                    log.warning("stranger_refused", uid=stream.peer_uid)
        except Exception:  # border: one connection may not end the listener
            log.exception("connection_failed")
