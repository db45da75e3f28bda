"""Open requests."""

import msgspec
import pytest

from acphost.errors import ConnectionLostError, RemoteError
from acphost.rpc.pending import Answer, Pending

OK = msgspec.Raw(b"{}")


def test_an_answer_reaches_the_one_who_asked_and_nobody_else() -> None:
    pending = Pending()
    first: list[Answer] = []
    second: list[Answer] = []
    a = pending.register(first.append)
    b = pending.register(second.append)
    failure = RemoteError(-32000, "no")

    assert a != b
    assert pending.settle(b, failure)
    assert (first, second) == ([], [failure])
    assert len(pending) == 1


def test_an_id_is_compared_by_type_and_value() -> None:
    pending = Pending()
    got: list[Answer] = []
    number = pending.register(got.append)

    assert number == 1
    for other in ("1", True, 1.0, None, 2, -1):
        assert not pending.settle(other, OK)  # type: ignore[arg-type]  # what a peer may send
    assert got == []
    assert pending.stray("1") == "wrong_type"
    assert pending.stray(2) == "unknown"
    assert pending.stray("x") == "unknown"
    assert pending.stray(None) == "unknown"


def test_a_second_answer_changes_nothing() -> None:
    pending = Pending()
    got: list[Answer] = []
    number = pending.register(got.append)

    assert pending.settle(number, OK)
    assert not pending.settle(number, RemoteError(1, "late"))
    assert pending.stray(number) == "repeated"
    assert got == [OK]


def test_an_answer_to_an_abandoned_request_is_swallowed() -> None:
    pending = Pending()
    got: list[Answer] = []
    number = pending.register(got.append)
    pending.abandon(number)

    assert not pending.settle(number, OK)
    assert pending.stray(number) == "repeated"
    assert got == []


def test_a_lost_connection_fails_everybody_once_in_order() -> None:
    pending = Pending()
    order: list[tuple[str, Answer]] = []
    pending.register(lambda answer: order.append(("a", answer)))
    pending.register(lambda answer: order.append(("b", answer)))
    lost = ConnectionLostError("gone")

    pending.fail_all(lost)
    pending.fail_all(lost)

    assert order == [("a", lost), ("b", lost)]
    assert len(pending) == 0
    with pytest.raises(ConnectionLostError):
        pending.register(lambda answer: None)


def test_a_callback_may_ask_again() -> None:
    pending = Pending()
    got: list[Answer] = []
    number = pending.register(lambda _: got.append(OK) if pending.register(got.append) else None)
    assert pending.settle(number, OK)
    assert len(pending) == 1


def test_who_fails_over_an_answer_is_told_of_the_lost_connection() -> None:
    pending = Pending()
    got: list[Answer] = []

    def stumble(answer: Answer) -> None:
        got.append(answer)
        if answer is OK:
            raise ValueError("a mistake of ours")

    number = pending.register(stumble)
    with pytest.raises(ValueError, match="a mistake"):
        pending.settle(number, OK)
    lost = ConnectionLostError("it has gone")
    pending.fail_all(lost)
    assert got == [OK, lost]
