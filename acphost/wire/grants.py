"""Folders that an actor lets agents use beside those of their sessions."""

from typing import Literal

from acphost.wire.base import HostParams, HostRecord

Access = Literal["write", "read"]


class Grant(HostRecord, frozen=True):
    """A folder, and what may be done below it in the sessions of an actor."""

    grant_id: str
    actor_id: str
    path: str
    access: Access
    created_at: str


class GrantAddParams(HostParams, frozen=True):
    """`grant/add`: an absolute path to a folder that exists."""

    path: str
    access: Access = "write"


class GrantRemoveParams(HostParams, frozen=True):
    """`grant/remove`."""

    grant_id: str
