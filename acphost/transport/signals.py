"""Signals as they come, with no moment in which one could still end the process on its way out."""

import signal
import socket
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager

import anyio


@contextmanager
def heeded(numbers: Iterable[signal.Signals]) -> Generator[AsyncIterator[signal.Signals]]:
    """Receive these signals inside; after it they are ignored for good. For the main thread.

    The event loop's own receivers go back to the default when they are closed, which is death for
    a signal that comes while the last things are put away. Here one disposition follows on the
    other in one step.
    """
    wanted = frozenset(numbers)
    receiver, sender = socket.socketpair()
    receiver.setblocking(False)
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    for number in wanted:
        signal.signal(number, _woken)
    try:
        yield _arriving(receiver, wanted)
    finally:
        for number in wanted:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(before)
        sender.close()
        receiver.close()


def _woken(number: int, frame: object) -> None:
    """The interpreter has written the number to the wake-up socket; that is all there is to do."""


async def _arriving(
    receiver: socket.socket, wanted: frozenset[signal.Signals]
) -> AsyncIterator[signal.Signals]:
    while True:
        await anyio.wait_readable(receiver)
        for number in receiver.recv(4096):
            if number in wanted:
                yield signal.Signals(number)
