"""The history packet of a cold resume: the latest turns, bounded, in one block (section 7)."""

from typing import NamedTuple

from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.session.transcript import Said, turns_before

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
    async for said in turns_before(reader, session, before, side_limit=SIDE_LIMIT):
        turn = _told(said)
        size = len(turn.encode())
        if used + size > PACKET_LIMIT:
            reason = f"only the last {len(turns)} turns fit into {PACKET_LIMIT} bytes"
            break
        if said.is_cut:
            reason = reason or f"long messages are cut to their last {SIDE_LIMIT} characters"
        turns.append(turn)
        used += size
    if not turns:
        return None
    return Packet(_OPEN + "".join(reversed(turns)) + _CLOSE, len(turns), reason)


def _told(said: Said) -> str:
    """One turn as text."""
    return "".join(
        f"<{side}>\n{text.strip()}\n</{side}>\n"
        for side, text in (("user", said.user), ("assistant", said.assistant))
        if text.strip()
    )
