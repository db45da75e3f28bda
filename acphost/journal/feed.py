"""Live delivery: committed batches, encoded once, to whoever has caught up."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from acphost.journal.event import EventRow, Stretch, encode_stretches, stretches


class Batch:
    """Events of one commit in their order: of one session, or (`session_key` None) all of them."""

    def __init__(self, session_key: int | None, alike: Sequence[Stretch]) -> None:
        self.session_key = session_key
        self.stretches = alike
        first, last = alike[0], alike[-1]
        self.first_offset, self.last_offset = first.first_offset, last.last_offset
        #: None if the batch is of the whole journal.
        self.first_seq = None if session_key is None else first.first_seq
        self.last_seq = None if session_key is None else last.last_seq
        #: What the batch is ordered by: the seq, or in the whole journal the offset.
        self.first_position = self.first_offset if self.first_seq is None else self.first_seq
        self.last_position = self.last_offset if self.last_seq is None else self.last_seq

    @classmethod
    def of_rows(cls, session_key: int | None, rows: Sequence[EventRow]) -> "Batch":
        """A batch of rows; there must be one."""
        return cls(session_key, stretches(rows))

    @cached_property
    def rows(self) -> list[EventRow]:
        """The events as rows; made at the first need, once. Not for the hot path."""
        return [row for stretch in self.stretches for row in stretch.rows()]

    @cached_property
    def encoded(self) -> bytes:
        """The events as clients read them, joined by commas; made at the first need, once."""
        return encode_stretches(self.stretches)

    @cached_property
    def size(self) -> int:
        """Bytes of payload, with something for each event."""
        return sum(stretch.size for stretch in self.stretches)


class LiveSubscriber(Protocol):
    """Takes batches as they are committed."""

    def deliver(self, batch: Batch) -> None:
        """Take a batch; may neither block nor raise."""


class Feed:
    """Who wants which session's batches, or all."""

    def __init__(self) -> None:
        self._of_all: list[LiveSubscriber] = []
        self._of_session: dict[int, list[LiveSubscriber]] = {}

    def attach(self, subscriber: LiveSubscriber, session_key: int | None) -> None:
        """Deliver batches committed from now on: of one session, or (None) of the whole journal."""
        if session_key is None:
            self._of_all.append(subscriber)
        else:
            self._of_session.setdefault(session_key, []).append(subscriber)

    def detach(self, subscriber: LiveSubscriber, session_key: int | None) -> None:
        """Undo one `attach`; no effect if there is none."""
        known = self._of_all if session_key is None else self._of_session.get(session_key, [])
        if subscriber in known:
            known.remove(subscriber)
        if session_key is not None and not known:
            self._of_session.pop(session_key, None)

    def publish(self, rows: Sequence[EventRow]) -> None:
        """`publish_stretches` for rows."""
        self.publish_stretches(stretches(rows))

    def publish_stretches(self, alike: Sequence[Stretch]) -> None:
        """Hand over a committed batch; returns when every subscriber has it."""
        if not alike:
            return
        if self._of_all:
            whole = Batch(None, alike)
            for subscriber in tuple(self._of_all):
                subscriber.deliver(whole)
        if self._of_session:
            self._publish_by_session(alike)

    def _publish_by_session(self, alike: Sequence[Stretch]) -> None:
        own: dict[int, list[Stretch]] = {}
        for stretch in alike:
            key = stretch.session_key
            if key is not None and key in self._of_session:
                own.setdefault(key, []).append(stretch)
        for key, some in own.items():
            batch = Batch(key, some)
            # A subscriber may detach, itself or another, while it is served.
            for subscriber in tuple(self._of_session.get(key, ())):
                subscriber.deliver(batch)
