"""The judgement of a soak: what is flat, and what is not."""

import pytest

from tests.soak.figures import RULES, Sample, judge

MB = 1024 * 1024


def sample(seconds: float, **changes: float) -> Sample:
    plain = Sample(seconds, 60 * MB, 120, 8, 4 * MB, 25, 10 * MB, 1000, 0.5)
    return plain._replace(**changes)  # type: ignore[arg-type]


def wrong(samples: list[Sample]) -> list[str]:
    return [each.rule.name for each in judge(samples) if not each.is_flat]


def test_what_rises_only_while_it_warms_up_is_flat() -> None:
    """The first quarter does not count, and a single peak is none of the median."""
    samples = [sample(second, rss=min(60, 20 + 4 * second) * MB) for second in range(41)]
    samples[35] = sample(35, rss=90 * MB, descriptors=300)

    assert wrong(samples) == []


@pytest.mark.parametrize(
    ("figure", "growth", "name"),
    [
        ("rss", MB, "memory"),
        ("descriptors", 1, "descriptors"),
        ("threads", 0.2, "threads"),
        ("wal", MB, "WAL"),
        ("processes", 0.5, "processes"),
    ],
)
def test_what_grows_all_the_time_is_not(figure: str, growth: float, name: str) -> None:
    """Each figure by itself."""
    samples = [
        sample(second, **{figure: getattr(sample(0), figure) + growth * second})
        for second in range(41)
    ]

    assert wrong(samples) == [name]


def test_a_wal_that_was_too_big_once_is_not_either() -> None:
    """It has a limit of its own."""
    samples = [sample(second) for second in range(41)]
    samples[5] = sample(5, wal=33 * MB)

    assert wrong(samples) == ["WAL"]
    assert len(RULES) == 5


def test_too_few_samples_are_no_judgement() -> None:
    """There must be one in each of the two quarters."""
    with pytest.raises(ValueError, match="too few"):
        judge([sample(1)])
