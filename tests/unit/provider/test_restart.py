"""How often a failing agent is started."""

from hypothesis import given
from hypothesis import strategies as st

from acphost.provider.restart import FIRST_DELAY, HEALTHY, RestartPolicy


def test_the_first_start_does_not_wait() -> None:
    policy = RestartPolicy(limit=5, window=60_000)
    assert policy.delay(0) == 0
    assert not policy.is_resting(0)


def test_each_failure_doubles_the_pause_up_to_the_limit() -> None:
    policy = RestartPolicy(limit=5, window=60_000)
    now, pauses = 0, []
    while not policy.is_resting(now):
        pauses.append(policy.delay(now))
        now += policy.delay(now)
        policy.failed(now)

    assert pauses == [0, FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY, 8 * FIRST_DELAY]


def test_the_pause_counts_from_the_failure() -> None:
    policy = RestartPolicy(limit=5, window=60_000)
    policy.failed(1000)
    assert policy.delay(1000 + FIRST_DELAY - 1) == 1
    assert policy.delay(1000 + FIRST_DELAY + 5) == 0


def test_it_rests_for_a_window_after_the_last_failure() -> None:
    policy = RestartPolicy(limit=2, window=60_000)
    policy.failed(0)
    policy.failed(50_000)
    assert policy.is_resting(110_000)
    assert not policy.is_resting(110_001)
    assert policy.delay(110_001) == 0


def test_a_process_that_lived_was_healthy() -> None:
    policy = RestartPolicy(limit=2, window=60_000)
    policy.failed(0)
    policy.ended(started=0, now=HEALTHY)
    assert policy.delay(HEALTHY) == 0
    policy.ended(started=HEALTHY, now=HEALTHY + 1)
    policy.ended(started=HEALTHY, now=HEALTHY + 2)
    assert policy.is_resting(HEALTHY + 2)


def test_a_reset_gives_a_new_chance() -> None:
    policy = RestartPolicy(limit=1, window=60_000)
    policy.failed(0)
    assert policy.is_resting(0)
    policy.reset()
    assert not policy.is_resting(0)


@given(st.lists(st.integers(0, 20_000), max_size=30), st.integers(1, 6))
def test_no_window_sees_more_failed_starts_than_the_limit(gaps: list[int], limit: int) -> None:
    """Whoever asks first and waits as told never starts more often than allowed."""
    policy, now, starts = RestartPolicy(limit=limit, window=60_000), 0, list[int]()
    for gap in gaps:
        now += gap
        if policy.is_resting(now):
            continue
        now += policy.delay(now)
        starts.append(now)
        policy.failed(now)
    for index, start in enumerate(starts[limit:]):
        assert start - starts[index] > 60_000 or limit == 0
