"""What launchd hands to the program it started: sockets, by a call of libSystem."""

import ctypes
import errno
import os
from typing import Any

from acphost.errors import SocketPathError

#: Not started by launchd; no socket of that name in its agent.
_NOTHING_FOR_US = {errno.ESRCH, errno.ENOENT}


def activated(name: str, library: Any = None) -> list[int]:  # noqa: ANN401  a C library
    """The descriptors of the agent's socket `name`; empty if launchd has none for us.

    Raises SocketPathError if launchd says anything else. See launch_activate_socket(3).
    """
    system = ctypes.CDLL(None) if library is None else library
    numbers = ctypes.POINTER(ctypes.c_int)()
    count = ctypes.c_size_t()
    try:
        activate = system.launch_activate_socket
    except AttributeError:
        return []
    code = int(activate(name.encode(), ctypes.byref(numbers), ctypes.byref(count)))
    if code in _NOTHING_FOR_US:
        return []
    if code:
        raise SocketPathError(f"launchd does not hand over its socket: {os.strerror(code)}")
    try:
        return [numbers[index] for index in range(count.value)]
    finally:
        system.free(numbers)
