"""Segments and differences by themselves: what goes in comes out, in little room."""

import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.errors import StorageError
from acphost.journal.delta import Repeats, difference_from, pack, unpack
from acphost.journal.event import EventRow
from acphost.journal.segment_writer import MOST_BYTES, MOST_EVENTS, SegmentWriter
from acphost.journal.segments import SealedEvents, Segment

LARGE = 1 << 62


def row(place: int, payload: bytes, **changes: object) -> EventRow:
    made = EventRow(
        100 + 2 * place, 1, 7 + place, 1, "message.delta", "acp", 0, 0, payload, None, None, 5,
        "sess_1", "run_1",
    )  # fmt: skip
    return made._replace(**changes)  # type: ignore[arg-type]


def sealed(rows: list[EventRow]) -> SealedEvents:
    writer = SegmentWriter()
    for each in rows:
        assert writer.add(each)
    return writer.finish()


def opened(content: SealedEvents) -> Segment:
    return Segment(content.head, content.facts, content.payloads)


def read(segment: Segment) -> list[EventRow]:
    return [segment.row(place, "sess_1", lambda key: f"run_{key}") for place in range(len(segment))]


facts = st.fixed_dictionaries(
    {
        "run_key": st.sampled_from([None, 1, 2**40]),
        "kind": st.sampled_from(["message.delta", "tool.updated", "evidence", "x.new"]),
        "source": st.sampled_from(["mnote", "acp"]),
        "flags": st.integers(0, 3),
        "payload": st.binary(max_size=400) | st.sampled_from([b"a" * 300, b"a" * 299 + b"b"]),
        "host": st.none() | st.binary(max_size=20),
        "origin": st.none() | st.binary(max_size=20),
        "at": st.integers(-LARGE // 2, LARGE // 2),
    }
)


@given(drawn=st.lists(facts, min_size=1, max_size=30), gaps=st.lists(st.integers(1, LARGE // 40)))
def test_every_event_comes_back_as_it_was(drawn: list[dict[str, object]], gaps: list[int]) -> None:
    steps = (gaps + [1] * len(drawn))[: len(drawn)]
    rows = [
        row(place, b"")._replace(**each, offset=offset)  # type: ignore[arg-type]
        for place, (each, offset) in enumerate(zip(drawn, accumulate(steps), strict=True))
    ]
    rows = [each._replace(run_id=None if each.run_key is None else f"run_{each.run_key}")
            for each in rows]  # fmt: skip

    content = sealed(rows)
    segment = opened(content)

    assert read(segment) == rows
    assert content.raw_bytes == sum(len(each.payload) for each in rows)
    for place, each in enumerate(rows):
        assert segment.after_offset(each.offset) == place + 1
        assert segment.after_offset(each.offset - 1) == place
        assert segment.after_seq(each.seq or 0) == place + 1
        assert segment.row(place, "sess_1", lambda key: f"run_{key}") == each


def test_a_segment_is_bounded_but_takes_one_event_of_any_size() -> None:
    many, big, huge = SegmentWriter(), SegmentWriter(), SegmentWriter()

    counted = sum(many.add(row(place, b"x")) for place in range(MOST_EVENTS + 10))
    weighed = sum(big.add(row(place, random.randbytes(MOST_BYTES // 8))) for place in range(20))

    assert (counted, weighed) == (MOST_EVENTS, 8)
    assert huge.add(row(0, bytes(3 * MOST_BYTES)))
    assert not huge.add(row(1, b"x"))


def test_twenty_thousand_token_deltas_take_a_seventh_of_their_bytes_at_most() -> None:
    source = random.Random(1)
    letters = b"abcdefghijklmnopqrstuvwxyz"
    words = [bytes(source.choices(letters, k=source.randint(2, 9))) for _ in range(4000)]
    payloads = [
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":" %b"}}'
        % source.choice(words)
        for _ in range(20_000)
    ]

    taken = 0
    for start in range(0, len(payloads), MOST_EVENTS):
        rows = [row(place, payload, at=place // 50)
                for place, payload in enumerate(payloads[start : start + MOST_EVENTS])]  # fmt: skip
        content = sealed(rows)
        taken += len(content.facts) + len(content.payloads)

    assert taken <= 0.10 * sum(map(len, payloads))


def test_what_a_segment_has_of_runs_is_told() -> None:
    content = sealed(
        [
            row(0, b"{}", run_key=None),
            row(1, b"{}", run_key=1, kind="run.completed"),
            row(2, b"{}", run_key=2),
            row(3, b"{}", run_key=1),
        ]
    )

    assert sorted(content.runs) == [(1, 10, 8), (2, 9, None)]


@pytest.mark.parametrize("part", ["facts", "payloads"])
def test_a_damaged_segment_is_an_error_of_the_store(part: str) -> None:
    content = sealed([row(place, random.randbytes(50)) for place in range(50)])
    other = sealed([row(place, b"other") for place in range(49)])
    whole = getattr(content, part)

    for damaged in (b"", whole[:-9], whole[:20] + b"\0\0" + whole[22:], getattr(other, part)):
        with pytest.raises(StorageError):
            opened(content._replace(**{part: damaged}))  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        opened(content._replace(head=content.head._replace(codec=9)))


# -- differences ----------------------------------------------------------------------------------


def update(lines: int, call: str = "c1", status: str = "in_progress") -> bytes:
    text = "\\n".join(f"{place:049d}" for place in range(lines))
    return (
        f'{{"sessionUpdate":"tool_call_update","toolCallId":"{call}","status":"{status}",'
        f'"content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]}}'
    ).encode()


@given(base=st.binary(max_size=60), payload=st.binary(max_size=60), shared=st.binary(max_size=90))
def test_a_difference_gives_back_the_payload(base: bytes, payload: bytes, shared: bytes) -> None:
    for before, after in ((base + shared, payload + shared), (shared + base, shared + payload),
                          (base, payload), (shared, shared)):  # fmt: skip
        difference = difference_from(3, before, after)
        if difference is not None:
            assert unpack(pack(difference)).applied(before) == after
            assert len(pack(difference)) <= len(after) // 2


def test_output_told_again_with_every_update_takes_little_and_few_steps() -> None:
    """A tool that repeats all it has printed, 2,000 lines of it, line by line."""
    repeats, taken, depths = Repeats(), 0, dict[int, int]()
    whole: dict[int, bytes] = {}

    for number in range(1, 2001):
        payload = whole[number] = update(number)
        difference = repeats.find(1, number, payload)
        depths[number] = 0 if difference is None else depths[difference.base] + 1
        taken += len(payload if difference is None else pack(difference))
        if difference is not None:
            assert difference.applied(whole[difference.base]) == payload

    assert taken < 1_000_000
    assert max(depths.values()) <= 24


def test_calls_and_sessions_do_not_refer_to_each_other() -> None:
    repeats = Repeats()

    assert repeats.find(1, 1, update(20)) is None
    assert repeats.find(2, 2, update(20)) is None
    assert repeats.find(1, 3, update(20, "c2")) is None
    found = repeats.find(1, 4, update(21))
    assert found is not None
    assert found.base == 1


def test_small_and_unlike_payloads_are_kept_whole() -> None:
    repeats = Repeats()

    assert not repeats.may_be_in("tool.updated", [update(0)])
    assert not repeats.may_be_in("message.delta", [update(100)])
    assert repeats.may_be_in("tool.updated", [update(0), update(10)])
    assert [repeats.find(1, place, random.randbytes(400)) for place in range(9)] == [None] * 9


def test_what_is_remembered_is_bounded() -> None:
    repeats = Repeats()
    big = update(60_000)
    for call in range(6):
        for number in range(4):
            payload = big.replace(b'"c1"', b'"c%d"' % call) + b" " * number
            _ = repeats.find(1, 10 * call + number, payload)

    # The first call is forgotten, the last is not.
    assert repeats.find(1, 100, big.replace(b'"c1"', b'"c0"')) is None
    found = repeats.find(1, 101, big.replace(b'"c1"', b'"c5"'))
    assert found is not None
