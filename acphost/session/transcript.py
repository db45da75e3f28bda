"""What was said in a session, turn by turn, read from the journal."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.session.heritage import earlier, ended_runs
from acphost.wire.acp import MessageChunk, TextBlock, lenient
from acphost.wire.event import Kind

#: Bytes of earlier turns that a model without a memory of its own is told at most.
TRANSCRIPT_LIMIT = 512 * 1024


class Said(NamedTuple):
    """Both sides of one turn."""

    user: str
    assistant: str
    #: The beginning of a side was left out.
    is_cut: bool


class Message(msgspec.Struct, frozen=True):
    """One side of a turn, as chat models are told it."""

    role: str
    content: str


async def transcript(reader: Reader, session: SessionRow, *, before: RunRow) -> list[Message]:
    """The turns before a run, the oldest first, as many of the latest as fit."""
    turns: list[Said] = []
    size = 0
    async for said in turns_before(reader, session, before, side_limit=TRANSCRIPT_LIMIT):
        size += len(said.user.encode()) + len(said.assistant.encode())
        if size > TRANSCRIPT_LIMIT:
            break
        turns.append(said)
    return [
        Message(role, text)
        for said in reversed(turns)
        for role, text in (("user", said.user), ("assistant", said.assistant))
        if text
    ]


async def turns_before(
    reader: Reader, session: SessionRow, before: RunRow | None, *, side_limit: int
) -> AsyncIterator[Said]:
    """The turns before a run in which anything was said, the latest first.

    Behind its own come those from before the session (see `heritage`).
    """
    async for run in ended_runs(reader, session):
        if before is not None and run.key == before.key:
            continue
        said = await _tell(reader, session, run, side_limit)
        if said.user.strip() or said.assistant.strip():
            yield said
    for said in reversed(await _earlier_turns(reader, session, side_limit)):
        yield said


async def _earlier_turns(reader: Reader, session: SessionRow, side_limit: int) -> list[Said]:
    turns: list[tuple[str, str]] = []
    async for row in earlier(reader, session):
        if row.kind == Kind.MESSAGE_USER:
            text = _user_text(row.payload)
            if turns and not turns[-1][1]:
                # Another piece of the same message.
                turns[-1] = turns[-1][0] + text, ""
            else:
                turns.append((text, ""))
        else:
            user, assistant = turns.pop() if turns else ("", "")
            turns.append((user, assistant + _text(row.payload)))
    return [
        Said(
            user[-side_limit:], assistant[-side_limit:], max(len(user), len(assistant)) > side_limit
        )
        for user, assistant in turns
        if user.strip() or assistant.strip()
    ]


async def _tell(reader: Reader, session: SessionRow, run: RunRow, side_limit: int) -> Said:
    """One turn; the end of a side that is too long says more than its beginning."""
    said: dict[str, str] = {"user": "", "assistant": ""}
    is_cut = False
    seq = (run.first_seq or 1) - 1
    while True:
        rows = await reader.events_after_seq(
            session.key, seq, limit=500, max_bytes=256 * 1024, upto_seq=run.last_seq,
            run_key=run.key,
        )  # fmt: skip
        if not rows:
            break
        seq = rows[-1].seq or seq
        for row in rows:
            if row.kind == Kind.MESSAGE_USER:
                said["user"] += _user_text(row.payload)
            elif row.kind == Kind.MESSAGE_DELTA:
                said["assistant"] += _text(row.payload)
        for side, text in said.items():
            if len(text) > side_limit:
                is_cut = True
                said[side] = text[-side_limit:]
    return Said(said["user"], said["assistant"], is_cut)


def _text(payload: bytes) -> str:
    try:
        return lenient(MessageChunk, payload).content.text
    except msgspec.DecodeError:
        return ""


class _UserMessage(msgspec.Struct):
    content: list[msgspec.Raw] = []


def _user_text(payload: bytes) -> str:
    try:
        blocks = msgspec.json.decode(payload, type=_UserMessage).content
        texts = [lenient(TextBlock, block).text for block in blocks]
    except msgspec.DecodeError:
        return ""
    return "\n".join(text for text in texts if text)
