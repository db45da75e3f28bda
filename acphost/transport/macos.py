"""What macOS tells by calls that Python does not have. Everything here can be read anywhere."""

import ctypes
import os
import sys
from itertools import takewhile

#: sysctl(3): CTL_KERN, KERN_PROCARGS2.
_KERN, _PROCARGS2 = 1, 49
#: As much as arguments and environment together may take (ARG_MAX).
_ROOM = 1 << 20
#: confstr(3): the private temporary folder of a user, the same in every program.
_USER_TEMPORARY = 65537


def environment(pid: int) -> list[bytes]:
    """With what a process called exec; empty if it is gone, not ours, or a program of the system.

    `ps` shows it behind the arguments, where nobody can tell the one from the other.
    """
    library = ctypes.CDLL(None)
    room, size = ctypes.create_string_buffer(_ROOM), ctypes.c_size_t(_ROOM)
    name = (ctypes.c_int * 3)(_KERN, _PROCARGS2, pid)
    failed = library.sysctl(name, 3, room, ctypes.byref(size), None, ctypes.c_size_t(0))
    return [] if failed else parse_arguments(ctypes.string_at(room, size.value))


def parse_arguments(data: bytes) -> list[bytes]:
    """The environment in what KERN_PROCARGS2 gives.

    That is the number of arguments, the program, some NULs, the arguments and the environment, each
    with a NUL behind it, and after an empty one things of the system's own.
    """
    width = ctypes.sizeof(ctypes.c_int)
    count = int.from_bytes(data[:width], sys.byteorder)
    _, _, rest = data[width:].partition(b"\0")
    words = rest.lstrip(b"\0").split(b"\0")
    return list(takewhile(bool, words[count:]))


def temporary_folder() -> str | None:
    """That of this user; shells and ssh may have another $TMPDIR, or none."""
    try:
        return os.confstr(_USER_TEMPORARY)
    except (OSError, ValueError):
        return None
