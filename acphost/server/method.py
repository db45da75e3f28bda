"""A method of the socket as a row of the table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from acphost.server.access import Access


@dataclass(frozen=True, slots=True)
class Method:
    """Name, params, who may, and what answers."""

    name: str
    params: type[msgspec.Struct]
    access: Access
    handler: Callable[..., Awaitable[object]]
