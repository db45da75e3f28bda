"""What a session is doing, as facts, and the one word that follows from them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from acphost.ids import Clock, ticks_ms
from acphost.journal.rows import RunRow, SessionRow
from acphost.provider.switchboard import Asked
from acphost.session.calls import Call, CallBook
from acphost.session.decisions import Change, DecisionDesk
from acphost.session.elicitations import ElicitationDesk
from acphost.session.queue import RunQueue
from acphost.session.turn import Turn
from acphost.session.usage import UsageLedger
from acphost.wire.base import timestamp
from acphost.wire.event import Origin
from acphost.wire.host import SessionStatus
from acphost.wire.logins import Login

#: Updates that come later than this after a turn belong to the session, not to that turn.
LATE_WINDOW = 30_000

#: Questions that may be open at a time: no person has more than that before them.
MAX_QUESTIONS = 100

#: A hold that a person asked for stays until a person ends it; the others end with the next send.
USER_HOLD = "user"


@dataclass(slots=True)
class SessionState:
    """The live side of a session; `row` is what the store knows of it."""

    row: SessionRow
    queue: RunQueue
    desk: DecisionDesk
    forms: ElicitationDesk
    turn: Turn | None = None
    #: The binding for the head of the queue is being made ready.
    starting: bool = False
    #: Why the agent could not be had, until the next attempt.
    trouble: tuple[SessionStatus, str] | None = None
    #: The agent wants a login before anything can go on.
    login: Login | None = None
    #: What a person should know although all goes on, by what it is about.
    remarks: dict[str, str] = field(default_factory=dict)
    #: The daemon drains: nothing new starts.
    closing: bool = False
    #: A person gave the title.
    is_titled: bool = False
    last_run: RunRow | None = None
    #: The tool calls of that run; a late word may still end one.
    last_calls: CallBook | None = None
    #: For how long something takes: nobody can set it, and it rests while the machine does.
    ticks: Clock = ticks_ms
    #: By `ticks`, as `heard`.
    last_end: int = 0
    last_sign: int | None = None
    heard: int = 0
    usage: UsageLedger = field(default_factory=lambda: UsageLedger(b"{}"))
    #: Interrupted runs that nobody has resumed or dismissed.
    unresolved: set[str] = field(default_factory=set)
    #: Set when the worker has a reason to look at the queue again.
    work: anyio.Event = field(default_factory=anyio.Event)
    _over: dict[str, anyio.Event] = field(default_factory=dict)

    def hear(self, at: int) -> None:
        """The agent has given a sign of life, at that time of day."""
        turn = self.turn
        self.last_sign, self.heard = at, self.ticks()
        if turn is not None:
            turn.last_sign, turn.heard = at, self.heard
            if turn.is_quiet:
                turn.sound.set()

    def wake(self) -> None:
        """Have the worker look at the queue again."""
        self.work.set()

    async def until_over(self, run_id: str) -> None:
        """Return when the run neither waits nor runs."""
        if self.queue.find(run_id) or (self.turn is not None and self.turn.run.run_id == run_id):
            await self._over.setdefault(run_id, anyio.Event()).wait()

    def announce_end(self, run: RunRow) -> None:
        """Tell those who wait for it that a run is over."""
        over = self._over.pop(run.run_id, None)
        if over is not None:
            over.set()

    def refresh(self) -> None:
        """Bring the stored status up to the facts, strongest word first (contract section 1)."""
        row = self.row
        row.active_run_id = self.turn.run.run_id if self.turn else None
        row.status, row.status_reason = self._word()
        if self.usage.is_news:
            row.usage = self.usage.encode()

    def _word(self) -> tuple[SessionStatus, str | None]:
        if self.trouble is not None:
            return self.trouble
        if self.awaits_people:
            return SessionStatus.WAITING, "a decision is open"
        if self.turn is not None:
            if self.turn.run.cancel_requested_at is not None:
                return SessionStatus.STOPPING, None
            if self.turn.is_quiet:
                return SessionStatus.QUIET, (
                    f"no sign of life since {timestamp(self.turn.last_sign)}; "
                    "the agent may be retrying in silence"
                )
            return SessionStatus.RUNNING, self.remark
        if self.starting:
            return SessionStatus.STARTING, None
        if self.row.held_reason is not None:
            return SessionStatus.HELD, self.row.held_reason
        if self.unresolved:
            # Never called idle while nobody knows what became of a run (contract section 1).
            return SessionStatus.HELD, "a run was interrupted; resume or dismiss it"
        return SessionStatus.IDLE, self.remark

    @property
    def remark(self) -> str | None:
        """What a person should know although all goes on."""
        return "; ".join(self.remarks.values()) or None

    @property
    def awaits_people(self) -> bool:
        """Whether a decision is open."""
        return bool(len(self.desk) or len(self.forms))

    @property
    def has_too_many_questions(self) -> bool:
        """Whether another one would be of no use to anybody."""
        return len(self.desk) + len(self.forms) >= MAX_QUESTIONS

    def cancel_decisions(self, origin: Origin | None) -> tuple[list[Asked], Change]:
        """The turn is being stopped: whatever is open is answered so."""
        questions, change = self.desk.cancel_all(origin)
        asked, more = self.forms.cancel_all(origin)
        change.add(more)
        return [question.asked for question in questions] + asked, change

    def withdraw_decisions(self, reason: str) -> tuple[list[Asked], Change]:
        """Nobody waits for answers any more."""
        questions, change = self.desk.withdraw_all(reason)
        asked, more = self.forms.withdraw_all(reason)
        change.add(more)
        return [question.asked for question in questions] + asked, change

    def hold(self, reason: str) -> bool:
        """Let nothing start until released; whether that is news."""
        if self.row.held_reason is not None:
            return False
        self.row.held_reason = reason
        return True

    @property
    def is_held_by_user(self) -> bool:
        """Whether only a person's release ends the hold."""
        reason = self.row.held_reason
        return reason is not None and reason.partition(":")[0] == USER_HOLD

    def may_start(self) -> bool:
        """Whether the head of the queue can be made ready now."""
        return (
            bool(self.queue)
            and self.turn is None
            and not self.starting
            and self.login is None
            and self.row.held_reason is None
            and not self.closing
        )

    def is_quiet(
        self, threshold: float, may_take_long: Callable[[Call], bool] = lambda _: True
    ) -> bool:
        """Running without a sign of life; waiting for a person or a tool does not count (CL-1).

        A tool that was followed by words is over, whether or not the agent has said so.
        """
        if self.turn is None or self.row.status not in (SessionStatus.RUNNING, SessionStatus.QUIET):
            return False
        is_in_tool = self.turn.is_in_tool and any(map(may_take_long, self.turn.calls))
        if self.awaits_people or is_in_tool:
            return False
        return self.ticks() - self.turn.heard > threshold * 1000

    def late_run(self) -> RunRow | None:
        """The ended turn that an update between turns still belongs to."""
        is_late = self.last_run is not None and self.ticks() - self.last_end <= LATE_WINDOW
        return self.last_run if is_late else None
