"""Opens what is below a root, one component after the other and never through a link.

The walk starts from a descriptor of the root. Whoever exchanges a folder or a file for a link
between the check of a path and its opening finds that the link is not followed.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from acphost.errors import (
    AcpHostError,
    FileMissingError,
    PathNotGrantedError,
    PermissionDeniedError,
    StorageError,
    StorageFullError,
    TooLargeError,
    UnsupportedContentError,
)
from acphost.workspace.roots import Place

#: A folder on the way: it need not be readable, where the system can open one just to pass.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: A FIFO must not make us wait for whoever writes to it, nor a terminal become ours.
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link that was put there just now"),
)


@contextmanager
def parent_of(place: Place, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder that a place is in; with `make` it is created if it is missing.

    Raises OSError, which `explained` words.
    """
    if not place.parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    current = os.open(place.root, _PASS)
    try:
        for part in place.parts[:-1]:
            below = _enter(part, current, make=make)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _enter(part: str, folder: int, *, make: bool) -> int:
    try:
        return os.open(part, _PASS, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # somebody was faster
        os.mkdir(part, dir_fd=folder)
    return os.open(part, _PASS, dir_fd=folder)


def open_regular(name: str, folder: int, path: str) -> int:
    """Open a regular file for reading. Raises OSError, UnsupportedContentError for another kind."""
    # Before it is opened: opening a device may do something.
    check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    descriptor = os.open(name, _LOOK, dir_fd=folder)
    try:
        check_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(found: os.stat_result, path: str) -> None:
    """Raises UnsupportedContentError for anything but a regular file."""
    if stat.S_ISREG(found.st_mode):
        return
    what = next((what for is_one, what in _KINDS if is_one(found.st_mode)), "something else")
    raise UnsupportedContentError(f"{path} is {what}; only regular files are served", path=path)


def explained(exc: OSError, path: str) -> AcpHostError:
    """What the system says about a file, in the words of the host."""
    match exc.errno:
        case errno.ENOENT:
            return FileMissingError(f"there is no file {path}", path=path)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            why = (exc.strerror or "").lower()
            return PermissionDeniedError(f"the user of the daemon may not do that: {path}: {why}")
        case errno.ELOOP | errno.ENOTDIR:
            return PathNotGrantedError(
                f"{path} cannot be reached: something on the way is no folder, or has become a "
                "link meanwhile",
                path=path,
            )
        case errno.EISDIR:
            return UnsupportedContentError(f"{path} is a directory", path=path)
        case errno.ENAMETOOLONG:
            return TooLargeError(f"a name in the path is too long: {path[:200]}…")
        case errno.ENOSPC | errno.EDQUOT:
            return StorageFullError(f"no room is left for {path}: {exc.strerror}")
        case _:
            return StorageError(f"{path}: {exc.strerror or exc}")
