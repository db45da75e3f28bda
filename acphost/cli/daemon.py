"""How a command reaches the daemon, and how it finds what a person means by a few characters."""

import argparse
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from hashlib import sha256
from pathlib import Path

from acphost.cli.exits import CommandError
from acphost.cli.screen import short
from acphost.client.client import Client, State
from acphost.client.connecting import connect
from acphost.errors import SessionNotFoundError
from acphost.transport.paths import default_socket_path
from acphost.wire.host import Session
from acphost.wire.params import SessionListParams

_PAGE = 200


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

    `can_ask` tells the daemon that a person is here to answer what agents ask.
    """
    return connect(
        socket_of(options),
        name="acphost",
        capabilities={"permissions": can_ask},
        patience=patience,
        on_state=on_state,
    )


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
