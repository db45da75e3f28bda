"""Payloads that repeat an earlier one, kept as what lies between a common begin and a common end.

An agent that tells the whole output of a tool with every update would fill the journal with the
square of it. Update n is kept as its difference from an earlier one, found by clearing the lowest
bit of n: what all differences hold grows as n log n, and none is more than log n steps from a
payload that is kept whole.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from acphost.journal.event import EventRow
from acphost.wire.event import Kind

#: `codec` of an event whose payload is a difference from another event of its session.
DIFFERENCE = 1

_DIFFERING = frozenset(
    {Kind.TOOL_STARTED, Kind.TOOL_UPDATED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED}
)
#: Shorter payloads are not worth it.
SHORTEST = 256
#: Steps from a difference to a whole payload.
_DEEPEST = 24
#: Bytes of payloads that are remembered: of one tool call, and of all.
_CALL_BYTES = 4 * 1024 * 1024
_ALL_BYTES = 8 * 1024 * 1024

_HEAD = struct.Struct(">QII")
_CALL_ID = b'"toolCallId":'
_ID_LENGTH = 128


class Difference(NamedTuple):
    """A payload as what it shares with the one of event `base`, and what stands in between."""

    base: int
    begin: int
    end: int
    middle: bytes

    def applied(self, base: bytes) -> bytes:
        """The payload, made of that of the base."""
        return b"".join((base[: self.begin], self.middle, base[len(base) - self.end :]))


def pack(difference: Difference) -> bytes:
    """The difference as the payload column of a row of that codec."""
    return _HEAD.pack(*difference[:3]) + difference.middle


def unpack(packed: bytes) -> Difference:
    """The difference that was packed. Raises ValueError."""
    try:
        base, begin, end = _HEAD.unpack_from(packed)
    except struct.error as exc:
        raise ValueError(str(exc)) from exc
    return Difference(base, begin, end, packed[_HEAD.size :])


class _Told(NamedTuple):
    """A payload that later ones may refer to: the n-th of its tool call."""

    place: int
    number: int
    depth: int
    payload: bytes


class Repeats:
    """The latest payloads of each tool call, within bounds; finds what a new one repeats."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[int, bytes], list[_Told]] = OrderedDict()
        self._bytes = 0

    def clear(self) -> None:
        """Forget all: what comes next is kept whole."""
        self._calls.clear()
        self._bytes = 0

    @staticmethod
    def may_be_in(kind: str, payloads: list[bytes]) -> bool:
        """Whether events of that kind and those payloads are worth a look."""
        return kind in _DIFFERING and max(map(len, payloads)) >= SHORTEST

    def packed(self, row: EventRow) -> EventRow:
        """The row as it is stored; for every row of a session that may be such, in their order."""
        found = self.find(row.session_key or 0, row.offset, row.payload)
        return row if found is None else row._replace(codec=DIFFERENCE, payload=pack(found))

    def find(self, session_key: int, number: int, payload: bytes) -> Difference | None:
        """How the payload of event `number` differs from an earlier one; None: keep it whole."""
        if len(payload) < SHORTEST:
            return None
        key = session_key, _call_id(payload)
        told = self._calls.pop(key, [])
        self._bytes -= _size(told)
        place = told[-1].place + 1 if told else 0
        previous = told[-1] if told else None
        while told and told[-1].place > place & (place - 1):
            told.pop()
        # The better base may have been dropped for its size.
        base = told[-1] if told else previous
        difference = None
        if base is not None and base.depth < _DEEPEST:
            difference = difference_from(base.number, base.payload, payload)
        if difference is None or base is None:
            told = [_Told(0, number, 0, payload)]
        else:
            told.append(_Told(place, number, base.depth + 1, payload))
        self._remember(key, told)
        return difference

    def _remember(self, key: tuple[int, bytes], told: list[_Told]) -> None:
        size = _size(told)
        while size > _CALL_BYTES and len(told) > 1:
            size -= len(told.pop(0).payload)
        self._calls[key] = told
        self._bytes += size
        while self._bytes > _ALL_BYTES:
            self._bytes -= _size(self._calls.popitem(last=False)[1])


def _size(told: list[_Told]) -> int:
    return sum(len(each.payload) for each in told)


def _call_id(payload: bytes) -> bytes:
    """What tells the calls apart; a wrong guess costs room, never truth."""
    start = payload.find(_CALL_ID)
    if start < 0:
        return b""
    start += len(_CALL_ID)
    return payload[start : start + _ID_LENGTH].partition(b",")[0]


def difference_from(number: int, base: bytes, payload: bytes) -> Difference | None:
    """The difference of a payload from that of event `number`; None if it saves too little."""
    shorter = min(len(base), len(payload))
    begin = _alike(shorter, lambda at, to: base[at:to] == payload[at:to])
    size, base_size = len(payload), len(base)
    end = _alike(
        shorter - begin,
        lambda at, to: base[base_size - to : base_size - at] == payload[size - to : size - at],
    )
    middle = payload[begin : size - end]
    if _HEAD.size + len(middle) > size // 2:
        return None
    return Difference(number, begin, end, middle)


def _alike(length: int, are_alike: Callable[[int, int], bool]) -> int:
    """How far two texts are alike, halving what is in doubt."""
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        if are_alike(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
