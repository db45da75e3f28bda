"""The queue of waiting runs."""

import pytest

from acphost.errors import QueueFullError
from acphost.session.queue import RunQueue, Waiting
from tests.support.stores import run_row


def waiting(key: int, order: int) -> Waiting:
    return Waiting(run_row(key, queue_order=order), b"[]")


def test_runs_leave_in_the_order_in_which_they_came() -> None:
    queue = RunQueue(limit=10)
    for key in (1, 2, 3):
        queue.join(waiting(key, queue.next_order()))

    assert [each.run.key for each in queue] == [1, 2, 3]
    assert queue.head is not None
    assert queue.head.run.key == 1
    assert queue.leave("run_1") is not None
    assert queue.head.run.key == 2


def test_read_back_from_the_store_the_order_counts_and_goes_on() -> None:
    queue = RunQueue(limit=10)
    for key, order in ((3, 30), (1, 10), (2, 20)):
        queue.join(waiting(key, order))

    assert [each.run.key for each in queue] == [1, 2, 3]
    assert queue.next_order() == 31


def test_an_order_is_never_given_twice() -> None:
    queue = RunQueue(limit=10)
    queue.join(waiting(1, queue.next_order()))
    queue.leave("run_1")

    assert queue.next_order() == 2


def test_any_place_can_be_left_once() -> None:
    queue = RunQueue(limit=10)
    for key in (1, 2, 3):
        queue.join(waiting(key, key))

    assert queue.find("run_2") is not None
    assert queue.leave("run_2") is not None
    assert queue.leave("run_2") is None
    assert queue.find("run_2") is None
    assert [each.run.key for each in queue] == [1, 3]


def test_over_the_limit_nobody_joins() -> None:
    queue = RunQueue(limit=2)
    for key in (1, 2):
        queue.join(waiting(key, queue.next_order()))

    with pytest.raises(QueueFullError, match="2 runs wait"):
        queue.next_order()
    queue.leave("run_1")
    assert queue.next_order() == 3


def test_a_run_can_be_moved_anywhere_and_orders_are_only_exchanged() -> None:
    queue = RunQueue(limit=10)
    for key, order in ((1, 10), (2, 20), (3, 30), (4, 40)):
        queue.join(waiting(key, order))

    changed = queue.move("run_4", 1)

    assert [each.run.key for each in queue] == [1, 4, 2, 3]
    assert [each.run.queue_order for each in queue] == [10, 20, 30, 40]
    assert sorted(run.key for run in changed) == [2, 3, 4]
    assert queue.place_of("run_3") == 3
    assert queue.next_order() == 41
