"""A listening socket that a service manager opened for us, checked as if we had made it.

systemd hands over descriptors from 3 on, named by $LISTEN_PID and $LISTEN_FDS (sd_listen_fds(3));
launchd hands them out when asked (`transport.launchd`). The file belongs to the manager: it stays
when we go, and whoever connects meanwhile waits in its backlog for our successor.
"""

import os
import socket
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from acphost.errors import SocketPathError
from acphost.log import get_logger
from acphost.transport import launchd
from acphost.transport.dial import check_path
from acphost.transport.private import private_directory
from acphost.transport.unix import Listener

#: The first descriptor that systemd passes.
FIRST = 3
#: What the socket is called in the launchd agent.
LAUNCHD_NAME = "Control"

log = get_logger()


def adopt(path: Path, environ: Mapping[str, str]) -> Listener | None:
    """The inherited listener at `path`; None if nobody handed one over.

    Raises SocketPathError if one was handed over that is not what we would have made ourselves.
    """
    numbers = inherited(environ, os.getpid())
    if not numbers and sys.platform == "darwin":
        numbers = launchd.activated(LAUNCHD_NAME)
    return adopt_from(numbers, path) if numbers else None


def inherited(environ: Mapping[str, str], pid: int) -> list[int]:
    """Descriptors meant for the process `pid`: the variables may be those of a parent."""
    count = environ.get("LISTEN_FDS", "")
    if environ.get("LISTEN_PID") != str(pid) or not count.isdecimal():
        return []
    return list(range(FIRST, FIRST + int(count)))


def adopt_from(numbers: Iterable[int], path: Path) -> Listener:
    """The one among the descriptors that listens at `path`; the others are closed.

    Raises SocketPathError.
    """
    check_path(path)
    found: socket.socket | None = None
    problems: list[str] = []
    for number in numbers:
        os.set_inheritable(number, False)
        problem = _problem(number, path)
        if problem is None and found is None:
            found = socket.socket(fileno=number)
            continue
        os.close(number)
        problems.append(f"descriptor {number} {problem or 'is the same once more'}")
    if found is None:
        raise SocketPathError(
            f"the service manager handed over no socket at {path}: {'; '.join(problems)}; run "
            "`acphost service install` again after the place of the socket has changed",
            path=str(path),
        )
    for each in problems:
        log.warning("inherited_socket_ignored", reason=each)
    try:
        _check_file(path)
    except BaseException:
        found.close()
        raise
    found.setblocking(False)
    return Listener(found, path, is_ours=False)


def _problem(number: int, path: Path) -> str | None:
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return "is no socket"
        # Looked at through a copy, so that the descriptor itself stays open.
        with socket.socket(fileno=os.dup(number)) as found:
            if found.family != socket.AF_UNIX or found.type != socket.SOCK_STREAM:
                return "is no Unix stream socket"
            if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return "does not listen"
            name = found.getsockname()
    except OSError as exc:
        return f"cannot be used ({exc.strerror})"
    return None if _is_same(name, path) else f"listens at {name or 'no path'}"


def _is_same(name: object, path: Path) -> bool:
    """Whether both names lead to one file: /var/run may be /run."""
    if not isinstance(name, str) or not name:
        return False
    if name == str(path):
        return True
    try:
        return Path(name).samefile(path)
    except OSError:
        return False


def _check_file(path: Path) -> None:
    """The name must lead to a socket that only we can reach. Raises SocketPathError."""
    private_directory(path.parent, SocketPathError)
    try:
        found = path.lstat()
    except OSError as exc:
        raise SocketPathError(
            f"the service manager's socket has lost its name {path} ({exc.strerror}); "
            "run `systemctl --user restart acphost.socket`",
            path=str(path),
        ) from exc
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid() or mode & 0o077:
        raise SocketPathError(
            f"the service manager's socket {path} is not ours alone (mode {mode:04o}, "
            f"uid {found.st_uid}); it needs SocketMode=0600",
            path=str(path),
        )
