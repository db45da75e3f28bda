"""Answers of people to what agents ask them, on the socket."""

from typing import Literal

from msgspec import UNSET, Raw, UnsetType

from acphost.wire.base import HostParams


class ElicitationRespondParams(HostParams, frozen=True):
    """`elicitation/respond`: `content` is the filled-in form, only with `accept`."""

    elicitation_id: str
    action: Literal["accept", "decline", "cancel"]
    content: Raw | UnsetType = UNSET
