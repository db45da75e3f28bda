"""How a command reaches the daemon, and how it finds what a person means by a few characters."""

import argparse
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio

from acphost.cli.exits import CommandError
from acphost.cli.screen import err, short
from acphost.client.client import Client, State
from acphost.client.connecting import connect
from acphost.errors import ConnectionLostError, DaemonUnreachableError, SessionNotFoundError
from acphost.transport.paths import default_socket_path
from acphost.wire.host import Session
from acphost.wire.params import SessionListParams

_PAGE = 200
#: How long (seconds) a daemon may take from its lock to its socket.
_START_PATIENCE = 60.0
_LOOK_AGAIN = 0.1


def socket_of(options: argparse.Namespace) -> Path:
    """The socket: flag, environment, the user's configuration, the platform's place."""
    named = options.socket or os.environ.get("ACPHOST_SOCKET")
    if not named:
        from acphost.settings.load import load_sound_settings

        # As the daemon does it: with a mistake in a file it lives on, and should be found.
        named = load_sound_settings(flags=vars(options), environ=os.environ).settings.socket
    return Path(named).expanduser().absolute() if named else default_socket_path(os.environ)


def reach(
    options: argparse.Namespace,
    *,
    patience: float | None = 0,
    can_ask: bool = False,
    on_state: Callable[[State], None] | None = None,
) -> AbstractAsyncContextManager[Client]:
    """A client of the daemon that the options lead to; short commands do not wait for one.

    One that is on its way up is waited for. `can_ask` tells the daemon that a person is here to
    answer what agents ask.
    """
    connected = partial(
        connect,
        name="acphost",
        capabilities={"permissions": can_ask},
        patience=patience,
        on_state=on_state,
    )
    return _here(options, connected) if options.host is None else _afar(options, connected)


@asynccontextmanager
async def _here(
    options: argparse.Namespace, connected: Callable[[Path], AbstractAsyncContextManager[Client]]
) -> AsyncGenerator[Client]:
    path = socket_of(options)
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(connected(path))
        except DaemonUnreachableError as exc:
            if not await _has_started(options, path):
                pid = stranded(options)
                if pid is None:
                    raise
                raise DaemonUnreachableError(
                    f"the daemon (pid {pid}) is at work, but its socket {path} was removed; "
                    "`acphost stop` ends it, and any command starts it again",
                    path=str(path),
                    pid=pid,
                ) from exc
            client = await stack.enter_async_context(connected(path))
        yield client


def stranded(options: argparse.Namespace) -> int | None:
    """The pid of the daemon that these options lead to, if the file of its socket has gone."""
    from acphost.transport.lock import stranded_daemon

    state_dir = _state_dir_of(options)
    return None if state_dir is None else stranded_daemon(state_dir, socket_of(options))


def _state_dir_of(options: argparse.Namespace) -> Path | None:
    """Where that daemon keeps its state; None: a socket was named, and nobody has said."""
    named = getattr(options, "state_dir", None) or os.environ.get("ACPHOST_STATE_DIR")
    if not named and (options.socket or os.environ.get("ACPHOST_SOCKET")):
        return None
    from acphost.settings.load import load_sound_settings
    from acphost.transport.paths import default_state_dir

    named = named or load_sound_settings(flags=vars(options), environ=os.environ).settings.state_dir
    return Path(named).expanduser().absolute() if named else default_state_dir(os.environ)


async def _has_started(options: argparse.Namespace, path: Path) -> bool:
    """Whether a daemon that was about to start does answer now.

    It has its lock long before its socket: what the last one left is put right in between.
    """
    from acphost.transport.lock import starting_daemon

    state_dir = _state_dir_of(options)
    holder = None if state_dir is None else starting_daemon(state_dir)
    if state_dir is None or holder is None:
        return False
    err().line(f"the daemon (pid {holder}) is starting; waiting for it …", "dim")
    with anyio.move_on_after(_START_PATIENCE):
        while starting_daemon(state_dir) is not None:  # noqa: ASYNC110  another process tells
            await anyio.sleep(_LOOK_AGAIN)
        # It may be another's place that we look at, or have given up.
        with suppress(OSError):
            async with await anyio.connect_unix(path):
                return True
    return False


@asynccontextmanager
async def _afar(
    options: argparse.Namespace, connected: Callable[[Path], AbstractAsyncContextManager[Client]]
) -> AsyncGenerator[Client]:
    """The same, of a daemon on another machine; what is known of that is in `options.there`."""
    from acphost.remote.tunnel import ask, tunnel

    there = await ask(options.host, os.environ)
    if options.socket:
        there = there._replace(socket=options.socket)
    options.there = there
    async with tunnel(options.host, there.socket, os.environ) as way:
        try:
            async with connected(way.here) as client:
                yield client
        except ConnectionLostError as exc:
            if not way.said:
                raise
            raise DaemonUnreachableError(
                f"no daemon answers on {options.host}:{there.socket}: {way.said}"
            ) from exc


def place_of(options: argparse.Namespace) -> str:
    """The socket in words, once it has been reached."""
    if options.host is None:
        return str(socket_of(options))
    return f"{options.host}:{options.there.socket}"


def folder_of(options: argparse.Namespace) -> Path:
    """The folder of a new session: --cwd or this one; on another machine from its home on."""
    if options.host is None:
        return Path(options.cwd or ".").expanduser().resolve()
    return Path(options.there.home, options.cwd or ".")


async def all_sessions(client: Client, **filters: str | None) -> list[Session]:
    """Every session, page by page."""
    found: list[Session] = []
    cursor: str | None = None
    while True:
        page = await client.list_sessions(
            SessionListParams(cursor=cursor, limit=_PAGE, **filters)  # type: ignore[arg-type]
        )
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


async def find_session(client: Client, wanted: str) -> Session:
    """The session a person means: an id, or enough of its begin or end."""
    with suppress(SessionNotFoundError):
        return await client.session(wanted)
    sessions = {session.session_id: session for session in await all_sessions(client)}
    return sessions[pick(wanted, sessions, "session")]


def pick(wanted: str, identifiers: Iterable[str], what: str) -> str:
    """The one id that `wanted` begins or ends, with or without its prefix."""
    known = list(identifiers)
    if wanted in known:
        return wanted
    found = [
        known_id
        for known_id in known
        if wanted
        and (
            known_id.startswith(wanted)
            or known_id.endswith(wanted)
            or known_id.partition("_")[2].startswith(wanted)
        )
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no {what} is called {wanted!r}")
    some = ", ".join(short(known_id) for known_id in found[:5])
    raise CommandError(f"{wanted!r} is the begin or end of {len(found)} {what}s: {some} …")


def workspace_of(folder: Path) -> str:
    """The workspace id that the daemon gives to sessions of a folder."""
    digest = sha256(os.fsencode(folder.resolve())).hexdigest()
    return f"local:{digest[:16]}"
