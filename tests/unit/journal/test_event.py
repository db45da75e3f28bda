"""Rows, stretches of alike rows, and the JSON object that clients read."""

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from acphost.journal.event import (
    LOSSY,
    SYNTHETIC,
    EventRow,
    encode_event,
    encode_events,
    stretches,
)
from acphost.wire.base import position_text, timestamp
from acphost.wire.event import Event

PLAIN = EventRow(
    412, 7, 31, 9, "message.delta", "hermes", 0, 0, b'{"content":{"text":"hi"}}', None, None,
    1_764_490_000_123, "sess_1", "run_1",
)  # fmt: skip

payloads = st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode()
)
objects = st.none() | st.dictionaries(st.text(), st.integers(), min_size=1, max_size=2).map(
    msgspec.json.encode
)


@st.composite
def journals(draw: st.DrawFn) -> list[EventRow]:
    """Rows as they stand in a journal, often alike, sometimes with gaps and host events."""
    offset = draw(st.integers(0, 10**18 - 10_000))
    seqs = {1: draw(st.integers(0, 2_000)), 2: 0}
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        offset += draw(st.sampled_from((1, 1, 1, 2, 999)))
        key = draw(st.sampled_from((1, 1, 1, 2, None)))
        if key is not None:
            seqs[key] += draw(st.sampled_from((1, 1, 1, 990)))
        run_key = draw(st.sampled_from((None, 4)))
        rows.append(
            EventRow(
                offset, key, None if key is None else seqs[key], run_key,
                draw(st.sampled_from(("message.delta", "thought.delta"))),
                draw(st.sampled_from(("mnote", "hermes"))), 0,
                draw(st.sampled_from((0, 0, 0, SYNTHETIC))), draw(payloads), draw(objects),
                draw(objects), draw(st.sampled_from((0, 1_764_490_000_123))),
                None if key is None else f"sess_{key}",
                None if run_key is None else f"run_{run_key}",
            )
        )  # fmt: skip
    return rows


def expected(row: EventRow) -> dict[str, object]:
    """The contract's object, made the slow and obvious way."""
    members = {
        "schema": "mnote.ai_run_event.v1",
        "offset": position_text(row.offset),
        "seq": None if row.seq is None else position_text(row.seq),
        "sessionId": row.session_id,
        "hostRunId": row.run_id,
        "kind": row.kind,
        "source": row.source,
        "payload": json.loads(row.payload),
        "origin": row.origin and json.loads(row.origin),
        "host": row.host and json.loads(row.host),
        "synthetic": bool(row.flags & SYNTHETIC),
        "createdAt": timestamp(row.at),
    }
    absent = {name for name in ("origin", "host") if members[name] is None}
    return {name: value for name, value in members.items() if name not in absent}


@given(journals())
@settings(max_examples=50)
def test_what_is_encoded_reads_back_as_what_was_journaled(rows: list[EventRow]) -> None:
    encoded = encode_events(rows)
    read = json.loads(b"[" + encoded + b"]")

    assert encoded == b",".join(encode_event(row) for row in rows)
    assert read == [expected(row) for row in rows]
    assert [list(event) for event in read] == [list(expected(row)) for row in rows]


@given(journals())
@settings(max_examples=50)
def test_stretches_hold_the_same_rows_in_the_same_order(rows: list[EventRow]) -> None:
    assert [row for stretch in stretches(rows) for row in stretch.rows()] == rows


def test_alike_neighbours_are_one_stretch_across_any_number_of_digits() -> None:
    rows = [
        PLAIN._replace(offset=99_990 + place, seq=1 + place, payload=b"%d" % place)
        for place in range(2_500)
    ]

    assert len(stretches(rows)) == 1
    assert json.loads(b"[" + encode_events(rows) + b"]") == [expected(row) for row in rows]


def test_an_event_fits_its_wire_struct() -> None:
    assert msgspec.json.decode(encode_event(PLAIN), type=Event).host_run_id == "run_1"


def test_payload_bytes_are_written_as_they_are() -> None:
    payload = '{"b" : 1.0,"a":"\\u00e9\u2028é","b":2}'.encode()

    assert b'"payload":' + payload + b"," in encode_event(PLAIN._replace(payload=payload))


def test_a_lossy_payload_is_repaired_and_says_so() -> None:
    row = PLAIN._replace(
        payload=b'{"a":"\\ud800 \\ud83d\\ude00 \xff","b":[NaN,-Infinity,1e999]}',
        flags=LOSSY,
        host=b'{"late":true}',
    )

    encoded = encode_event(row)

    assert '{"a":"\\ufffd \\ud83d\\ude00 \ufffd","b":[null,null,1e999]}'.encode() in encoded
    assert json.loads(encoded)["host"] == {"late": True, "lossy": True}


def test_a_lossy_payload_without_host_facts_gets_them() -> None:
    row = PLAIN._replace(payload=b'"\\udfff"', flags=LOSSY | SYNTHETIC)

    assert json.loads(encode_event(row)) == {
        **expected(row._replace(payload=b'"\xef\xbf\xbd"')),
        "host": {"lossy": True},
        "synthetic": True,
    }


def test_what_is_not_even_json_is_shown_as_text() -> None:
    row = PLAIN._replace(payload=b"\xff{", flags=LOSSY)

    assert json.loads(encode_event(row))["payload"] == "\ufffd{"


def test_a_newline_between_tokens_does_not_break_the_line() -> None:
    row = PLAIN._replace(payload=b'{\n"a":\r\n1}')

    assert b"\n" not in encode_event(row)
    assert json.loads(encode_event(row)) == expected(row)
