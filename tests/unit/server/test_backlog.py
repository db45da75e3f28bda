"""The backlog of a cursor: whole as long as nothing is missing, bounded, and never a repeat."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from acphost.journal.event import EVENT_BYTES, EventRow
from acphost.journal.feed import Batch
from acphost.server.backlog import Backlog

#: Of an event in these tests.
_SIZE = EVENT_BYTES + 2


def batch(*seqs: int) -> Batch:
    """A commit of one session with these events."""
    return Batch.of_rows(
        1,
        [
            EventRow(100 + seq, 1, seq, None, "evidence", "mnote", 0, 0, b"{}", None, None, 1)
            for seq in seqs
        ],
    )


def taken(backlog: Backlog) -> list[int | None]:
    """The seqs of all that is left."""
    found = []
    while (some := backlog.take()) is not None:
        found += [row.seq for row in some.rows]
    return found


def test_a_new_cursor_has_to_read_the_store_first() -> None:
    backlog = Backlog()

    assert not backlog.is_whole
    backlog.nothing_read(backlog.begin_read())

    assert backlog.is_whole
    assert taken(backlog) == []


def test_what_came_while_nothing_was_found_follows() -> None:
    backlog = Backlog()
    backlog.put(batch(1, 2))
    begun = backlog.begin_read()
    backlog.put(batch(3))

    backlog.nothing_read(begun)

    assert backlog.is_whole
    assert taken(backlog) == [3]


def test_a_page_that_reaches_into_what_is_left_makes_it_whole() -> None:
    backlog = Backlog()
    for seqs in ((1, 2), (3, 4), (5,)):
        backlog.put(batch(*seqs))

    backlog.begin_read()
    backlog.has_read(3)

    assert backlog.is_whole
    # The cursor knows what it has read of the first of them.
    assert taken(backlog) == [3, 4, 5]


def test_a_page_that_ends_before_it_does_not() -> None:
    backlog = Backlog()
    backlog.put(batch(7))

    backlog.begin_read()
    backlog.has_read(5)
    assert not backlog.is_whole
    backlog.has_read(6)

    assert backlog.is_whole
    assert taken(backlog) == [7]


def test_over_the_limit_the_latest_are_kept_and_the_store_has_the_others() -> None:
    backlog = Backlog(2 * _SIZE)
    backlog.nothing_read(backlog.begin_read())
    for seq in (1, 2, 3):
        backlog.put(batch(seq))

    assert not backlog.is_whole
    backlog.begin_read()
    backlog.has_read(1)

    assert backlog.is_whole
    assert taken(backlog) == [2, 3]


def test_a_batch_over_the_limit_is_not_kept_at_all() -> None:
    backlog = Backlog(2 * _SIZE)
    backlog.nothing_read(backlog.begin_read())

    backlog.put(batch(1, 2, 3))

    assert not backlog.is_whole
    assert backlog.begin_read() == 0


def test_what_was_lost_during_a_read_that_found_nothing_is_read_again() -> None:
    backlog = Backlog(2 * _SIZE)
    begun = backlog.begin_read()
    for seq in (1, 2, 3):
        backlog.put(batch(seq))

    backlog.nothing_read(begun)

    assert not backlog.is_whole


class Cursor:
    """A place in a store that is a list, and what was seen on the way to it."""

    def __init__(self, limit: int, page: int) -> None:
        self.store: list[int] = []
        self.seen: list[int] = []
        self.backlog = Backlog(limit * _SIZE)
        self._page = page

    def commit(self) -> None:
        self.store.append(len(self.store) + 1)
        self.backlog.put(batch(self.store[-1]))

    def go_on(self, commits_meanwhile: int) -> bool:
        """One step as a subscription takes it; whether there was anything to do."""
        if self.backlog.is_whole:
            some = self.backlog.take()
            if some is not None:
                self.seen.append(some.last_position)
            return some is not None
        begun = self.backlog.begin_read()
        found = self.store[len(self.seen) :][: self._page]
        for _ in range(commits_meanwhile):
            self.commit()
        self.seen += found
        if found:
            self.backlog.has_read(found[-1])
        else:
            self.backlog.nothing_read(begun)
        return True


@given(
    limit=st.integers(1, 8),
    page=st.integers(1, 4),
    steps=st.lists(st.none() | st.integers(0, 3), max_size=60),
)
def test_a_cursor_sees_each_event_once(limit: int, page: int, steps: Sequence[int | None]) -> None:
    """None: a commit; a number: the cursor goes on, and so many commits come while it reads."""
    cursor = Cursor(limit, page)

    for step in steps:
        if step is None:
            cursor.commit()
        else:
            cursor.go_on(step)
        assert cursor.seen == cursor.store[: len(cursor.seen)]
    while cursor.go_on(0):
        pass

    assert cursor.seen == cursor.store
