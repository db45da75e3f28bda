"""A segment: many events of one session in little room, each of them to be had by its place.

What events share is written once, numbers stand column by column, payloads end to end; both parts
are compressed. Payloads that repeat an earlier one of the segment stand as differences.
"""

import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Generic, NamedTuple, TypeVar

import msgspec

from acphost.errors import StorageError
from acphost.journal.delta import Difference, Repeats
from acphost.journal.event import EventRow
from acphost.wire.event import TERMINAL_KINDS

T = TypeVar("T")
#: The text id of a run, by its key.
RunIds = Callable[[int], str | None]

#: The only way there is so far to write a segment.
CODEC = 1
#: A segment is read as a whole: these bound what a reader pays for its first event.
MOST_EVENTS = 2000
MOST_BYTES = 1024 * 1024

# Measured on 20 000 message deltas of 88 bytes: level 6 makes them 4.4 % in 16 ms, 9 makes them
# 4.1 % in 43 ms, 1 makes them 4.8 % in 16 ms.
_LEVEL = 6
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


class _Label(NamedTuple):
    kind: str
    source: str
    flags: int
    run_key: int | None


class _Facts(msgspec.Struct, array_like=True):
    """All of a segment but its payloads. Each `*_of` names, event by event, one of the others."""

    gaps: bytes
    ticks: bytes
    labels: list[_Label]
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


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Facts)

# -- writing --------------------------------------------------------------------------------------


class SegmentWriter:
    """Gathers the events of a segment in their order."""

    def __init__(self) -> None:
        self._first: EventRow | None = None
        self._offsets: list[int] = []
        self._moments: list[int] = []
        self._labels = _Dictionary[_Label]()
        self._hosts = _Dictionary[bytes | None]()
        self._origins = _Dictionary[bytes | None]()
        self._stored: list[bytes] = []
        self._differences: list[tuple[int, Difference]] = []
        self._runs: dict[int, SealedRun] = {}
        self._repeats = Repeats()
        self._bytes = 0
        self._raw_bytes = 0

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def room(self) -> int:
        """How many events it may still take."""
        return MOST_EVENTS - len(self._offsets)

    def add(self, row: EventRow) -> bool:
        """Take the next event, its payload as it was appended; False once the segment is full."""
        place, stored, found = len(self._offsets), row.payload, None
        if Repeats.may_be_in(row.kind, [row.payload]):
            found = self._repeats.find(0, place, row.payload)
            stored = stored if found is None else found.middle
        size = len(stored) + len(row.host or b"") + len(row.origin or b"")
        if place and (place >= MOST_EVENTS or self._bytes + size > MOST_BYTES):
            return False
        if self._first is None:
            self._first = row._replace(payload=b"")
        if found is not None:
            self._differences.append((place, found))
        self._offsets.append(row.offset)
        self._moments.append(row.at)
        self._labels.add(_Label(row.kind, row.source, row.flags, row.run_key))
        self._hosts.add(row.host)
        self._origins.add(row.origin)
        self._stored.append(stored)
        self._bytes += size
        self._raw_bytes += len(row.payload)
        if row.run_key is not None:
            self._note_run(row.run_key, row.seq or 0, row.kind)
        return True

    def _note_run(self, run_key: int, seq: int, kind: str) -> None:
        known = self._runs.get(run_key)
        terminal = seq if kind in TERMINAL_KINDS else known and known.terminal_seq
        self._runs[run_key] = SealedRun(run_key, seq, terminal)

    def finish(self) -> SealedEvents:
        """The segment; there must be an event in it."""
        first = self._first
        assert first is not None, "an empty segment is none"
        assert first.session_key is not None, "events of the host are not sealed"
        assert first.seq is not None, "as above"
        moments = self._moments
        differences = [difference for _, difference in self._differences]
        facts = _Facts(
            gaps=_packed(_steps(self._offsets)),
            ticks=_packed(moments[:1] + _steps(moments)),
            labels=list(self._labels.known), label_of=_packed(self._labels.used),
            hosts=list(self._hosts.known), host_of=_packed(self._hosts.used),
            origins=list(self._origins.known), origin_of=_packed(self._origins.used),
            lengths=_packed(list(map(len, self._stored))),
            differing=_packed([place for place, _ in self._differences]),
            bases=_packed([each.base for each in differences]),
            begins=_packed([each.begin for each in differences]),
            ends=_packed([each.end for each in differences]),
        )  # fmt: skip
        head = SegmentHead(
            first.offset, self._offsets[-1], first.session_key, first.seq,
            first.seq + len(self) - 1, CODEC,
        )  # fmt: skip
        return SealedEvents(
            head, len(self), self._raw_bytes,
            zlib.compress(_ENCODER.encode(facts), _LEVEL),
            zlib.compress(b"".join(self._stored), _LEVEL),
            list(self._runs.values()),
        )  # fmt: skip


class _Dictionary(Generic[T]):
    """Values by number, in the order in which they came up first."""

    def __init__(self) -> None:
        self.known: dict[T, int] = {}
        self.used: list[int] = []

    def add(self, value: T) -> None:
        self.used.append(self.known.setdefault(value, len(self.known)))


def _steps(numbers: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(numbers)]


def _packed(numbers: Sequence[int]) -> bytes:
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


def _unpacked(packed: bytes) -> "array[int]":
    column: array[int] = array(packed[:1].decode())
    column.frombytes(packed[1:])
    if not _LITTLE:
        column.byteswap()
    return column


# -- reading --------------------------------------------------------------------------------------


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
