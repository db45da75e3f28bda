"""What people do to the queue of a session: send, cancel, hold, release, dismiss."""

from collections.abc import Callable

from msgspec import UNSET, Raw, UnsetType

from acphost.errors import ConflictError
from acphost.ids import Clock
from acphost.journal.event import Draft
from acphost.journal.rows import RunRow
from acphost.journal.statements import save_prompt
from acphost.journal.writer import Ticket
from acphost.session import closing
from acphost.session.content import trace_context
from acphost.session.ending import Ending
from acphost.session.queue import Waiting
from acphost.session.scribe import Scribe, note
from acphost.session.state import USER_HOLD, SessionState
from acphost.settings.model import QueueSettings
from acphost.wire.event import Kind, Origin
from acphost.wire.host import RunStatus


class QueueDesk:
    """The queue as people handle it; every change is an event."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        *,
        settings: Callable[[], QueueSettings],
        now: Clock,
        on_retry: Callable[[], None] = lambda: None,
    ) -> None:
        self._state = state
        self._row = state.row
        self._scribe = scribe
        self._settings = settings
        self._now = now
        self._on_retry = on_retry

    def accept(
        self, run: RunRow, content: bytes, origin: Origin, meta: Raw | UnsetType = UNSET
    ) -> Ticket:
        """Take a run into the queue; `meta` is the request's `_meta`. Raises QueueFullError.

        A hold that only waited for the user to speak again ends with this send; the order stays.
        The second try of an interrupted run takes the place that the first had: what was sent
        after it goes on waiting for it.
        """
        state = self._state
        state.queue.limit = self._settings().limit
        last = state.queue.next_order()
        run.queue_order = run.queue_order or last
        run.queue_rev = 1
        run.first_seq = run.last_seq = self._scribe.next_seq
        before = sum(1 for each in state.queue if each.run.queue_order <= run.queue_order)
        position = before + (1 if state.turn else 0)
        told: dict[str, object] = {"prompt": Raw(content), "requestId": run.request_id,
                "contextRefs": Raw(run.context_refs)}  # fmt: skip
        if isinstance(meta, Raw):
            told["_meta"] = meta
        if run.parent_run_id is not None:
            told["parentRunId"], told["resumeRequestId"] = run.parent_run_id, run.resume_request_id
            state.unresolved.discard(run.parent_run_id)
        drafts = [
            note(Kind.RUN_CREATED, told, run=run, origin=origin),
            note(Kind.RUN_QUEUED, {"position": position}, run=run, origin=origin),
        ]  # fmt: skip
        run.last_seq += 1
        state.queue.join(Waiting(run, content, trace_context(meta)))
        self._row.queue_rev += 1
        if self._row.held_reason is not None and not state.is_held_by_user:
            drafts.append(self._released("a new message was sent", origin))
        self._retry_login()
        self._state.wake()
        return self._scribe.write(drafts, runs=[run], statements=[save_prompt(run.key, content)])

    def cancel(self, run: RunRow, origin: Origin) -> Ticket:
        """End a run that has just been taken out of the queue."""
        self._row.queue_rev += 1
        run.cancel_requested_at = self._now()
        asked = note(Kind.RUN_CANCEL_REQUESTED, {"by": origin}, run=run, origin=origin)
        ending = Ending(status=RunStatus.CANCELLED, stop_reason="cancelled")
        drafts = closing.conclude(
            run, ending, [asked], next_seq=self._scribe.next_seq, now=self._now()
        )
        drafts.append(self._queue_changed("cancelled", origin))
        self._row.last_run_status = run.status
        ticket = self._scribe.write(drafts, runs=[run])
        self._state.announce_end(run)
        return ticket

    def edit(
        self, waiting: Waiting, content: bytes, preview: str, *, expected_rev: int, origin: Origin
    ) -> Ticket:
        """Let a waiting run send something else. Raises ConflictError.

        Its key goes on meaning what it was made for: a repeated `run/create` still finds it.
        """
        if content == waiting.content:
            return self._scribe.write([])
        self._changed(waiting.run, expected_rev)
        waiting.content, waiting.run.preview = content, preview
        draft = self._queue_changed("edited", origin, runId=waiting.run.run_id, prompt=Raw(content))
        kept = save_prompt(waiting.run.key, content)
        return self._scribe.write([draft], runs=[waiting.run], statements=[kept])

    def move(self, waiting: Waiting, position: int, *, expected_rev: int, origin: Origin) -> Ticket:
        """Put a waiting run at a position; the running turn has the first. Raises ConflictError."""
        queue, run = self._state.queue, waiting.run
        place = min(max(position - (1 if self._state.turn else 0), 0), len(queue) - 1)
        if place == queue.place_of(run.run_id):
            return self._scribe.write([])
        self._changed(run, expected_rev)
        moved = queue.move(run.run_id, place)
        self._state.wake()
        draft = self._queue_changed("moved", origin, runId=run.run_id)
        return self._scribe.write([draft], runs=moved)

    def _changed(self, run: RunRow, expected_rev: int) -> None:
        if run.queue_rev != expected_rev:
            raise ConflictError(
                f"run {run.run_id} was changed meanwhile; look at it again", rev=run.queue_rev
            )
        run.queue_rev += 1
        self._row.queue_rev += 1

    def hold(self, reason: str | None, origin: Origin) -> Ticket:
        """Let nothing further start until `release`; what runs goes on."""
        told = f"{USER_HOLD}: {reason}" if reason else USER_HOLD
        self._row.held_reason = told
        return self._scribe.write([note(Kind.QUEUE_HELD, {"reason": told}, origin=origin)])

    def release(self, origin: Origin) -> Ticket:
        """Let the queue go on."""
        if self._row.held_reason is None:
            self._retry_login()
            self._state.wake()
            return self._scribe.write([])
        ticket = self._scribe.write([self._released("released", origin)])
        self._state.wake()
        return ticket

    def _retry_login(self) -> None:
        """Somebody may have logged in elsewhere: a new process will see it."""
        if self._state.login is not None:
            self._state.login = None
            self._on_retry()

    def dismiss(self, run: RunRow, origin: Origin) -> Ticket:
        """A person has seen that the run's outcome is unknown. Raises ConflictError otherwise."""
        if run.status != RunStatus.INTERRUPTED:
            raise ConflictError(
                f"run {run.run_id} is {run.status}; only an interrupted run can be dismissed"
            )
        if run.dismissed_at is not None:
            return self._scribe.write([])
        run.dismissed_at = self._now()
        self._state.unresolved.discard(run.run_id)
        drafts = [note(Kind.RUN_DISMISSED, {}, run=run, origin=origin,
                       host={"late": True})]  # fmt: skip
        nothing_waits = not self._state.queue and not self._state.unresolved
        if self._row.held_reason and not self._state.is_held_by_user and nothing_waits:
            drafts.append(self._released("nothing is left to decide", origin))
        return self._scribe.write(drafts, runs=[run])

    def _released(self, reason: str, origin: Origin | None) -> Draft:
        was, self._row.held_reason = self._row.held_reason, None
        return note(Kind.QUEUE_RELEASED, {"reason": reason, "was": was}, origin=origin)

    def _queue_changed(self, reason: str, origin: Origin | None = None, **more: object) -> Draft:
        items = [waiting.run.run_id for waiting in self._state.queue]
        payload = {"items": items, "rev": self._row.queue_rev, "reason": reason, **more}
        return note(Kind.QUEUE_CHANGED, payload, origin=origin)
