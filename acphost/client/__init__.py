"""The Python client of the daemon's socket: `from acphost.client import connect`.

A name is loaded when it is asked for, so that a program which needs only part waits for no more.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acphost.client.asking import Listing
    from acphost.client.calls import RunEvents
    from acphost.client.client import Client, State
    from acphost.client.connecting import connect, socket_path
    from acphost.client.failures import HostRemoteError
    from acphost.client.questions import OnRequest
    from acphost.client.subscription import Batch, Subscription
    from acphost.wire.event import Event, Kind
    from acphost.wire.host import Cursor, Decision, Run, Session

__all__ = [
    "Batch",
    "Client",
    "Cursor",
    "Decision",
    "Event",
    "HostRemoteError",
    "Kind",
    "Listing",
    "OnRequest",
    "Run",
    "RunEvents",
    "Session",
    "State",
    "Subscription",
    "connect",
    "socket_path",
]

_HOMES = {
    "acphost.client.asking": ("Listing",),
    "acphost.client.calls": ("RunEvents",),
    "acphost.client.client": ("Client", "State"),
    "acphost.client.connecting": ("connect", "socket_path"),
    "acphost.client.failures": ("HostRemoteError",),
    "acphost.client.questions": ("OnRequest",),
    "acphost.client.subscription": ("Batch", "Subscription"),
    "acphost.wire.event": ("Event", "Kind"),
    "acphost.wire.host": ("Cursor", "Decision", "Run", "Session"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """A public name, from where it lives."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
