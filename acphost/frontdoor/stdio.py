"""Standard input and output of the front door, taken away from everybody else in the process.

Whoever prints from here on, a library or Python itself, prints to stderr: stdout is the protocol.
"""

import os
import select
import stat
import sys

#: One read takes what is there, at most so much.
READ_SIZE = 256 * 1024
#: What a pipe that is reported writable takes without blocking. Its descriptor stays in blocking
#: mode: the setting would be shared with whoever gave it to us, a terminal perhaps.
WRITE_SIZE = select.PIPE_BUF


class Stdio:
    """The editor's two streams: first read and written plainly, later from the event loop."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._waits_to_read = _can_be_waited_for(source)
        self._waits_to_write = _can_be_waited_for(target)

    @classmethod
    def claimed(cls) -> "Stdio":
        """Those of this process, which others do not find under their numbers any more."""
        sys.stdout.flush()
        source, target = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return cls(source, target)

    # -- before there is an event loop ------------------------------------------------------------

    def read_now(self) -> bytes:
        """What comes next, waited for; b"" at the end."""
        return os.read(self._source, READ_SIZE)

    def write_now(self, data: bytes) -> None:
        """Write all of it. Raises OSError if nobody reads any more."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._target, rest) :]

    # -- from the event loop ----------------------------------------------------------------------

    async def receive(self) -> bytes:
        """What comes next; b"" at the end."""
        import anyio  # noqa: PLC0415 - loaded by now; the first answer did not wait for it

        if self._waits_to_read:
            await anyio.wait_readable(self._source)
        else:
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(self._source, READ_SIZE)
        except OSError:  # a terminal that was hung up
            return b""

    async def send(self, data: bytes) -> None:
        """Write all of it. Raises OSError if nobody reads any more."""
        import anyio  # noqa: PLC0415 - as above

        rest = memoryview(data)
        while rest:
            if self._waits_to_write:
                await anyio.wait_writable(self._target)
            rest = rest[os.write(self._target, rest[:WRITE_SIZE]) :]


def _can_be_waited_for(descriptor: int) -> bool:
    """Files and the null device are always ready, and epoll refuses them."""
    mode = os.fstat(descriptor).st_mode
    return not stat.S_ISREG(mode) and (not stat.S_ISCHR(mode) or os.isatty(descriptor))
