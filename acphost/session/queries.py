"""What clients may read: committed rows as records, with the few live facts that time changes."""

import base64
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.errors import (
    CursorForeignError,
    CursorFutureError,
    InvalidParamsError,
    RunNotFoundError,
    SessionNotFoundError,
)
from acphost.journal.event import EventRow, encode_event
from acphost.journal.rows import RunRow, SessionRow
from acphost.journal.selects import SessionFilter
from acphost.journal.store import Store
from acphost.session import views
from acphost.session.house import House
from acphost.session.receipts import receipt_of
from acphost.session.resume import files_touched
from acphost.session.usage import UsageLedger
from acphost.wire.base import position_text
from acphost.wire.host import (
    TERMINAL_STATUSES,
    ActiveRun,
    EventsPage,
    Page,
    QueuedRun,
    Recovery,
    Run,
    RunStatus,
    Session,
)
from acphost.wire.logins import Login
from acphost.wire.params import (
    PermissionListParams,
    RunEventsParams,
    RunListParams,
    SessionListParams,
    UsageGetParams,
)
from acphost.wire.usage import UsageProjection

#: Of one `run/events` answer.
MAX_EVENTS = 2000
MAX_EVENT_BYTES = 4 << 20
MAX_ITEMS = 500
#: Interrupted runs whose touched files are kept in memory.
MAX_REMEMBERED = 256


