"""A run in flight: what its agent has done so far, and what is still open."""

from collections.abc import Sequence

import anyio
from msgspec import Raw

from acphost.errors import RemoteError
from acphost.journal.event import RunRef
from acphost.journal.rows import RunRow
from acphost.journal.writer import Ticket
from acphost.provider.switchboard import Asked
from acphost.provider.traits import TurnFacts
from acphost.session.calls import CallBook
from acphost.session.claims import Claims
from acphost.session.ending import Ending
from acphost.session.updates import Matter, Meaning, text_of
from acphost.wire.event import Kind
from acphost.wire.host import Mode

#: A longer answer is no remark of the agent about itself.
REMARK_LIMIT = 400
_REOPENED = frozenset({Mode.RESUMED, Mode.LOADED, Mode.REPLAY_SEEN})


class Turn:
    """Facts of one prompt between `run.started` and its terminal event."""

    def __init__(self, run: RunRow) -> None:
        self.run = run
        self.ref = RunRef(run.key, run.run_id)
        #: The agent showed a sign of life for this prompt.
        self.alive = anyio.Event()
        self.cancel_asked = anyio.Event()
        self.over = anyio.Event()
        self.cancel_sent = False
        self.cancel_ticket: Ticket | None = None
        #: Open questions that the stop has answered; the agent is told once that is on disk.
        self.dismissed: list[Asked] = []
        self.hold_queue = False
        #: How often the agent had no time for the prompt, and whether it is to be asked again.
        self.refusals = 0
        self.put_off = anyio.Event()
        self.start_ticket = Ticket(0)
        self.ending: Ending | None = None
        self.prompt_sent = False
        #: The request that the prompt is; None: it was never made.
        self.request_id: int | None = None
        self.updates = 0
        self.content = 0
        self.remark: str | None = ""
        self.calls = CallBook(run.run_id)
        #: What they say they have changed.
        self.claims = Claims()
        self.last_sign = 0
        #: The same by a clock that nobody can set.
        self.heard = 0
        #: It has been silent for longer than is usual, and was said to be; then `sound` is awaited.
        self.is_quiet = False
        self.sound = anyio.Event()
        #: The last that was heard was about a tool.
        self.is_in_tool = False
        #: Its answer tells totals since the agent's process began.
        self.usage_is_cumulative = False

    def take(self, meaning: Meaning, updates: Sequence[Raw]) -> None:
        """Follow updates of this turn that mean the same."""
        self.updates += len(updates)
        self.alive.set()
        self.is_in_tool = meaning.tool is not None
        if meaning.tool is not None:
            self.content += 1
            self.claims.take(meaning.kind, meaning.tool)
        elif meaning.matter is Matter.CONTENT:
            self.content += len(updates)
            if meaning.kind == Kind.MESSAGE_DELTA:
                self._listen(updates)

    def _listen(self, updates: Sequence[Raw]) -> None:
        for update in updates:
            if self.remark is None:
                return
            remark = self.remark + text_of(update)
            self.remark = remark if len(remark) <= REMARK_LIMIT else None

    def facts(
        self, *, stop_reason: str = "", error: RemoteError | None = None, has_usage: bool = False
    ) -> TurnFacts:
        """What the traits judge the end of the turn by."""
        return TurnFacts(
            stop_reason=stop_reason,
            error=error,
            has_usage=has_usage,
            cancel_sent=self.cancel_sent,
            updates=self.updates,
            remark=self.remark,
            is_first=self.run.continuity in _REOPENED,
            prompt=self.run.preview,
        )
