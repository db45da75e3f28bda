"""`acphost acp`: the front door for editors. Everything it needs is loaded as late as can be."""

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

from acphost.cli.exits import Exit
from acphost.errors import AcpHostError, DaemonUnreachableError
from acphost.frontdoor.stdio import Stdio
from acphost.frontdoor.threshold import MAX_LINE, greet
from acphost.rpc.framing import LineFramer
from acphost.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from acphost.frontdoor.link import Starter

_NO_DAEMON = "no daemon runs, and none is to be started from here; start one with `acphost serve`"


def run(options: SimpleNamespace) -> int:
    """Serve the editor on stdin and stdout until it has gone."""
    stdio = Stdio.claimed()
    framer = LineFramer(MAX_LINE)
    may_start = options.autostart and options.host is None

    def check() -> AcpHostError | None:
        """An editor that cannot be served is told so at once, and stays welcome."""
        if may_start or options.host is not None or _answers(_named_socket(options)):
            return None
        return DaemonUnreachableError(_NO_DAEMON)

    try:
        greeted = greet(stdio, framer, VERSION, check)
    except BrokenPipeError:
        return Exit.OK
    if greeted is None:
        return Exit.OK
    params, lines = greeted

    import anyio

    from acphost.frontdoor.door import Door, Wishes
    from acphost.wire.acp_agent import read_initialize

    hello = read_initialize(params)

    async def serve(path: "Path", starter: "Starter | None") -> None:
        wishes = Wishes(options.agent, options.session, path, VERSION)
        await Door(stdio, framer, hello, wishes, starter).run(lines)

    if options.host is None:
        starter = _Starter(options).start if may_start else None
        anyio.run(serve, _named_socket(options), starter)
    else:
        anyio.run(_serve_afar, options, serve)
    return Exit.OK


async def _serve_afar(
    options: SimpleNamespace, serve: "Callable[[Path, Starter | None], Awaitable[None]]"
) -> None:
    """With a daemon behind ssh; one that cannot be reached is the answer to every request."""
    from pathlib import Path

    from acphost.remote.tunnel import ask, tunnel

    has_way = False
    try:
        place = options.socket or (await ask(options.host, os.environ)).socket
        async with tunnel(options.host, place, os.environ) as way:
            has_way = True
            await serve(way.here, None)
    except DaemonUnreachableError as exc:
        if has_way:
            raise
        problem = exc

        async def refuse() -> "Path":
            raise problem

        # No socket: a daemon of this machine is not meant.
        await serve(Path(os.devnull), refuse)


def _named_socket(options: SimpleNamespace) -> "Path":
    """Without the configuration, which takes long to read; who starts a daemon reads it."""
    from pathlib import Path

    named = options.socket or os.environ.get("ACPHOST_SOCKET")
    if named:
        return Path(named).expanduser().absolute()
    from acphost.transport.paths import default_socket_path

    return default_socket_path(os.environ)


def _answers(path: "Path") -> bool:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True


class _Starter:
    """Runs `acphost start`, which knows the configuration, the service manager and the lock."""

    def __init__(self, options: SimpleNamespace) -> None:
        self._flags = [
            word
            for name in ("socket", "state_dir", "config")
            if (value := getattr(options, name)) is not None
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]

    async def start(self) -> "Path":
        """Where the daemon listens. Raises DaemonUnreachableError with why there is none."""
        from pathlib import Path

        import anyio

        # -P: the editor's folder may hold modules of any name.
        command = [sys.executable, "-P", "-m", "acphost", "start", "--if-allowed", *self._flags]
        done = await anyio.run_process(command, check=False)
        if done.returncode != Exit.OK:
            said = done.stderr.decode(errors="replace").strip() or "`acphost start` failed"
            raise DaemonUnreachableError(said.removeprefix("acphost: error: "))
        return Path(os.fsdecode(done.stdout).strip())
