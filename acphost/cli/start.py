"""`acphost start`: a daemon in the background, through the service manager where there is one."""

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from acphost.cli.daemon import socket_of
from acphost.cli.exits import CommandError, Exit
from acphost.cli.parser import Options
from acphost.cli.places import state_dir_of
from acphost.transport.private import private_directory

#: How long a daemon may take until it listens: its store may be large.
PATIENCE = 60.0
_LOOK_AGAIN = 0.02
_LOG_NAME = "daemon.log"
_TAIL_LINES = 5


def run(options: Options) -> int:
    """Run the command: prints where the daemon listens."""
    print(ensure_running(options, is_asked=not options.if_allowed))
    return Exit.OK


def ensure_running(options: Options, *, is_asked: bool) -> Path:
    """Have a daemon run; returns its socket. One that runs is left alone.

    Unless a person asked for it, only where `autostart` allows it. Raises CommandError.
    """
    path = socket_of(options)
    if _answers(path):
        return path
    if not is_asked and not _is_allowed(options):
        raise CommandError(
            f"no daemon answers on {path}, and `autostart` is off;"
            " start one with `acphost serve` or `acphost start`",
            Exit.UNREACHABLE,
        )
    state = state_dir_of(options)
    private_directory(state)
    with _sole_starter(state):
        # Who waited for the lock finds that the work is done.
        if not _answers(path):
            _start(options, path, state)
    return path


def _is_allowed(options: Options) -> bool:
    from acphost.settings.load import load_sound_settings

    return load_sound_settings(flags=vars(options), environ=os.environ).settings.autostart


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True


@contextmanager
def _sole_starter(state: Path) -> Iterator[None]:
    """Two editors that start at once start one daemon."""
    descriptor = os.open(state / "start.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _start(options: Options, path: Path, state: Path) -> None:
    if _is_plain(options) and _started_by_manager():
        _await(path, None, state)
        return
    process = _detached(options, state)
    _await(path, process, state)


# -- through the service manager ------------------------------------------------------------------


def _is_plain(options: Options) -> bool:
    """The service is the daemon of the usual places; whoever names others means another one."""
    named = (options.socket, options.state_dir, options.config)
    variables = ("ACPHOST_SOCKET", "ACPHOST_STATE_DIR", "ACPHOST_CONFIG")
    return not any(named) and not any(os.environ.get(name) for name in variables)


def _started_by_manager() -> bool:
    """Whether a user service is installed and its manager took the order."""
    from acphost.service.choice import manager_of
    from acphost.service.manager import ServiceError

    try:
        return anyio.run(manager_of(os.environ).start)
    except ServiceError as exc:
        print(f"acphost: {exc}; starting the daemon without it", file=sys.stderr)
        return False


# -- by ourselves ---------------------------------------------------------------------------------


def _detached(options: Options, state: Path) -> "subprocess.Popen[bytes]":
    """A daemon of its own session: it outlives the terminal and the editor that started it."""
    # -P: this folder may hold modules of any name.
    command = [sys.executable, "-P", "-m", "acphost", "serve"]
    for name in ("socket", "state_dir", "config"):
        value = getattr(options, name)
        if value is not None:
            command += [f"--{name.replace('_', '-')}", str(Path(value).expanduser().absolute())]
    command += ["--log", str(state / _LOG_NAME)]
    # What comes before the daemon's own log, and whatever Python itself has to say.
    descriptor = os.open(
        state / _LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
    )
    with os.fdopen(descriptor, "ab") as log:
        return subprocess.Popen(  # noqa: S603 - this program itself
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def _await(path: Path, process: "subprocess.Popen[bytes] | None", state: Path) -> None:
    """Until it listens. Raises CommandError with the end of its log if it does not come to that."""
    deadline = time.monotonic() + PATIENCE
    while not _answers(path):
        if process is not None and process.poll() is not None:
            raise CommandError(f"the daemon did not start:\n{_tail(state)}", Exit.UNREACHABLE)
        if time.monotonic() > deadline:
            raise CommandError(
                f"the daemon was started and does not listen on {path} yet;"
                " `acphost status` tells when it does",
                Exit.TRY_AGAIN,
            )
        time.sleep(_LOOK_AGAIN)


def _tail(state: Path) -> str:
    try:
        lines = (state / _LOG_NAME).read_text(errors="replace").splitlines()
    except OSError:
        return "it left no log"
    return "\n".join(lines[-_TAIL_LINES:])
