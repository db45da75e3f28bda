"""Many alike events as one row of the store: what a flood costs is paid once a pack, not an event.

A pack is named by its last event: the greatest seq and offset of the plain rows are those of their
last events, and what follows a position is in the rows that are named by a greater one.
"""

import struct
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from acphost.journal.event import EventRow, Stretch

#: `codec` of a row of several events, whose payload holds theirs end to end behind their lengths.
PACK = 2

#: A reader of one event unpacks all of them: these bound what that costs. Readers also look no
#: farther than so many events for the pack that a position is in: the number can only ever grow.
MOST_EVENTS = 250
MOST_BYTES = 64 * 1024

#: Shorter stretches stay as they are, a row each: they could be packed no better than that.
SHORTEST = 8

_LENGTH = 4


class StoredRow(NamedTuple):
    """A row of the table as it is: one event, or the last of a pack of so many."""

    row: EventRow
    events: int = 1


def packed(stretch: Stretch) -> Iterator[StoredRow]:
    """The rows of a long stretch, in their order."""
    for start in range(0, len(stretch.payloads), MOST_EVENTS):
        yield from _packed(stretch, start, min(start + MOST_EVENTS, len(stretch.payloads)))


def _packed(stretch: Stretch, start: int, end: int) -> Iterator[StoredRow]:
    last, payloads = stretch.row(end - 1), stretch.payloads[start:end]
    events, lengths = len(payloads), list(map(len, payloads))
    if events == 1:
        yield StoredRow(last)
    elif sum(lengths) + events * len((last.host or b"") + (last.origin or b"")) > MOST_BYTES:
        middle = start + events // 2
        yield from _packed(stretch, start, middle)
        yield from _packed(stretch, middle, end)
    else:
        payload = struct.pack(f">{events}I", *lengths) + b"".join(payloads)
        yield StoredRow(last._replace(codec=PACK, payload=payload), events)


def unpacked(stored: StoredRow, start: int = 0, stop: int | None = None) -> list[EventRow]:
    """The events of a pack, or those of some of its places. Raises ValueError if it is damaged."""
    last, events = stored
    try:
        lengths = struct.unpack_from(f">{events}I", last.payload)
    except struct.error as exc:
        raise ValueError(f"a pack of {events} events has no room for their lengths") from exc
    ends = list(accumulate(lengths, initial=events * _LENGTH))
    if ends[-1] != len(last.payload):
        raise ValueError(f"a pack of {events} events has {len(last.payload)} bytes, not {ends[-1]}")
    first_offset = last.offset - events + 1
    first_seq = None if last.seq is None else last.seq - events + 1
    places = range(events)[start:stop]
    return [
        EventRow(
            first_offset + place, last.session_key,
            None if first_seq is None else first_seq + place, last.run_key, last.kind, last.source,
            0, last.flags, last.payload[ends[place] : ends[place + 1]], last.host, last.origin,
            last.at, last.session_id, last.run_id,
        )
        for place in places
    ]  # fmt: skip
