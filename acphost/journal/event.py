"""One journal row as a value, and as the JSON object that clients read (contract section 3)."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from acphost.journal.strict import LOSSY, classify, repaired
from acphost.wire.base import timestamp
from acphost.wire.event import EVENT_SCHEMA

__all__ = [
    "EVENT_BYTES",
    "LOSSY",
    "STORED_FIELDS",
    "SYNTHETIC",
    "Draft",
    "EventRow",
    "RunRef",
    "Stretch",
    "classify",
    "encode_event",
    "encode_events",
    "encode_stretches",
    "stretches",
]

#: Flag bits of an event, beside LOSSY.
SYNTHETIC = 1


class RunRef(NamedTuple):
    """A run as events name it: the store's key and the client's id."""

    key: int
    id: str


class Draft(NamedTuple):
    """An event that has no place in the journal yet."""

    kind: str
    payload: bytes
    run: RunRef | None = None
    source: str = "mnote"
    host: bytes | None = None
    origin: bytes | None = None
    flags: int = 0


class EventRow(NamedTuple):
    """One event of the journal; the first twelve fields are the columns of its table."""

    offset: int
    session_key: int | None
    seq: int | None
    run_key: int | None
    kind: str
    source: str
    codec: int
    flags: int
    payload: bytes
    host: bytes | None
    origin: bytes | None
    at: int
    session_id: str | None = None
    run_id: str | None = None


STORED_FIELDS = 12

#: What an event or a row costs beside its content, in the byte budgets.
EVENT_BYTES = 100

# -- runs of alike events --------------------------------------------------------------------------


class Stretch:
    """Events that follow each other and differ in nothing but their numbers and payloads.

    A flood is one long stretch: what its events share is kept, written and encoded once.
    """

    __slots__ = (
        "at", "first_offset", "first_seq", "flags", "host", "kind", "origin", "payloads", "run",
        "session_id", "session_key", "source",
    )  # fmt: skip

    def __init__(
        self, first_offset: int, session_key: int | None, session_id: str | None,
        first_seq: int | None, at: int, kind: str, payloads: list[bytes], run: RunRef | None,
        source: str, host: bytes | None, origin: bytes | None, flags: int,
    ) -> None:  # fmt: skip
        self.first_offset = first_offset
        self.session_key = session_key
        self.session_id = session_id
        self.first_seq = first_seq
        self.at = at
        self.kind = kind
        self.payloads = payloads
        self.run = run
        self.source = source
        self.host = host
        self.origin = origin
        self.flags = flags

    @property
    def size(self) -> int:
        """Bytes of payload, with something for what an event costs beside it."""
        return sum(map(len, self.payloads)) + len(self.payloads) * EVENT_BYTES

    @property
    def last_offset(self) -> int:
        """Offset of the last event."""
        return self.first_offset + len(self.payloads) - 1

    @property
    def last_seq(self) -> int | None:
        """Seq of the last event."""
        return None if self.first_seq is None else self.first_seq + len(self.payloads) - 1

    def rows(self) -> list[EventRow]:
        """Each event as a row."""
        return [self.row(place) for place in range(len(self.payloads))]

    def row(self, place: int) -> EventRow:
        """One event as a row; negative places count from the end."""
        if place < 0:
            place += len(self.payloads)
        run_key, run_id = self.run or (None, None)
        return EventRow(
            self.first_offset + place, self.session_key,
            None if self.first_seq is None else self.first_seq + place, run_key, str(self.kind),
            self.source, 0, self.flags, self.payloads[place], self.host, self.origin, self.at,
            self.session_id, run_id,
        )  # fmt: skip


_SHARED = attrgetter(
    "session_key", "run_key", "kind", "source", "flags", "host", "origin", "at", "session_id",
    "run_id",
)  # fmt: skip


def stretches(rows: Iterable[EventRow]) -> list[Stretch]:
    """Rows in their order as stretches."""
    found: list[Stretch] = []
    for shared, group in groupby(rows, _SHARED):
        alike = list(group)
        if _are_contiguous(alike):
            found.append(_stretch_of(shared, alike))
        else:
            # What stood between is not among them: a filter, or another session, took it out.
            found.extend(_stretch_of(shared, [row]) for row in alike)
    return found


def _stretch_of(shared: tuple[Any, ...], rows: list[EventRow]) -> Stretch:
    session_key, run_key, kind, source, flags, host, origin, at, session_id, run_id = shared
    run = None if run_key is None else RunRef(run_key, run_id)
    return Stretch(
        rows[0].offset, session_key, session_id, rows[0].seq, at, kind,
        [row.payload for row in rows], run, source, host, origin, flags,
    )  # fmt: skip


def _are_contiguous(rows: list[EventRow]) -> bool:
    first, last, distance = rows[0], rows[-1], len(rows) - 1
    if last.offset - first.offset != distance:
        return False
    if first.seq is None or last.seq is None:
        return distance == 0
    return last.seq - first.seq == distance


# -- the JSON object -------------------------------------------------------------------------------

_HEAD = b',{"schema":"%b","offset":"' % EVENT_SCHEMA.encode()
_SEQ = b'","seq":"'
#: Positions are 18 digits; counting up, only the last three change often.
_LAST_DIGITS = tuple(b"%03d" % number for number in range(1000))


#: Shorter stretches are not worth slicing the digits for.
_SHORT = 6


def encode_event(row: EventRow) -> bytes:
    """The event as clients read it: one JSON object, no newline in it or after it."""
    return encode_stretches(stretches((row,)))


def encode_events(rows: Iterable[EventRow]) -> bytes:
    """`encode_event` of each row, joined by commas."""
    return encode_stretches(stretches(rows))


def encode_stretches(alike: Iterable[Stretch]) -> bytes:
    """`encode_event` of each event in them, joined by commas."""
    # Every event of a flood passes here: no work of ours is done event by event.
    parts: list[bytes] = []
    for stretch in alike:
        _encode_stretch(stretch, parts)
    encoded = b"".join(parts)[1:]
    # In JSON a newline can only stand between tokens; a line may not hold one.
    return encoded.replace(b"\n", b" ") if b"\n" in encoded else encoded


def _encode_stretch(stretch: Stretch, parts: list[bytes]) -> None:
    payloads: Sequence[bytes] = stretch.payloads
    if stretch.flags & LOSSY:
        payloads = [repaired(payload) for payload in payloads]
    run_id = stretch.run.id if stretch.run else None
    middle = _middle(stretch.session_id, run_id, str(stretch.kind), stretch.source)
    end = _end(stretch.at, stretch.flags, stretch.origin, stretch.host)
    offset, seq = stretch.first_offset, stretch.first_seq
    if seq is None:
        # An event of the host: it has no session, and is always alone.
        parts.append(b'%b%018d","seq":null%b%b%b' % (_HEAD, offset, middle[1:], payloads[0], end))
        return
    if len(payloads) < _SHORT:
        for place, payload in enumerate(payloads):
            numbers = (_HEAD, offset + place, _SEQ, seq + place)
            parts.append(b"%b%018d%b%018d%b%b%b" % (*numbers, middle, payload, end))
        return
    done = 0
    while done < len(payloads):
        thousands, offset_digits = divmod(offset + done, 1000)
        seq_thousands, seq_digits = divmod(seq + done, 1000)
        until = done + min(len(payloads) - done, 1000 - offset_digits, 1000 - seq_digits)
        pieces = zip(
            repeat(b"%b%015d" % (_HEAD, thousands)),
            _LAST_DIGITS[offset_digits:],
            repeat(b"%b%015d" % (_SEQ, seq_thousands)),
            _LAST_DIGITS[seq_digits:],
            repeat(middle),
            payloads[done:until],
            repeat(end),
            strict=False,
        )
        parts.extend(chain.from_iterable(pieces))
        done = until


@lru_cache(maxsize=1024)
def _middle(session_id: str | None, run_id: str | None, kind: str, source: str) -> bytes:
    members = {"sessionId": session_id, "hostRunId": run_id, "kind": kind, "source": source}
    # Begins with the quote that ends `seq`.
    return b'",' + msgspec.json.encode(members)[1:-1] + b',"payload":'


@lru_cache(maxsize=256)
def _end(at: int, flags: int, origin: bytes | None, host: bytes | None) -> bytes:
    if flags & LOSSY:
        host = b'{"lossy":true}' if host in {None, b"{}"} else host[:-1] + b',"lossy":true}'
    return b'%b%b,"synthetic":%b,"createdAt":"%b"}' % (
        b"" if origin is None else b',"origin":' + origin,
        b"" if host is None else b',"host":' + host,
        b"true" if flags & SYNTHETIC else b"false",
        timestamp(at).encode(),
    )
