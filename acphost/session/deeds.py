"""What the host writes down of what it does for an agent."""

from collections.abc import Mapping

from acphost.ids import Clock
from acphost.journal.rows import RunRow
from acphost.journal.writer import Ticket
from acphost.session.scribe import Scribe, note
from acphost.session.state import SessionState


class Deeds:
    """Journals files read and written and commands run, in the run that they belong to."""

    def __init__(self, state: SessionState, scribe: Scribe, now: Clock) -> None:
        self._state = state
        self._scribe = scribe
        self._now = now

    @property
    def run_id(self) -> str | None:
        """The run that what is done now belongs to."""
        run, _ = self._run()
        return None if run is None else run.run_id

    def note(self, kind: str, payload: Mapping[str, object], **host: object) -> Ticket:
        """Write an event of the run that is on, or of the one that has just ended."""
        run, late = self._run()
        if late:
            host["late"] = True
        return self._scribe.write([note(kind, payload, run=run, host=host or None)])

    def _run(self) -> tuple[RunRow | None, bool]:
        turn = self._state.turn
        if turn is not None:
            self._state.hear(self._now())
            turn.alive.set()
            return turn.run, False
        late = self._state.late_run()
        return late, late is not None
