"""Tokens and cost: context, turn and session kept apart, and unknown never zero."""

from decimal import Decimal

from acphost.session.usage import UsageLedger, money, stored_run_usage
from acphost.wire.usage import ContextUpdate, Cost, Reported


def answer(given: int, out: int, total: int | None = None) -> Reported:
    return Reported(input_tokens=given, output_tokens=out, total_tokens=total)


def usd(amount: str) -> ContextUpdate:
    return ContextUpdate(used=1, cost=Cost(amount=Decimal(amount), currency="USD"))


def turn(
    ledger: UsageLedger,
    told: Reported | None,
    *,
    is_cumulative: bool = True,
    epoch: str = "one",
    model: str | None = None,
) -> int | None:
    """A turn with this answer; what it has used."""
    ledger.begin(epoch)
    kept = ledger.end(told, is_cumulative=is_cumulative, model=model)
    return stored_run_usage(kept).total


def test_nothing_is_known_at_first() -> None:
    ledger = UsageLedger(b"{}")
    assert ledger.session.tokens is None
    assert ledger.session.cost is None
    assert ledger.last_run.total is None
    assert (ledger.context.used, ledger.context.size) == (None, None)
    assert turn(ledger, None) is None
    assert ledger.session.tokens is None


def test_cumulative_or_per_turn_is_not_the_same_sum() -> None:
    for is_cumulative, session, last in ((True, 2500, 1500), (False, 3500, 2500)):
        ledger = UsageLedger(b"{}")
        turn(ledger, answer(1000, 10, 1010), is_cumulative=is_cumulative)
        turn(ledger, answer(2500, 25, 2525), is_cumulative=is_cumulative)
        assert ledger.session.prompt == session
        assert ledger.last_run.prompt == last


def test_a_new_process_counts_from_zero() -> None:
    ledger = UsageLedger(b"{}")
    assert turn(ledger, answer(100, 1, 101)) == 101
    assert turn(ledger, answer(150, 2, 152), epoch="two") == 152
    assert turn(ledger, answer(250, 3, 253), epoch="two") == 101
    assert ledger.session.tokens == 101 + 253
    assert ledger.session.carryover == 101


def test_a_restart_of_the_daemon_changes_nothing() -> None:
    ledger = UsageLedger(b"{}")
    turn(ledger, answer(100, 1, 101), model="m")
    ledger.update(ContextUpdate(used=7, size=9))
    again = UsageLedger(ledger.encode())
    assert turn(again, answer(150, 2, 152)) == 51
    assert again.session.tokens == 152
    assert (again.context.used, again.context.size) == (7, 9)


def test_counts_that_go_back_begin_anew() -> None:
    ledger = UsageLedger(b"{}")
    turn(ledger, answer(100, 1, 101))
    assert turn(ledger, answer(40, 1, 41)) == 41


def test_an_agent_that_says_it_counts_from_zero_again() -> None:
    ledger = UsageLedger(b"{}")
    turn(ledger, answer(100, 1, 101))
    ledger.restart()
    assert turn(ledger, answer(200, 1, 201)) == 201
    assert ledger.session.tokens == 302


def test_a_turn_that_tells_nothing_is_unknown_and_lost_in_no_sum() -> None:
    ledger = UsageLedger(b"{}")
    turn(ledger, answer(100, 1, 101))
    assert turn(ledger, None) is None
    assert turn(ledger, answer(300, 3, 303)) == 202
    assert ledger.session.tokens == 303


def test_what_is_told_during_the_turn_is_the_turns() -> None:
    ledger = UsageLedger(b"{}")
    ledger.begin("one")
    ledger.report(answer(10, 1))
    ledger.report(answer(30, 3))
    assert ledger.turn.total == 33
    ledger.end(None, is_cumulative=False, model=None)
    assert ledger.session.tokens == 33
    assert ledger.turn.total is None


def test_cost_is_exact_and_by_currency() -> None:
    ledger = UsageLedger(b"{}")
    for amount in ("0.1", "0.3"):
        ledger.begin("one")
        ledger.update(usd(amount))
        ledger.end(None, is_cumulative=False, model="m")
    assert ledger.last_run.cost == "0.2 USD"
    assert ledger.session.cost == "0.3 USD"
    ledger.begin("two")
    ledger.report(Reported(input_tokens=1, cost=Cost(amount=Decimal("0.05"), currency="CNY")))
    ledger.end(None, is_cumulative=False, model="m")
    assert ledger.session.cost == "0.3 USD + 0.05 CNY"
    (share,) = ledger.models
    assert (share.model, share.tokens, share.cost) == ("m", 1, "0.3 USD + 0.05 CNY")


def test_money_is_text() -> None:
    assert money({}) is None
    assert money({"USD": Decimal("1E-7")}) == "0.0000001 USD"


def test_the_context_is_what_was_said_last() -> None:
    ledger = UsageLedger(b"{}")
    ledger.update(ContextUpdate(used=900, size=128_000))
    ledger.update(ContextUpdate(used=1500))
    assert (ledger.context.used, ledger.context.size) == (1500, 128_000)
