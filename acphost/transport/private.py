"""Directories that nobody but us can enter."""

import errno
import os
import stat
from pathlib import Path

from acphost.errors import StartError, StateFolderError

#: Whoever may write to a directory may replace what is in it, unless it is sticky.
_WRITE_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: What may be over when the daemon is started again.
PASSING = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EINTR}
)


def private_directory(path: Path, error: type[StartError] = StateFolderError) -> None:
    """Make `path` with mode 0700, or check that it is ours, private and no symlink.

    Raises `error` with the reason and the cure; StartError for what another start may cure.
    """
    try:
        _make(path)
        found = path.lstat()
        above = path.parent.stat()
    except OSError as exc:
        kind = StartError if exc.errno in PASSING else error
        raise kind(f"cannot use directory {path}: {exc.strerror}", path=str(path)) from exc
    problem = _problem(path, found) or _problem_above(path.parent, above)
    if problem is not None:
        raise error(f"cannot use directory {path}: {problem}", path=str(path))


def _make(path: Path) -> None:
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        try:
            # Given to the call, so that it is never open to others, whatever the umask.
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue


def _problem(path: Path, found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link, which may lead anywhere; name the directory itself"
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if found.st_uid != os.geteuid():
        return f"it belongs to uid {found.st_uid}; choose one that belongs to you"
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        return f"its mode is {mode:04o}, so others can enter; run `chmod 700 {path}`"
    return None


def _problem_above(path: Path, found: os.stat_result) -> str | None:
    if found.st_uid not in {0, os.geteuid()}:
        return f"{path} above it belongs to uid {found.st_uid}, who could replace it"
    if found.st_mode & _WRITE_FOR_OTHERS and not found.st_mode & stat.S_ISVTX:
        mode = stat.S_IMODE(found.st_mode)
        return f"{path} above it has mode {mode:04o}, so others could replace it; run `chmod go-w`"
    return None
