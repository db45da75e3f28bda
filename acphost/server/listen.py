"""The door: who may come in, how many, and that no guest harms the others."""

from contextlib import suppress
from typing import Protocol

import anyio

from acphost.errors import ConnectionLostError, OverloadedError
from acphost.log import get_logger
from acphost.rpc.codec import encode_failure
from acphost.rpc.failures import error_object
from acphost.server.connection import (
    RETRY_AFTER_MS,
    Attendance,
    ClientConnection,
    ConnectionLimits,
)
from acphost.server.host import Host
from acphost.server.methods import Methods
from acphost.transport.unix import Listener, SocketStream, accept_loop

log = get_logger()

#: Seconds after which who has not introduced itself may lose its place to somebody else.
STALE = 0.5


class Doorkeeper(Host, Protocol):
    """The daemon, as the door needs it."""

    @property
    def connection_limits(self) -> ConnectionLimits:
        """What each client is held to."""

    @property
    def max_connections(self) -> int:
        """How many clients there may be."""


async def serve_clients(listener: Listener, host: Doorkeeper, attendance: Attendance) -> None:
    """Admit clients until cancelled."""
    methods = Methods(host)

    async def admit(stream: SocketStream) -> None:
        limit = host.max_connections
        busy = OverloadedError(f"{limit} clients are connected", retryAfterMs=RETRY_AFTER_MS)
        if len(attendance.connections) >= limit and not _make_room(attendance, busy):
            with suppress(ConnectionLostError):  # it has left already
                stream.try_send(encode_failure(None, error_object(busy)))
            return
        connection = ClientConnection(stream, methods, host.connection_limits)
        attendance.connections.add(connection)
        try:
            await connection.run()
        finally:
            attendance.connections.discard(connection)

    await accept_loop(listener, admit)


def _make_room(attendance: Attendance, reason: OverloadedError) -> bool:
    """End the connection that has been silent the longest; False if none deserves it."""
    silent = [each for each in attendance.connections if each.identity is None]
    oldest = min(silent, key=lambda each: each.since, default=None)
    if oldest is None or anyio.current_time() - oldest.since < STALE:
        return False
    attendance.connections.discard(oldest)
    oldest.shed(reason)
    return True
