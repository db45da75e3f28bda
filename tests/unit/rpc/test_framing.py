"""Bytes to lines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acphost.errors import FrameTooLongError
from acphost.rpc.framing import LineFramer, Oversized

LIMIT = 1 << 20

#: Few letters, so that line ends meet each other and the borders of chunks often.
streams = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b" ", b"\xe2\x80\xa8"])).map(
    b"".join
)


def lines_of(framer: LineFramer, chunks: list[bytes]) -> list[bytes]:
    lines = [line for chunk in chunks for line in framer.feed(chunk)]
    return lines + framer.finish()


def expected_lines(stream: bytes) -> list[bytes]:
    lines = [line[:-1] if line.endswith(b"\r") else line for line in stream.split(b"\n")]
    return [line for line in lines if line.strip()]


@given(stream=streams, cuts=st.lists(st.integers(0, 60)))
def test_how_the_bytes_are_cut_never_changes_the_lines(stream: bytes, cuts: list[int]) -> None:
    borders = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in pairwise(borders)]
    assert lines_of(LineFramer(LIMIT), chunks) == expected_lines(stream)


@pytest.mark.parametrize("cut", range(5))
def test_one_return_alone_belongs_to_the_end_of_a_line(cut: int) -> None:
    stream = b"a\r\r\n"
    assert lines_of(LineFramer(LIMIT), [stream[:cut], stream[cut:]]) == [b"a\r"]


@given(stream=streams, cuts=st.lists(st.integers(0, 60)), limit=st.integers(1, 4))
def test_over_long_lines_are_reported_once_and_the_others_arrive(
    stream: bytes, cuts: list[int], limit: int
) -> None:
    borders = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in pairwise(borders)]

    found = lines_of(LineFramer(limit, discard=True), chunks)

    raw = [line for line in stream.split(b"\n") if line.strip()]
    long = [line for line in raw if len(line) > limit]
    short = [line.removesuffix(b"\r") for line in raw if len(line) <= limit]
    heads = [line for line in found if isinstance(line, Oversized)]
    assert [line for line in found if not isinstance(line, Oversized)] == [
        line for line in short if line.strip()
    ]
    # A head of blanks is dropped like any blank line.
    assert len(heads) <= len(long)
    assert all(any(line.startswith(head) for line in long) for head in heads)


def test_separators_other_than_newline_do_not_split() -> None:
    text = "a\u2028b\u2029c\x85d\x1ce\x0bf".encode()
    assert LineFramer(LIMIT).feed(text + b"\r\n") == [text]


def test_only_one_carriage_return_is_taken() -> None:
    assert LineFramer(LIMIT).feed(b"a\r\r\nb\r\n") == [b"a\r", b"b"]


def test_a_carriage_return_at_the_border_of_two_chunks_is_taken() -> None:
    assert lines_of(LineFramer(LIMIT), [b"a\r", b"\nb"]) == [b"a", b"b"]


def test_a_last_line_without_newline_is_not_lost() -> None:
    framer = LineFramer(LIMIT)
    assert framer.feed(b"a\nb") == [b"a"]
    assert framer.finish() == [b"b"]
    assert framer.finish() == []


def test_a_line_of_exactly_the_limit_passes() -> None:
    framer = LineFramer(4)
    assert framer.feed(b"abcd\n") == [b"abcd"]
    assert framer.feed(b"ab") == []
    assert framer.feed(b"cd\n") == [b"abcd"]


@pytest.mark.parametrize("chunks", [[b"abcde\n"], [b"abc", b"de\n"], [b"abcde"], [b"abc", b"de"]])
def test_a_line_over_the_limit_breaks_the_framer_for_good(chunks: list[bytes]) -> None:
    framer = LineFramer(4)
    for chunk in chunks[:-1]:
        assert framer.feed(chunk) == []
    with pytest.raises(FrameTooLongError):
        framer.feed(chunks[-1])
    with pytest.raises(FrameTooLongError):
        framer.feed(b"x\n")
    assert framer.finish() == []


def test_lines_before_the_over_long_one_are_handed_out_first() -> None:
    framer = LineFramer(4)
    assert framer.feed(b"ab\ncd\nabcde\nef\n") == [b"ab", b"cd"]
    assert isinstance(framer.error, FrameTooLongError)


def test_a_line_that_never_ends_takes_no_more_than_the_limit() -> None:
    framer = LineFramer(1000, discard=True)
    reports = [line for _ in range(5000) for line in framer.feed(b"x" * 100)]
    assert reports == [Oversized(b"x" * 256)]
    assert framer.feed(b"xx\nnext\n") == [b"next"]


def test_an_over_long_line_is_reported_before_its_end_comes() -> None:
    framer = LineFramer(4, discard=True)
    [head] = framer.feed(b"abcdefg")
    assert isinstance(head, Oversized)
    assert framer.feed(b"h\nok\n") == [b"ok"]


def test_a_large_line_in_small_chunks_is_whole() -> None:
    framer = LineFramer(64 << 20)
    piece = bytes(range(32, 127)) * 43
    for _ in range(8192):
        assert framer.feed(piece) == []
    assert framer.feed(b"\n") == [piece * 8192]
