"""One connection of a Unix socket, both ways, without buffers of its own."""

import socket
import struct
import sys
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio

from acphost.errors import ConnectionLostError

RECEIVE_SIZE = 256 * 1024
#: What the kernel may hold for a peer that is not reading just now, where the system lets us: the
#: default is a few milliseconds of a flood, and 8 KiB on macOS.
_SEND_ROOM = 512 * 1024


class SocketStream:
    """A connected socket. One task may receive and one may send at the same time."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with suppress(OSError):  # macOS refuses if the peer has already gone
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_ROOM)
        self._socket = connection
        self._is_closed = False
        self.peer_uid = peer_uid(connection)

    async def receive(self) -> bytes:
        """What has come, at most 256 KiB; b"" once the peer or we have closed."""
        while not self._is_closed:
            try:
                await anyio.wait_readable(self._socket)
                return b"" if self._is_closed else self._socket.recv(RECEIVE_SIZE)
            except BlockingIOError:
                continue
            except (anyio.ClosedResourceError, OSError):
                # A reset says no more than an end: the peer is gone.
                return b""
        return b""

    def try_send(self, data: bytes | memoryview) -> int:
        """How many bytes the kernel took, 0 when it would block.

        Raises ConnectionLostError if the peer or we have closed.
        """
        if self._is_closed:
            raise ConnectionLostError("the connection is closed")
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as exc:
            raise ConnectionLostError(f"the peer is gone: {exc.strerror}") from exc

    async def writable(self) -> None:
        """Returns when `try_send` may take something. Raises ConnectionLostError."""
        if self._is_closed:
            raise ConnectionLostError("the connection is closed")
        try:
            await anyio.wait_writable(self._socket)
        except (anyio.ClosedResourceError, OSError) as exc:
            raise ConnectionLostError("the connection was closed") from exc

    async def send(self, data: bytes) -> None:
        """Send all of `data`. Raises ConnectionLostError.

        Cancelled in the middle of it, the connection is closed: half a line would spoil the next.
        """
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self.try_send(rest) :]
                if rest:
                    await self.writable()
        finally:
            if 0 < len(rest) < len(data):
                self.close()

    def end_sending(self) -> None:
        """Let the peer see the end while we still receive."""
        with suppress(OSError):  # already gone
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close; who waits is woken. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            anyio.notify_closing(self._socket)
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def peer_uid(connection: socket.socket) -> int:
    """The user who connected, or who listens if we connected. Raises OSError."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
        )
        _, uid, _ = struct.unpack("iII", credentials)
        return int(uid)
    # SOL_LOCAL and LOCAL_PEERCRED, which Python does not name: a struct xucred.
    credentials = connection.getsockopt(0, 1, 76)
    _, uid = struct.unpack_from("=II", credentials)
    return int(uid)


def peer_pid(connection: socket.socket) -> int | None:
    """The process at the other end where the system tells (Linux)."""
    if sys.platform != "linux":
        return None
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII")
    )
    pid, _, _ = struct.unpack("iII", credentials)
    return int(pid) or None
