"""Who is given which batches."""

from acphost.journal.event import EventRow, encode_events
from acphost.journal.feed import Batch, Feed


class Listener:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def deliver(self, batch: Batch) -> None:
        self.batches.append(batch)


def row(offset: int, session_key: int | None, seq: int | None) -> EventRow:
    session_id = None if session_key is None else f"sess_{session_key}"
    return EventRow(
        offset, session_key, seq, None, "evidence", "mnote", 0, 0, b"{}", None, None, 0, session_id
    )


ROWS = [row(1, 1, 1), row(2, 1, 2), row(3, 2, 1), row(4, None, None), row(5, 1, 3)]


def test_each_gets_its_session_and_whoever_wants_all_gets_all() -> None:
    feed, first, second, all_of_it = Feed(), Listener(), Listener(), Listener()
    feed.attach(first, 1)
    feed.attach(second, 2)
    feed.attach(all_of_it, None)

    feed.publish(ROWS)

    assert [batch.rows for batch in first.batches] == [[ROWS[0], ROWS[1], ROWS[4]]]
    assert [batch.rows for batch in second.batches] == [[ROWS[2]]]
    assert [batch.rows for batch in all_of_it.batches] == [ROWS]


def test_a_batch_knows_its_ends() -> None:
    feed, listener, all_of_it = Feed(), Listener(), Listener()
    feed.attach(listener, 1)
    feed.attach(all_of_it, None)

    feed.publish(ROWS)

    (batch,), (whole,) = listener.batches, all_of_it.batches
    assert (batch.first_offset, batch.last_offset, batch.first_seq, batch.last_seq) == (1, 5, 1, 3)
    assert (batch.first_position, batch.last_position) == (1, 3)
    assert (whole.first_position, whole.last_position) == (1, 5)
    assert (whole.first_offset, whole.last_offset, whole.first_seq, whole.last_seq) == (
        1, 5, None, None,
    )  # fmt: skip


def test_subscribers_of_one_session_share_one_encoding() -> None:
    feed, first, second = Feed(), Listener(), Listener()
    feed.attach(first, 1)
    feed.attach(second, 1)

    feed.publish(ROWS)

    (batch,) = first.batches
    assert second.batches == [batch]
    assert batch.encoded is batch.encoded
    assert batch.encoded == encode_events([ROWS[0], ROWS[1], ROWS[4]])


def test_one_may_leave_while_it_is_served() -> None:
    class Leaver(Listener):
        def deliver(self, batch: Batch) -> None:
            super().deliver(batch)
            feed.detach(self, 1)

    feed, leaver, stayer = Feed(), Leaver(), Listener()
    feed.attach(leaver, 1)
    feed.attach(stayer, 1)

    feed.publish(ROWS)
    feed.publish(ROWS)

    assert (len(leaver.batches), len(stayer.batches)) == (1, 2)


def test_leaving_without_having_come_changes_nothing() -> None:
    feed = Feed()

    feed.detach(Listener(), 1)
    feed.detach(Listener(), None)
    feed.publish(ROWS)
