"""Writes the history of one session: events and the rows they change, as one unit each."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from acphost.ids import Clock
from acphost.journal.event import Draft, RunRef, classify
from acphost.journal.rows import RunRow, SessionRow
from acphost.journal.statements import Statement, save_run, save_session
from acphost.journal.writer import SessionLog, Ticket, Writer
from acphost.wire.event import HOST, Origin

Payload = Mapping[str, object]


def encode(value: object) -> bytes:
    """A payload of ours as the journal keeps it."""
    return msgspec.json.encode(value)


def run_ref(run: RunRow) -> RunRef:
    """A run as events name it."""
    return RunRef(run.key, run.run_id)


def note(
    kind: str,
    payload: Payload | None = None,
    *,
    run: RunRow | None = None,
    host: Payload | None = None,
    origin: Origin | None = None,
    flags: int = 0,
) -> Draft:
    """An event that the host itself says."""
    data = encode(payload or {})
    return Draft(
        kind,
        data,
        None if run is None else run_ref(run),
        HOST,
        encode(host) if host else None,
        encode(origin) if origin else None,
        flags | classify(data),
    )


class Scribe:
    """The one way into a session's history."""

    def __init__(self, writer: Writer, log: SessionLog, row: SessionRow, now: Clock) -> None:
        self._writer = writer
        self._now = now
        self.log = log
        self.row = row
        self.is_closed = False
        #: Called before each write, so that the row that is saved tells what is so now.
        self.refresh: Callable[[], None] = lambda: None

    @property
    def next_seq(self) -> int:
        """The seq that the next event will get; holds until something is written."""
        return self.log.seq + 1

    def write(
        self,
        drafts: Sequence[Draft],
        *,
        runs: Iterable[RunRow] = (),
        statements: Iterable[Statement] = (),
    ) -> Ticket:
        """Append events with the session's row, these runs' rows and further statements."""
        if self.is_closed:
            return Ticket(0)  # the session was deleted: there is nothing to add to
        at = self._now()
        self.refresh()
        self.row.updated_at = at
        changed = [save_session(self.row)]
        for run in runs:
            run.updated_at = at
            changed.append(save_run(run))
        changed.extend(statements)
        return self._writer.append(self.log, drafts, changed, at=at)

    async def durable(self, ticket: Ticket) -> None:
        """Wait until a unit is on disk, however long the disk takes."""
        await self._writer.settled(ticket)
