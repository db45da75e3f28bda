"""Changes in directories as the Linux kernel tells them: no thread, and no wake-up without news.

`watchfiles` knows this too, but looks at what it has gathered from a thread that wakes at every
`step`; a daemon that should sleep while nothing happens cannot afford that.
"""

import ctypes
import math
import os
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import anyio

__all__ = ["Folders", "Inotify", "News", "TreeInotify"]

#: Directories, and which names in each of them matter; None: all.
Folders = Mapping[Path, frozenset[str] | None]

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_ONLYDIR = 0x0100_0000
_WATCHED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
    | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
)  # fmt: skip
#: What changes the content of a folder's files, or which there are.
_CONTENT = _MODIFY | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_IS_FOLDER, _OVERFLOW, _DONT_FOLLOW = 0x4000_0000, 0x4000, 0x0200_0000
_HEADER = struct.Struct("iIII")
_READ_SIZE = 64 * 1024


class _Kernel:
    """An inotify descriptor."""

    def __init__(self) -> None:
        """Raises OSError: the system has no inotify, or none left for this user."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError(0, "this system has no inotify")
        self._descriptor = self._checked(
            self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1"
        )

    def close(self) -> None:
        """Watch nothing any more."""
        os.close(self._descriptor)

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_SIZE)
        except BlockingIOError:
            return b""

    def _checked(self, result: int, what: str) -> int:
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), what)
        return result


class News(NamedTuple):
    """One change of something in a folder; without a name the kernel has lost some."""

    folder: str
    name: str
    is_folder: bool
    #: The name stands for something now: it was made there or moved there.
    has_come: bool


class TreeInotify(_Kernel):
    """Tells which names change in folders that are added one by one."""

    def __init__(self) -> None:
        super().__init__()
        self._folders: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._folders)

    def add(self, folder: str) -> None:
        """Watch a folder too. Raises OSError."""
        flags = _CONTENT | _ONLYDIR | _DONT_FOLLOW
        number = self._checked(
            self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), flags), folder
        )
        self._folders[number] = folder

    async def stirred(self) -> None:
        """Return once there is something to read."""
        await anyio.wait_readable(self._descriptor)

    def release(self) -> None:
        """Whoever waits gets anyio.ClosedResourceError: it is about to be closed."""
        anyio.notify_closing(self._descriptor)

    def news(self, until: float = math.inf) -> Iterator[News]:
        """All that has happened and was not told yet; with `until` what was read by that moment."""
        while time.monotonic() < until and (told := self._read()):
            place = 0
            while place < len(told):
                number, mask, _, length = _HEADER.unpack_from(told, place)
                place += _HEADER.size + length
                name = os.fsdecode(told[place - length : place].rstrip(b"\0"))
                if mask & _OVERFLOW:
                    yield News("", "", is_folder=False, has_come=False)
                elif name and number in self._folders:
                    yield News(
                        self._folders[number], name, is_folder=bool(mask & _IS_FOLDER),
                        has_come=bool(mask & (_CREATE | _MOVED_TO)),
                    )  # fmt: skip


class Inotify(_Kernel):
    """Tells when something with a wanted name changes in some directories."""

    def __init__(self) -> None:
        """Raises OSError: the system has no inotify, or none left for this user."""
        super().__init__()
        #: For each watch: the names that matter, None for all.
        self._names: dict[int, frozenset[str] | None] = {}

    def watch(self, folders: Folders) -> None:
        """Watch these directories and no others. Raises OSError, also for one that is gone."""
        names: dict[int, frozenset[str] | None] = {}
        for folder, wanted in folders.items():
            number = self._checked(
                self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _WATCHED),
                str(folder),
            )
            known = names.get(number, frozenset())
            names[number] = None if wanted is None or known is None else wanted | known
        for number in self._names.keys() - names.keys():
            # Fails for a directory that is gone, whose watch went with it.
            self._libc.inotify_rm_watch(self._descriptor, number)
        self._names = names

    async def changed(self) -> None:
        """Return once something has changed that matters."""
        while True:
            await anyio.wait_readable(self._descriptor)
            if self._matters(self._read()):
                return

    def _matters(self, told: bytes) -> bool:
        place, found = 0, False
        while place < len(told):
            number, _, _, length = _HEADER.unpack_from(told, place)
            place += _HEADER.size + length
            name = os.fsdecode(told[place - length : place].rstrip(b"\0"))
            # Without a name it is about the directory itself, or the kernel's queue was full.
            wanted = self._names.get(number)
            found = found or not name or number not in self._names or wanted is None
            found = found or name in (wanted or ())
        return found
