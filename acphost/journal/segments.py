"""A segment: many events of one session in little room, each of them to be had by its place.

What events share is written once, numbers stand column by column, payloads end to end; both parts
are compressed. Payloads that repeat an earlier one of the segment stand as differences.
"""

import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from acphost.errors import StorageError
from acphost.journal.delta import Difference
from acphost.journal.event import EventRow

#: The text id of a run, by its key.
RunIds = Callable[[int], str | None]

#: The only way there is so far to write a segment.
CODEC = 1
_CODES = "bhiq"
_LITTLE = sys.byteorder == "little"


class SegmentHead(NamedTuple):
    """What is known of a segment without reading it; its first six columns."""

    first_offset: int
    last_offset: int
    session_key: int
    first_seq: int
    last_seq: int
    codec: int


class SealedRun(NamedTuple):
    """What a segment has of a run."""

    run_key: int
    last_seq: int
    terminal_seq: int | None


class SealedEvents(NamedTuple):
    """A segment as it is stored."""

    head: SegmentHead
    events: int
    raw_bytes: int
    facts: bytes
    payloads: bytes
    runs: list[SealedRun]


class Label(NamedTuple):
    """What most events of a segment share with many others of it."""

    kind: str
    source: str
    flags: int
    run_key: int | None


class Facts(msgspec.Struct, array_like=True):
    """All of a segment but its payloads. Each `*_of` names, event by event, one of the others."""

    gaps: bytes
    ticks: bytes
    labels: list[Label]
    label_of: bytes
    hosts: list[bytes | None]
    host_of: bytes
    origins: list[bytes | None]
    origin_of: bytes
    lengths: bytes
    #: Of the payloads that are differences: their places, and the places of their bases.
    differing: bytes
    bases: bytes
    begins: bytes
    ends: bytes


_DECODER = msgspec.msgpack.Decoder(Facts)


def packed(numbers: Sequence[int]) -> bytes:
    """Numbers as a letter for their width, and that many bytes each, the lowest first."""
    low, high = min(numbers, default=0), max(numbers, default=0)
    for code in _CODES:
        limit = 1 << (8 * array(code).itemsize - 1)
        if -limit <= low and high < limit:
            break
    column = array(code, numbers)
    if not _LITTLE:
        column.byteswap()
    return code.encode() + column.tobytes()


def _unpacked(column_bytes: bytes) -> "array[int]":
    column: array[int] = array(column_bytes[:1].decode())
    column.frombytes(column_bytes[1:])
    if not _LITTLE:
        column.byteswap()
    return column


class Segment:
    """A segment that was read; events are named by their place in it, from 0."""

    def __init__(self, head: SegmentHead, facts: bytes, payloads: bytes) -> None:
        """Raises StorageError for a segment that is damaged, or newer than this program."""
        self.head = head
        if head.codec != CODEC:
            raise StorageError(
                f"segment {head.first_offset} is packed with codec {head.codec}, which this "
                "version cannot read"
            )
        try:
            known = _DECODER.decode(zlib.decompress(facts))
            self._stream = zlib.decompress(payloads)
            self._labels, self._label_of = known.labels, _unpacked(known.label_of)
            self._hosts, self._host_of = known.hosts, _unpacked(known.host_of)
            self._origins, self._origin_of = known.origins, _unpacked(known.origin_of)
            self._offsets = array("q", accumulate(_unpacked(known.gaps), initial=head.first_offset))
            self._moments = array("q", accumulate(_unpacked(known.ticks)))
            self._bounds = array("q", accumulate(_unpacked(known.lengths), initial=0))
            columns = (known.differing, known.bases, known.begins, known.ends)
            self._differences = {
                place: numbers for place, *numbers in zip(*map(_unpacked, columns), strict=True)
            }
        except (zlib.error, msgspec.DecodeError, ValueError, UnicodeDecodeError) as exc:
            raise StorageError(f"segment {head.first_offset} is damaged: {exc}") from exc
        self._check()

    def _check(self) -> None:
        """What is whole must also fit together, so that later no place is missing."""
        head, events = self.head, len(self)
        columns = (self._label_of, self._host_of, self._origin_of, self._moments)
        if (
            any(len(column) != events for column in columns)
            or events != len(self._bounds) - 1
            or self._bounds[-1] != len(self._stream)
            or self._offsets[-1] != head.last_offset
            or events != head.last_seq - head.first_seq + 1
        ):
            raise StorageError(f"segment {head.first_offset} is damaged: its parts do not agree")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return len(self._stream) + 64 * len(self)

    def after_seq(self, seq: int) -> int:
        """The place of the first event with a greater seq; the length if there is none."""
        return min(max(seq + 1 - self.head.first_seq, 0), len(self))

    def after_offset(self, offset: int) -> int:
        """The place of the first event with a greater offset; the length if there is none."""
        return bisect_right(self._offsets, offset)

    def offset(self, place: int) -> int:
        """The offset of an event."""
        return self._offsets[place]

    def places_of_run(self, run_key: int, start: int, stop: int) -> Iterator[int]:
        """Where the events of a run are, between two places."""
        wanted = {number for number, label in enumerate(self._labels) if label.run_key == run_key}
        of = self._label_of
        return (place for place in range(start, stop) if of[place] in wanted)

    def row(self, place: int, session_id: str | None, run_id: RunIds) -> EventRow:
        """An event as it was appended."""
        kind, source, flags, run_key = self._labels[self._label_of[place]]
        return EventRow(
            self._offsets[place], self.head.session_key, self.head.first_seq + place, run_key,
            kind, source, 0, flags, self.payload(place), self._hosts[self._host_of[place]],
            self._origins[self._origin_of[place]], self._moments[place], session_id,
            None if run_key is None else run_id(run_key),
        )  # fmt: skip

    def payload(self, place: int) -> bytes:
        """The payload of an event as it was appended."""
        steps: list[Difference] = []
        while (found := self._differences.get(place)) is not None:
            base, begin, end = found
            if base >= place:
                raise StorageError(f"segment {self.head.first_offset} refers to what comes later")
            steps.append(Difference(base, begin, end, self._stored(place)))
            place = base
        payload = self._stored(place)
        for step in reversed(steps):
            payload = step.applied(payload)
        return payload

    def _stored(self, place: int) -> bytes:
        return self._stream[self._bounds[place] : self._bounds[place + 1]]
