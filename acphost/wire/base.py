"""The three kinds of struct that cross a process boundary, and the scalars of the socket."""

import re
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from acphost.errors import CursorMalformedError

_SEQ = re.compile(r"\A[0-9]{1,18}\Z")


class AcpStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What agents speak: unknown fields are ignored, absent and null differ where it matters."""


class HostRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What our socket returns: nulls and defaults are written."""


class HostParams(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """What our socket takes: a field we do not know is an error, `_meta` is allowed everywhere."""

    meta: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


#: A raw member that is null: msgspec cannot decode `Raw | None`.
NULL = msgspec.Raw(b"null")


def carries(kind: object) -> msgspec.Meta:
    """Say what a raw or a plain text member holds, or the items of a page: for the schema alone."""
    return msgspec.Meta(extra={"carries": kind})


#: A `seq` or `offset` as clients may write it.
Position = int | str


def position_text(number: int) -> str:
    """A `seq` or `offset` as it travels: 18 digits, so that text order is number order."""
    return f"{number:018d}"


def parse_position(value: Position) -> int:
    """Read a `seq` or `offset` a client sent.

    Raises CursorMalformedError for anything but a non-negative integer of at most 18 digits.
    """
    text = str(value)
    if isinstance(value, bool) or not _SEQ.match(text):
        raise CursorMalformedError(f"{value!r} is not a position: expected 1 to 18 digits")
    return int(text)


def timestamp(epoch_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds, from milliseconds since the epoch."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=64)
def _second(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def optional_timestamp(epoch_ms: int | None) -> str | None:
    """`timestamp` for a moment that may not have come."""
    return None if epoch_ms is None else timestamp(epoch_ms)
