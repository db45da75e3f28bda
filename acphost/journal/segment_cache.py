"""The segments that were read last, so that a reader who goes on does not unpack them again."""

import sqlite3
import threading
from collections import OrderedDict

from acphost.errors import StorageError
from acphost.journal.segments import Segment, SegmentHead
from acphost.journal.selects import SEGMENT_CONTENT

#: Bytes of memory that they may take.
_CACHE_BYTES = 8 * 1024 * 1024


class SegmentCache:
    """The segments that were read last; they never change, so they are never stale."""

    def __init__(self) -> None:
        self._segments: OrderedDict[tuple[int, int], Segment] = OrderedDict()
        self._bytes = 0
        # The connections of a pool have threads of their own.
        self._lock = threading.Lock()

    def get(self, connection: sqlite3.Connection, head: SegmentHead) -> Segment:
        """The segment, read if need be. Raises StorageError."""
        # One that was merged into a longer one has kept its first offset.
        key = head.first_offset, head.last_offset
        with self._lock:
            known = self._segments.get(key)
            if known is not None:
                self._segments.move_to_end(key)
                return known
        content = connection.execute(SEGMENT_CONTENT, key[:1]).fetchone()
        if content is None:
            raise StorageError(f"segment {head.first_offset} has no content")
        segment = Segment(head, *content)
        with self._lock:
            if key not in self._segments:
                self._segments[key] = segment
                self._bytes += segment.size
            while self._bytes > _CACHE_BYTES and len(self._segments) > 1:
                self._bytes -= self._segments.popitem(last=False)[1].size
        return segment
