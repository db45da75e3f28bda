"""What the area `queue` of the socket takes."""

from typing import Annotated

from msgspec import Meta, Raw

from acphost.wire.base import HostParams
from acphost.wire.params import Name

#: Which state of the item is meant; every change of it counts one up.
Revision = Annotated[int, Meta(ge=1, le=2**53)]


class QueueListParams(HostParams, frozen=True):
    """`queue/list`."""

    session_id: str


class QueueHoldParams(HostParams, frozen=True):
    """`queue/hold`."""

    session_id: str
    reason: Name | None = None


class QueueEditParams(HostParams, frozen=True):
    """`queue/edit`: another `prompt` or `text` for a run that waits.

    `expectedRev` is the `rev` of the item that the change is meant for.
    """

    host_run_id: str
    expected_rev: Revision
    prompt: list[Raw] | None = None
    text: str | None = None


class QueueMoveParams(HostParams, frozen=True):
    """`queue/move`: another place for a run that waits, counted as `queue/list` counts.

    A place past the end is the end; one that is taken by the running turn is the first behind it.
    """

    host_run_id: str
    expected_rev: Revision
    position: Annotated[int, Meta(ge=0, le=2**53)]
