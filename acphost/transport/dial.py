"""The way to a Unix socket, for clients: nothing here needs a log or more than a socket."""

import os
import socket
import sys
from pathlib import Path

import anyio

from acphost.errors import DaemonUnreachableError, SocketPathError
from acphost.transport.socket_stream import SocketStream

#: Bytes that fit into `sockaddr_un`, without the NUL behind them.
MAX_PATH = 103 if sys.platform == "darwin" else 107

_CONNECT_PAUSE = 0.01


def check_path(path: Path) -> None:
    """Raises SocketPathError, with length and cure, if `path` is too long for a socket."""
    length = len(os.fsencode(path))
    if length > MAX_PATH:
        raise SocketPathError(
            f"socket path {path} has {length} bytes, and this system allows {MAX_PATH}; "
            "choose a shorter one with `--socket`, ACPHOST_SOCKET or `socket` in the configuration",
            path=str(path),
            length=length,
            limit=MAX_PATH,
        )


async def connect(path: Path) -> SocketStream:
    """Connect to the daemon at `path`.

    Raises DaemonUnreachableError, or SocketPathError if no socket can be there.
    """
    check_path(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        while not _connected(connection, path):  # noqa: ASYNC110 - nothing to wait for
            await anyio.sleep(_CONNECT_PAUSE)
        stream = SocketStream(connection)
    except OSError as exc:
        connection.close()
        raise DaemonUnreachableError(
            f"no daemon answers on {path}: {exc.strerror}", path=str(path)
        ) from exc
    except BaseException:
        connection.close()
        raise
    if stream.peer_uid not in {os.geteuid(), 0} and os.geteuid() != 0:
        stream.close()
        raise DaemonUnreachableError(
            f"the socket {path} belongs to another user (uid {stream.peer_uid})", path=str(path)
        )
    return stream


def _connected(connection: socket.socket, path: Path) -> bool:
    try:
        connection.connect(os.fspath(path))
    except BlockingIOError:  # the backlog is full, and nothing will tell when it is not
        return False
    return True
