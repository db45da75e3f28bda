"""Packs: a stretch as few rows, each named by its last event, and what becomes of them again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acphost.journal.event import RunRef, Stretch
from acphost.journal.packs import MOST_BYTES, MOST_EVENTS, PACK, StoredRow, packed, unpacked

#: How long the payloads of a stretch are, some as long as a pack.
lengths = st.lists(
    st.integers(0, 200) | st.sampled_from([0, MOST_BYTES - 1, MOST_BYTES, MOST_BYTES + 1]),
    min_size=1,
    max_size=12,
)


def stretch_of(payloads: list[bytes], host: bytes | None = None) -> Stretch:
    """Events of one run of a session, the first of them at offset 1001 as seq 51."""
    return Stretch(
        1001, 7, "sess_1", 51, 1_764_490_000_123, "message.delta", payloads, RunRef(9, "run_1"),
        "hermes", host, None, 0,
    )  # fmt: skip


def rows_of(stretch: Stretch) -> list[StoredRow]:
    return list(packed(stretch))


@given(lengths=lengths, times=st.integers(1, 60), host=st.sampled_from([None, b"{}", b"x" * 9000]))
@settings(max_examples=40)
def test_what_is_packed_is_unpacked_as_it_was(
    lengths: list[int], times: int, host: bytes | None
) -> None:
    """Every event comes back in its place, and no row is bigger than readers are promised."""
    payloads = [b"%d" % place * (length // 4) for place, length in enumerate(lengths * times)]
    stretch = stretch_of(payloads, host)

    stored = rows_of(stretch)

    events = [
        event
        for each in stored
        for event in (unpacked(each) if each.row.codec == PACK else [each.row])
    ]
    assert events == stretch.rows()
    assert sum(each.events for each in stored) == len(payloads)
    for each in stored:
        assert each.events <= MOST_EVENTS
        assert each.events == 1 or len(each.row.payload) <= MOST_BYTES + 4 * MOST_EVENTS
        assert (each.events == 1) == (each.row.codec == 0)


def test_a_flood_takes_few_rows() -> None:
    stored = rows_of(stretch_of([b"word"] * 1000))

    assert [(each.row.offset, each.row.seq, each.events) for each in stored] == [
        (1250, 300, 250), (1500, 550, 250), (1750, 800, 250), (2000, 1050, 250),
    ]  # fmt: skip


def test_some_events_of_a_pack_are_unpacked_without_the_others() -> None:
    (stored,) = rows_of(stretch_of([b"a", b"", b"ccc", b"dd"]))

    assert [(row.offset, row.seq, row.payload) for row in unpacked(stored, 1, 3)] == [
        (1002, 52, b""), (1003, 53, b"ccc"),
    ]  # fmt: skip


@pytest.mark.parametrize("events", [-1, 0, 1, 3, 5, 1 << 40])
def test_a_pack_that_counts_otherwise_is_damaged(events: int) -> None:
    (stored,) = rows_of(stretch_of([b"a", b"bb", b"ccc", b"dd"]))

    with pytest.raises(ValueError, match="a pack of"):
        unpacked(stored._replace(events=events))


def test_a_pack_that_was_cut_is_damaged() -> None:
    (stored,) = rows_of(stretch_of([b"a", b"bb", b"ccc", b"dd"]))

    for size in range(len(stored.row.payload)):
        cut = stored.row._replace(payload=stored.row.payload[:size])
        with pytest.raises(ValueError, match="a pack of"):
            unpacked(stored._replace(row=cut))
