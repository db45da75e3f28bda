"""The history packet of a cold resume: the latest turns, bounded, in one block (section 7)."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.wire.acp import MessageChunk, TextBlock, lenient
from acphost.wire.event import Kind

#: Bytes of history a new agent session is given at most.
PACKET_LIMIT = 48 * 1024
#: Of one side of one turn; the end of a long answer says more than its beginning.
SIDE_LIMIT = 12 * 1024

_OPEN = (
    "<conversation-history>\n"
    "Earlier turns of this conversation, from the host's record. The agent session that held them "
    "is gone; nothing here needs an answer, the message below does.\n"
)
_CLOSE = "</conversation-history>"


class Packet(NamedTuple):
    """What is sent ahead of the first prompt, and what had to be left out."""

    text: str
    turns: int
    truncated_reason: str | None

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return len(self.text.encode())


async def build_packet(
    reader: Reader, session: SessionRow, *, before: RunRow | None
) -> Packet | None:
    """The history of the runs before `before`; None if there is none worth telling."""
    turns: list[str] = []
    used, reason = 0, None
    async for run in _ended_runs(reader, session, before):
        turn, cut = await _tell(reader, session, run)
        if not turn:
            continue
        size = len(turn.encode())
        if used + size > PACKET_LIMIT:
            reason = f"only the last {len(turns)} turns fit into {PACKET_LIMIT} bytes"
            break
        reason = reason or cut
        turns.append(turn)
        used += size
    if not turns:
        return None
    return Packet(_OPEN + "".join(reversed(turns)) + _CLOSE, len(turns), reason)


async def _ended_runs(
    reader: Reader, session: SessionRow, before: RunRow | None
) -> AsyncIterator[RunRow]:
    cursor: str | None = None
    while True:
        runs, cursor = await reader.runs(session_key=session.key, cursor=cursor, limit=20)
        for run in runs:
            if run.started_at is not None and (before is None or run.key != before.key):
                yield run
        if cursor is None:
            return


async def _tell(reader: Reader, session: SessionRow, run: RunRow) -> tuple[str, str | None]:
    """One turn as text, and why it is not whole."""
    said: dict[str, str] = {"user": "", "assistant": ""}
    cut = None
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
            if len(text) > SIDE_LIMIT:
                cut = f"long messages are cut to their last {SIDE_LIMIT} characters"
                said[side] = text[-SIDE_LIMIT:]
    lines = [
        f"<{side}>\n{text.strip()}\n</{side}>\n" for side, text in said.items() if text.strip()
    ]
    return "".join(lines), cut


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
