"""Typed identifiers and how they are minted."""

import os
import time
from collections.abc import Callable
from typing import NewType

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
PermissionId = NewType("PermissionId", str)
ClientId = NewType("ClientId", str)
SubscriptionId = NewType("SubscriptionId", str)
LaunchId = NewType("LaunchId", str)
StoreId = NewType("StoreId", str)
AgentId = NewType("AgentId", str)
#: The agent's own name for its side of a conversation: a reference, never our truth.
AcpSessionId = NewType("AcpSessionId", str)

#: Milliseconds since the epoch. Passed in as a callable so that tests own the clock.
Clock = Callable[[], int]


def epoch_ms() -> int:
    """Wall-clock time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def ticks_ms() -> int:
    """Milliseconds of a clock that nobody can set: only differences of them mean something."""
    return time.monotonic_ns() // 1_000_000


def mint(prefix: str) -> str:
    """A fresh id: prefix, creation time, 64 random bits; ids of one prefix sort by age."""
    return f"{prefix}_{epoch_ms():011x}{os.urandom(8).hex()}"
