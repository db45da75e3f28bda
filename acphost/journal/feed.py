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
    def last(self) -> EventRow:
        """The last event as a row; unlike `rows[-1]` it costs no other row."""
        return self.stretches[-1].row(-1)

    @cached_property
    def size(self) -> int:
        """Bytes of payload, with something for each event."""
        return sum(stretch.size for stretch in self.stretches)

    @property
    def first_position(self) -> int:
        """Seq of the first event in a batch of one session, else its offset."""
        return self.first_offset if self.first_seq is None else self.first_seq

    @property
    def last_position(self) -> int:
        """Likewise of the last event."""
        return self.last_offset if self.last_seq is None else self.last_seq

    @property
    def first_offset(self) -> int:
        """Offset of the first event."""
        return self.stretches[0].first_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last event."""
        return self.stretches[-1].last_offset

    @property
    def first_seq(self) -> int | None:
        """Seq of the first event; None if the batch is of the whole journal."""
        return None if self.session_key is None else self.stretches[0].first_seq

    @property
    def last_seq(self) -> int | None:
        """Seq of the last event; None if the batch is of the whole journal."""
        return None if self.session_key is None else self.stretches[-1].last_seq


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