class Queries:
    """Reads of sessions, runs, queues, decisions and events."""

    def __init__(self, store: Store, house: House) -> None:
        self._store = store
        self._reader = store.reader
        self._house = house
        self._touched: dict[int, list[str]] = {}

    # -- sessions ---------------------------------------------------------------------------------

    async def session_row(self, session_id: str) -> SessionRow:
        """The stored session. Raises SessionNotFoundError."""
        row = await self._reader.session(session_id)
        if row is None:
            raise SessionNotFoundError(f"no session {session_id!r}")
        return row

    async def session(self, session_id: str) -> Session:
        """A session, with what can be done about a run of unknown outcome."""
        row = await self.session_row(session_id)
        unresolved = await self._reader.unresolved_runs(row.key)
        recovery = await self._recovery(unresolved[-1], row) if unresolved else None
        return views.session_view(
            row, status=self._status(row), recovery=recovery, login=self._login(row),
            is_whole=True,
        )  # fmt: skip

    async def sessions(self, params: SessionListParams) -> Page:
        """Sessions, those with an active run first, then the latest."""
        rows, cursor = await self._session_page(params)
        seen = [
            views.session_view(row, status=self._status(row), login=self._login(row))
            for row in rows
        ]
        return _page(seen, cursor)

    async def session_rows(self, params: SessionListParams) -> list[SessionRow]:
        """The rows of `sessions`."""
        rows, _ = await self._session_page(params)
        return rows

    async def _session_page(self, params: SessionListParams) -> tuple[list[SessionRow], str | None]:
        return await self._reader.sessions(
            SessionFilter(
                workspace_id=params.workspace_id,
                document_id=params.document_id,
                runtime=params.runtime,
                agent_id=params.agent_id,
                profile=params.profile,
                model=params.model,
                status=params.status,
                pinned=params.pinned,
            ),
            params.cursor,
            _limit(params.limit),
        )

    def _login(self, row: SessionRow) -> Login | None:
        live = self._house.live(row.session_id)
        return None if live is None else live.state.login

    def _status(self, row: SessionRow) -> str:
        live = self._house.live(row.session_id)
        return views.quiet_or(row.status, is_quiet=live is not None and live.is_quiet())

    async def active_run(self, session_id: str) -> ActiveRun:
        """The run that is not over, or whose outcome nobody has looked at yet."""
        row = await self.session_row(session_id)
        run: RunRow | None = None
        if row.active_run_id is not None:
            run = await self._reader.run(row.active_run_id)
        queued = await self._queued(row)
        if run is None or run.status in TERMINAL_STATUSES:
            run = await self._next_run(row, queued)
        return ActiveRun(
            run=None if run is None else await self._run_view(run, row),
            queued=[each for each in queued if run is None or each.run_id != run.run_id],
            last_seq=position_text(row.last_seq),
        )

    async def _next_run(self, session: SessionRow, queued: list[QueuedRun]) -> RunRow | None:
        """While none runs: the one that is being made ready, else one of unknown outcome."""
        if queued and session.held_reason is None:
            return await self._reader.run(queued[0].run_id)
        unresolved = await self._reader.unresolved_runs(session.key)
        return unresolved[-1] if unresolved else None

    # -- runs -------------------------------------------------------------------------------------

    async def run(self, run_id: str, *, with_envelope: bool = False) -> Run:
        """A run. Raises RunNotFoundError."""
        row = await self.run_row(run_id)
        session = await self.session_row(row.session_id)
        envelope = views.envelope(row, session, self._folders(session)) if with_envelope else UNSET
        return await self._run_view(row, session, envelope)

    def _folders(self, session: SessionRow) -> list[str]:
        """What agents may use in a session, granted or its own."""
        more = msgspec.json.decode(session.additional_directories, type=list[str])
        granted = self._house.grants.folders(session.actor_id)
        return list(dict.fromkeys([session.cwd, *more, *granted.write, *granted.read]))

    async def run_row(self, run_id: str) -> RunRow:
        """The stored run. Raises RunNotFoundError."""
        row = await self._reader.run(run_id)
        if row is None:
            raise RunNotFoundError(f"no run {run_id!r}")
        return row

    async def _run_view(
        self, row: RunRow, session: SessionRow, envelope: Raw | UnsetType = UNSET
    ) -> Run:
        recovery: Recovery | None = None
        if row.status == RunStatus.INTERRUPTED and row.dismissed_at is None:
            unresolved = await self._reader.unresolved_runs(row.session_key)
            if any(run.key == row.key for run in unresolved):
                recovery = await self._recovery(row, session)
        receipt = await receipt_of(self._reader, row)
        return views.run_view(row, recovery=recovery, envelope=envelope, receipt=receipt)

    async def _recovery(self, run: RunRow, session: SessionRow) -> Recovery:
        files = self._touched.get(run.key)
        if files is None:
            # Its history does not grow any more: what it says is asked again with every look.
            receipt = await receipt_of(self._reader, run)
            seen = [] if receipt is None else [each.path for each in receipt.changed_files]
            named = await files_touched(self._reader, run)
            files = self._touched[run.key] = list(dict.fromkeys([*seen, *named]))
            while len(self._touched) > MAX_REMEMBERED:
                del self._touched[next(iter(self._touched))]
        return views.recovery_view(
            run, session, files_touched=files,
            is_configured=self._house.is_configured(session.agent_id),
        )  # fmt: skip

    async def runs(self, params: RunListParams) -> Page:
        """Runs, newest first."""
        session_key = None
        if params.session_id is not None:
            session_key = (await self.session_row(params.session_id)).key
        rows, cursor = await self._reader.runs(
            session_key=session_key,
            status=params.status,
            cursor=params.cursor,
            limit=_limit(params.limit),
        )
        return _page([views.run_view(row) for row in rows], cursor)

    async def run_events(self, params: RunEventsParams, after: int) -> EventsPage:
        """Events of a run after a seq. Raises CursorForeignError, CursorFutureError."""
        run = await self.run_row(params.host_run_id)
        self.check_store(params.store_id)
        head = (await self.session_row(run.session_id)).last_seq
        check_position(after, head)
        limit = min(max(params.limit, 1), MAX_EVENTS)
        rows = await self._reader.events_after_seq(
            run.session_key,
            max(after, (run.first_seq or 1) - 1),
            limit=limit + 1,
            max_bytes=MAX_EVENT_BYTES,
            upto_seq=run.last_seq,
            run_key=run.key,
        )
        shown = rows[:limit]
        last = shown[-1].seq if shown else None
        has_more = len(rows) > limit or (last is not None and last < (run.last_seq or 0))
        return EventsPage(
            events=[_raw_event(row, with_bytes=params.raw) for row in shown],
            head_seq=position_text(run.last_seq or 0),
            has_more=has_more,
        )

    async def seq_at(self, session_key: int, offset: int, head_seq: int) -> int:
        """The last seq of a session that stands at or before an offset."""
        following = await self._reader.events_after_offset(
            offset, limit=1, max_bytes=1, session_keys=[session_key]
        )
        return (following[0].seq or 1) - 1 if following else head_seq

    def check_store(self, store_id: str | None) -> None:
        """A cursor means nothing in another store."""
        if store_id is not None and store_id != self._store.store_id:
            raise CursorForeignError(
                f"the cursor belongs to store {store_id!r}; this is {self._store.store_id!r}",
                storeId=self._store.store_id,
            )

    async def usage(self, params: UsageGetParams) -> UsageProjection:
        """What a run, or else the last one of a session, and its session have used.

        Raises RunNotFoundError, SessionNotFoundError, InvalidParamsError.
        """
        if (params.session_id is None) == (params.host_run_id is None):
            raise InvalidParamsError("expected either `sessionId` or `hostRunId` - at `$`")
        run = None if params.host_run_id is None else await self.run_row(params.host_run_id)
        row = await self.session_row(run.session_id if run is not None else params.session_id or "")
        live = self._house.live(row.session_id)
        ledger = live.state.usage if live is not None else UsageLedger(row.usage)
        return views.usage_view(row, run, ledger)

    # -- queue ------------------------------------------------------------------------------------

    async def queue(self, session_id: str) -> Page:
        """The runs that wait, in order."""
        return _page(await self._queued(await self.session_row(session_id)), None)

    async def _queued(self, session: SessionRow) -> list[QueuedRun]:
        rows = await self._reader.queued(session.key)
        return [
            views.queued_view(
                row,
                session,
                await self._reader.prompt(row.key) or b"[]",
                row.queue_position or 0,
            )
            for row in rows
        ]

    # -- decisions --------------------------------------------------------------------------------

    async def decisions(self, params: PermissionListParams) -> Page:
        """Questions of agents; the open ones unless another status is asked for."""
        session_key = None
        if params.session_id is not None:
            session_key = (await self.session_row(params.session_id)).key
        rows, cursor = await self._reader.decisions(
            session_key=session_key,
            status=None if params.status == "all" else params.status,
            cursor=params.cursor,
            limit=_limit(params.limit),
        )
        return _page([views.decision_view(row) for row in rows], cursor)


def check_position(after: int, head: int) -> None:
    """Raises CursorFutureError for a position that has not been reached."""
    if after > head:
        raise CursorFutureError(
            f"position {position_text(after)} is past the head {position_text(head)}",
            head=position_text(head),
        )


def _limit(asked: int) -> int:
    return min(max(asked, 1), MAX_ITEMS)


def _page(records: Sequence[msgspec.Struct], cursor: str | None) -> Page:
    return Page(items=[Raw(msgspec.json.encode(each)) for each in records], next_cursor=cursor)


def _raw_event(row: EventRow, *, with_bytes: bool) -> Raw:
    encoded = encode_event(row)
    if with_bytes:
        exact = base64.b64encode(row.payload)
        encoded = b'%b,"payloadBase64":"%b"}' % (encoded[:-1], exact)
    return Raw(encoded)
