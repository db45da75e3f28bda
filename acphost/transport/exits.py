"""Learning that a child has ended, if possible without collecting it.

A child that is dead but not collected keeps its pid, and so the id of its group: until then the
group can be signalled without fear of hitting a stranger.
"""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple


class Exit(NamedTuple):
    """How a process ended: by a code or by a signal; neither if somebody else collected it."""

    code: int | None
    signal: int | None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was ended by {_signal_name(self.signal)}"
        return "ended" if self.code is None else f"exited with code {self.code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_POLL = 0.05

#: Whether the status can be read without collecting the child: not so on macOS.
CAN_PEEK = sys.platform == "linux"


def peek(pid: int) -> Exit | None:
    """How the child ended, None if it has not; where `CAN_PEEK` is false this collects it."""
    try:
        return _peek(pid)
    except ChildProcessError:
        return Exit(None, None)


if sys.platform == "linux":

    def _peek(pid: int) -> Exit | None:
        # WNOWAIT: the child stays where it is.
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        by_code = found.si_code == os.CLD_EXITED
        return _exit(found.si_status if by_code else -found.si_status)

else:

    def _peek(pid: int) -> Exit | None:
        collected, status = os.waitpid(pid, os.WNOHANG)
        return _exit(os.waitstatus_to_exitcode(status)) if collected else None


def _exit(code: int) -> Exit:
    return Exit(code, None) if code >= 0 else Exit(None, -code)


def collect(pid: int) -> None:
    """Collect a child that has ended."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def watch(pid: int, on_exit: Callable[[Exit], None]) -> None:
    """Call `on_exit` in the loop's thread, once, when the child `pid` has ended."""
    loop = asyncio.get_running_loop()
    descriptor = ending(pid)

    def look() -> None:
        how = peek(pid)
        if how is None:
            if descriptor is None:
                loop.call_later(_POLL, look)
            return
        if descriptor is not None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        on_exit(how)

    if descriptor is None:
        loop.call_soon(look)
    else:
        loop.add_reader(descriptor, look)


def ending(pid: int) -> int | None:
    """A descriptor that can be read when the process ends, whoever's child it is.

    None if it is gone, on an old kernel, or if there is no descriptor left.
    """
    try:
        return _open(pid)
    except OSError:
        return None


if sys.platform == "linux":

    def _open(pid: int) -> int:
        return os.pidfd_open(pid)

else:

    def _open(pid: int) -> int:
        queue = select.kqueue()
        event = select.kevent(
            pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
        )
        queue.control([event], 0)
        return os.dup(queue.fileno())
