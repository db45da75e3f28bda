"""What a service manager does for a daemon, as far as the daemon can see it.

`wrapper` becomes the daemon after it has opened the socket and set the variables, as systemd does
between fork and exec; `told` is what the daemon has sent to $NOTIFY_SOCKET.
"""

import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from tests.support.patience import PATIENCE

_BECOME = """
import os, socket, sys
path, mode, *command = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
os.umask(0o777 & ~int(mode, 8))
listener.bind(path)
listener.listen()
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "control"}
os.execvp(command[0], command)
"""


def wrapper(path: Path, mode: int = 0o600) -> list[str]:
    """Words before a command that hand it a listening socket at `path` as descriptor 3."""
    return [sys.executable, "-c", _BECOME, str(path), oct(mode)]


class NotifySocket:
    """Where the daemon reports."""

    def __init__(self, bound: socket.socket, address: str) -> None:
        self._socket = bound
        #: As $NOTIFY_SOCKET has it.
        self.address = address
        self.told: list[str] = []

    async def hears(self, field: str) -> str:
        """Wait for a message with a line that begins so; returns the message."""
        with anyio.fail_after(PATIENCE):
            while True:
                await anyio.wait_readable(self._socket)
                message = self._socket.recv(65536).decode()
                self.told.append(message)
                if any(line.startswith(field) for line in message.splitlines()):
                    return message


@contextmanager
def notify_socket(address: str) -> Generator[NotifySocket]:
    """A socket at a path, or an abstract one where `address` begins with @."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.setblocking(False)
        bound.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        yield NotifySocket(bound, address)
