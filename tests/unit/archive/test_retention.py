"""What goes by age and by size, and what never goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.archive.retention import Cause, Rules, choose
from acphost.journal.space import Holding

DAY = 86_400_000
NOW = 100 * DAY


def holding(name: str, days: float, size: int = 10) -> Holding:
    return Holding(name, "fake", None, int(NOW - days * DAY), size)


UNUSED = [holding("a", 60, 100), holding("b", 31, 50), holding("c", 30, 20), holding("d", 1, 500)]


@pytest.mark.parametrize(
    ("rules", "used", "gone"),
    [
        (Rules(), 1 << 60, []),
        (Rules(max_age_days=30), 0, [("a", "age"), ("b", "age")]),
        (Rules(max_age_days=365), 1 << 60, []),
        (Rules(max_bytes=670), 670, []),
        (Rules(max_bytes=669), 670, [("a", "size")]),
        (Rules(max_bytes=525), 670, [("a", "size"), ("b", "size")]),
        (Rules(max_age_days=40, max_bytes=525), 670, [("a", "age"), ("b", "size")]),
        (Rules(max_bytes=1), 670, [(name, "size") for name in "abcd"]),
    ],
)
def test_the_longest_unused_go_first(rules: Rules, used: int, gone: list[tuple[str, str]]) -> None:
    chosen = choose(UNUSED, rules, used_bytes=used, now=NOW)

    assert [(each.holding.session_id, each.cause) for each in chosen] == gone


@given(
    days=st.lists(st.integers(0, 90), max_size=12).map(lambda drawn: sorted(drawn, reverse=True)),
    age=st.none() | st.integers(1, 90),
    most=st.none() | st.integers(0, 200),
    other=st.integers(0, 100),
)
def test_no_more_goes_than_the_rules_ask_for(
    days: list[int], age: int | None, most: int | None, other: int
) -> None:
    holdings = [holding(str(place), each) for place, each in enumerate(days)]
    used = other + sum(each.bytes for each in holdings)

    gone = choose(holdings, Rules(age, most), used_bytes=used, now=NOW)

    assert [each.holding for each in gone] == holdings[: len(gone)]
    old = sum(1 for each in days if age is not None and each > age)
    assert sum(each.cause is Cause.AGE for each in gone) == old
    if most is not None and len(gone) > old:
        before_the_last = used - 10 * (len(gone) - 1)
        assert before_the_last > most
    if most is not None and len(gone) < len(holdings):
        assert used - 10 * len(gone) <= most
