"""Our ends of a child's pipes."""

import array
import asyncio
import fcntl
import os
import termios
from contextlib import suppress

import anyio

from acphost.errors import ConnectionLostError

READ_SIZE = 128 * 1024


class PipeReader:
    """Reads what a child writes, until its end or until `cut`."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._waiter: asyncio.Future[None] | None = None
        self._is_watched = False
        #: Bytes still to be read after `cut`.
        self._left: int | None = None
        self._is_discarding = False

    async def read(self) -> bytes:
        """What is there, at most READ_SIZE; b"" at the end, or once `discard` has begun."""
        while not self._is_discarding:
            data = await self._attempt()
            if data is not None and not self._is_discarding:
                return data
        return b""

    async def discard(self) -> None:
        """Read to the end for nobody, so that the writer is never blocked."""
        self._is_discarding = True
        self._wake()
        while await self._attempt() != b"":
            pass

    def cut(self) -> None:
        """Take what is in the pipe now for the end, whoever still holds the other side."""
        if self._descriptor is not None and self._left is None:
            self._left = _unread(self._descriptor)
            self._wake()

    def close(self) -> None:
        """Whoever reads gets b""."""
        if self._descriptor is not None:
            self._wake()
            self._unwatch()
            os.close(self._descriptor)
            self._descriptor = None

    async def _attempt(self) -> bytes | None:
        """Some bytes, b"" at the end, None after a wait that brought nothing."""
        if self._descriptor is None or self._left == 0:
            return b""
        await self._readable(self._descriptor)
        return self._read_now()

    async def _readable(self, descriptor: int) -> None:
        """Return when there is something to read, or to look at again.

        As `anyio.wait_readable`, but the pipe stays watched between two reads of a slow stream:
        watching it anew is a good part of the time that an agent's word takes to a screen.
        """
        loop = asyncio.get_running_loop()
        if not self._is_watched:
            loop.add_reader(descriptor, self._on_readable)
            self._is_watched = True
        waiter = self._waiter = loop.create_future()
        try:
            await waiter
        finally:
            if self._waiter is waiter:  # and not that of `discard`, who takes over
                self._waiter = None

    def _on_readable(self) -> None:
        if self._waiter is None:
            # Nobody wants it now; asked again and again, the loop would never rest.
            self._unwatch()
        else:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _unwatch(self) -> None:
        if self._is_watched and self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._is_watched = False

    def _read_now(self) -> bytes | None:
        if self._descriptor is None or self._left == 0:  # since we began to wait
            return b""
        size = READ_SIZE if self._left is None else min(READ_SIZE, self._left)
        try:
            data = os.read(self._descriptor, size)
        except BlockingIOError:
            return None
        if self._left is not None:
            self._left -= len(data)
        if not data:
            self.close()
        return data


class PipeWriter:
    """Writes what a child reads; used by one task at a time."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._guard = anyio.ResourceGuard("writing to")

    async def write(self, data: bytes) -> None:
        """All of `data`. Raises ConnectionLostError if the other side is gone or we have closed.

        Cancelled in the middle of it, the pipe is closed: half a line would spoil the next one.
        """
        rest = memoryview(data)
        with self._guard:
            try:
                while rest:
                    rest = rest[await self._write_some(rest) :]
            finally:
                if 0 < len(rest) < len(data):
                    self.close()

    async def _write_some(self, data: memoryview) -> int:
        if self._descriptor is None:
            raise ConnectionLostError("the agent's stdin is closed")
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            pass
        except OSError as exc:
            self.close()
            raise ConnectionLostError(f"the agent does not read any more: {exc.strerror}") from exc
        try:
            await anyio.wait_writable(self._descriptor)
        except anyio.ClosedResourceError as exc:
            raise ConnectionLostError("the agent's stdin was closed") from exc
        return 0

    def close(self) -> None:
        """Whoever writes gets ConnectionLostError."""
        if self._descriptor is not None:
            anyio.notify_closing(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None


def enlarge(descriptor: int, size: int) -> None:
    """Give a pipe more room where the system lets us."""
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if set_size is None:
        return
    with suppress(OSError):
        fcntl.fcntl(descriptor, set_size, size)


def _unread(descriptor: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
