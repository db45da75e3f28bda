"""What was said before a session began: where it was forked from, or with its agent elsewhere.

It stands in the session's own journal, as events of no run that are marked as history: whatever
becomes of the session it came from, people see it, and an agent that has forgotten it can be told.
"""

from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import msgspec

from acphost.journal.event import Draft, EventRow, classify
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.session.updates import Matter, Meaning
from acphost.wire.acp import MessageChunk, lenient
from acphost.wire.event import HOST, Kind

#: Marks an event that tells what was before the session.
HISTORY = "history"
#: Bytes of an earlier conversation that a fork is given at most; the latest turns count.
FORK_LIMIT = 4 << 20
#: And so many turns: each is read by itself.
FORK_TURNS = 1000
_PAGE = 500
_PAGE_BYTES = 1 << 20
_MESSAGES = frozenset({Kind.MESSAGE_USER, Kind.MESSAGE_DELTA})
#: What of a turn is worth having: what a call did between its start and its end is not.
_KEPT = _MESSAGES | {Kind.TOOL_STARTED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED}


class Inherited(NamedTuple):
    """The past of a session for its fork."""

    drafts: list[Draft]
    #: Turns that did not fit are left out: the earlier ones.
    is_cut: bool


async def inherited(reader: Reader, parent: SessionRow, upto_seq: int) -> Inherited:
    """What a session has said up to there in turns that are over, and what it inherited itself."""
    turns: list[list[Draft]] = []
    room = FORK_LIMIT
    async for run in ended_runs(reader, parent, upto_seq=upto_seq):
        turn = await _turn(reader, parent, run, room)
        room -= _size(turn)
        if room < 0 or len(turns) == FORK_TURNS:
            return Inherited([draft for turn in reversed(turns) for draft in turn], is_cut=True)
        turns.append(turn)
    before = [_draft(row, row.payload) async for row in earlier(reader, parent, _KEPT)]
    is_cut = _size(before) > room
    turns += [] if is_cut else [before]
    return Inherited([draft for turn in reversed(turns) for draft in turn], is_cut)


async def ended_runs(
    reader: Reader, session: SessionRow, *, upto_seq: int | None = None
) -> AsyncIterator[RunRow]:
    """The runs of a session that reached its agent, the latest first; those over by `upto_seq`."""
    cursor: str | None = None
    while True:
        runs, cursor = await reader.runs(session_key=session.key, cursor=cursor, limit=20)
        for run in runs:
            is_over = upto_seq is None or (run.terminal_seq or upto_seq + 1) <= upto_seq
            if run.started_at is not None and is_over:
                yield run
        if cursor is None:
            return


async def earlier(
    reader: Reader, session: SessionRow, kinds: frozenset[Kind] = _MESSAGES
) -> AsyncIterator[EventRow]:
    """What a session tells of the time before it, in order; it stands before the first turn."""
    seq = 0
    while True:
        rows = await reader.events_after_seq(session.key, seq, limit=_PAGE, max_bytes=_PAGE_BYTES)
        for row in rows:
            if row.kind == Kind.RUN_STARTED:
                return
            if row.kind in kinds and is_history(row):
                yield row
        if not rows or rows[-1].seq is None:
            return
        seq = rows[-1].seq


async def count_earlier(reader: Reader, session: SessionRow) -> int:
    """How many events tell of the time before."""
    return sum([1 async for _ in earlier(reader, session, frozenset(Kind))])


def is_history(row: EventRow) -> bool:
    """Whether an event tells what was before the session."""
    return row.run_key is None and row.host is not None and b'"history":true' in row.host


def history(kind: str, meaning: Meaning, payload: bytes, source: str) -> Draft | None:
    """An update that an agent tells of the time before; None if it is nothing to be shown."""
    if kind == Kind.MESSAGE_USER:
        try:
            content = msgspec.json.decode(payload, type=_Chunk).content
        except msgspec.DecodeError:
            return None
        payload = b'{"content":[%b]}' % bytes(content)
    elif meaning.matter not in (Matter.CONTENT, Matter.TOOL):
        return None
    return Draft(kind, payload, None, source, history_host(None), None, classify(payload))


class _Chunk(msgspec.Struct):
    content: msgspec.Raw


async def _turn(reader: Reader, session: SessionRow, run: RunRow, room: int) -> list[Draft]:
    """One turn in few events: each stretch of text as one; empty-handed where it has no room."""
    turn: list[Draft] = []
    text: list[str] = []
    source = HOST
    seq = (run.first_seq or 1) - 1
    while rows := await reader.events_after_seq(
        session.key, seq, limit=_PAGE, max_bytes=_PAGE_BYTES, upto_seq=run.last_seq,
        run_key=run.key,
    ):  # fmt: skip
        seq = rows[-1].seq or seq
        for row in rows:
            said = _text(row) if row.kind == Kind.MESSAGE_DELTA else None
            if said is not None:
                text.append(said)
                room -= len(said)
                source = row.source
            elif row.kind in _KEPT:
                turn += [*_joined(text, source), _draft(row, row.payload)]
                room -= len(row.payload)
        if room < 0:
            break
    return [*turn, *_joined(text, source)]


def _joined(text: list[str], source: str) -> Iterator[Draft]:
    """The text so far as one piece of an answer."""
    if text:
        content = {"type": "text", "text": "".join(text)}
        payload = msgspec.json.encode({"sessionUpdate": "agent_message_chunk", "content": content})
        text.clear()
        yield Draft(Kind.MESSAGE_DELTA, payload, None, source, history_host(None), None)


def _draft(row: EventRow, payload: bytes) -> Draft:
    host = history_host(row.host)
    return Draft(row.kind, payload, None, row.source, host, None, classify(payload))


def history_host(host: bytes | None) -> bytes:
    """What the host knows beside an event, and that it is history."""
    known = msgspec.json.decode(host, type=dict[str, msgspec.Raw]) if host else {}
    return msgspec.json.encode({**known, HISTORY: True})


def _text(row: EventRow) -> str | None:
    try:
        content = lenient(MessageChunk, row.payload).content
    except msgspec.DecodeError:
        return None
    return content.text if content.type == "text" else None


def _size(turn: list[Draft]) -> int:
    return sum(len(draft.payload) for draft in turn)
