"""The history of one session held against the invariants, event by event."""

import re
from dataclasses import dataclass, field

import msgspec

from acphost.archive.report import RESTORE, Report
from acphost.journal.audit_selects import AuditedDecision, AuditedEvent, AuditedRun, AuditedSession
from acphost.journal.strict import LOSSY, classify, repaired
from acphost.journal.tool_calls import tool_call_id
from acphost.wire.event import TERMINAL_KINDS, Kind
from acphost.wire.host import TERMINAL_STATUSES, RunStatus

_SYNTAX = msgspec.json.Decoder(msgspec.Raw)
_HOST = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FALSE = msgspec.Raw(b"false")
_ENDINGS = {
    Kind.RUN_COMPLETED: RunStatus.COMPLETED,
    Kind.RUN_FAILED: RunStatus.FAILED,
    Kind.RUN_CANCELLED: RunStatus.CANCELLED,
    Kind.RUN_INTERRUPTED: RunStatus.INTERRUPTED,
}
_TERMINAL = frozenset(str(kind) for kind in TERMINAL_KINDS)
_TOOLS = frozenset(
    str(kind)
    for kind in (Kind.TOOL_STARTED, Kind.TOOL_UPDATED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED)
)
_CLOSING = frozenset({str(Kind.TOOL_COMPLETED), str(Kind.TOOL_FAILED)})
#: Events about a decision begin with its id, whatever of an agent follows.
_PERMISSION_ID = re.compile(rb'\{"(?:permissionId|elicitationId)":"([^"\\]+)"').match


@dataclass(slots=True)
class _RunFold:
    """What the events of one run have said so far."""

    created: list[int] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    ends: list[tuple[int, str]] = field(default_factory=list)
    first: int | None = None
    last: int | None = None
    open_tools: dict[str, None] = field(default_factory=dict)
    closed_tools: set[str] = field(default_factory=set)


class SessionHistory:
    """Takes a session's events in their order, then compares with its rows."""

    def __init__(self, session: AuditedSession, report: Report) -> None:
        self._session = session
        self._report = report
        self._runs: dict[int, _RunFold] = {}
        self._decisions: dict[str, set[str]] = {}
        self._expected = 1
        self._offset = 0

    # -- events -----------------------------------------------------------------------------------

    def take(self, event: AuditedEvent) -> None:
        """Follow one event."""
        session_id = self._session.session_id
        seq = event.seq
        if seq != self._expected:
            what = _gap(seq, self._expected)
            self._report.find("sequence", f"session {session_id}", what, RESTORE)
        if event.offset <= self._offset:
            self._report.find(
                "sequence", f"session {session_id} seq {seq}",
                f"offset {event.offset} is not behind {self._offset}, that of the event before it",
                RESTORE,
            )  # fmt: skip
        self._expected, self._offset = (seq or 0) + 1, event.offset
        check_content(event, f"session {session_id} seq {seq}", self._report)
        if event.run_key is not None:
            self._follow_run(event, seq or 0)
        if event.kind.startswith(("permission.", "elicitation.")):
            found = _PERMISSION_ID(event.payload)
            if found:
                kinds = self._decisions.setdefault(found.group(1).decode(), set())
                kinds.add(event.kind.partition(".")[2])

    def skip(self, seq: int) -> None:
        """Events up to `seq` cannot be read; that was told."""
        self._expected = seq + 1

    def _follow_run(self, event: AuditedEvent, seq: int) -> None:
        assert event.run_key is not None, "asked for events of runs only"
        fold = self._runs.get(event.run_key)
        if fold is None:
            fold = self._runs[event.run_key] = _RunFold(first=seq)
        fold.last = seq
        kind = event.kind
        if kind == Kind.RUN_CREATED:
            fold.created.append(seq)
        elif kind == Kind.RUN_STARTED:
            fold.started.append(seq)
        if fold.ends and not _is_late(event):
            self._report.find(
                "runs", f"session {self._session.session_id} seq {seq}",
                f"{kind} belongs to a run that had ended at seq {fold.ends[0][0]}"
                " and is not marked late",
            )  # fmt: skip
        elif kind in _TOOLS and not fold.ends:
            self._follow_tool(fold, event)
        if kind in _TERMINAL:
            fold.ends.append((seq, kind))

    def _follow_tool(self, fold: _RunFold, event: AuditedEvent) -> None:
        call = tool_call_id(event.payload)
        if event.kind in _CLOSING:
            fold.open_tools.pop(call, None)
            fold.closed_tools.add(call)
        elif event.kind == Kind.TOOL_STARTED or call not in fold.closed_tools:
            fold.open_tools[call] = None

    # -- rows -------------------------------------------------------------------------------------

    def compare_runs(self, runs: list[AuditedRun]) -> None:
        """Hold the rows of the session's runs against what their events say."""
        for run in runs:
            fold = self._runs.get(run.key, _RunFold())
            where = f"run {run.run_id} ({run.status})"
            self._compare_life(run, fold, where)
            self._compare_positions(run, fold, where)
            if not run.has_prompt:
                self._report.find("prompts", where, "its prompt is missing", RESTORE)
            if fold.ends and fold.open_tools:
                calls = ", ".join(repr(call) for call in fold.open_tools)
                self._report.find("tools", where, f"is over and has open tool calls: {calls}")
        self._compare_queue(runs)

    def _compare_life(self, run: AuditedRun, fold: _RunFold, where: str) -> None:
        find = self._report.find
        if run.status not in set(RunStatus):
            find("runs", where, f"has no status that a run can have: {run.status!r}", RESTORE)
        if len(fold.created) != 1:
            find("runs", where, f"has {len(fold.created)} events run.created instead of one")
        if len(fold.started) > 1:
            find("runs", where, f"was started {len(fold.started)} times, at seq {fold.started}")
        if run.status == RunStatus.RUNNING and not fold.started:
            find("runs", where, "runs without an event run.started")
        if run.status in TERMINAL_STATUSES:
            self._compare_end(run, fold, where)
        elif fold.ends:
            ends = [seq for seq, _ in fold.ends]
            find("runs", where, f"is open, yet has terminal events at seq {ends}")

    def _compare_end(self, run: AuditedRun, fold: _RunFold, where: str) -> None:
        find, ends = self._report.find, [seq for seq, _ in fold.ends]
        if len(ends) > 1:
            find("runs", where, f"has {len(ends)} terminal events, at seq {ends}")
        elif not ends:
            find("runs", where, "is over and has no terminal event",
                 "start the daemon: it writes the missing one, marked synthetic")  # fmt: skip
        else:
            if ends[0] != run.terminal_seq:
                find("runs", where, f"ends at seq {ends[0]}, its row says {run.terminal_seq}")
            said = _ENDINGS[Kind(fold.ends[0][1])]
            if said != run.status:
                find("runs", where, f"ended as {said} by its event at seq {ends[0]}")

    def _compare_positions(self, run: AuditedRun, fold: _RunFold, where: str) -> None:
        find = self._report.find
        if fold.first is None or fold.last is None:
            return
        if run.first_seq != fold.first:
            find("runs", where, f"begins at seq {fold.first}, its row says {run.first_seq}")
        if run.last_seq is not None and run.last_seq > fold.last:
            find("runs", where, f"its last event is seq {fold.last}, its row says {run.last_seq}")
        if run.terminal_seq is not None and (run.last_seq or 0) < run.terminal_seq:
            find("runs", where, f"row: last seq {run.last_seq}, terminal seq {run.terminal_seq}")

    def _compare_queue(self, runs: list[AuditedRun]) -> None:
        session, find = self._session, self._report.find
        where = f"session {session.session_id}"
        running = [run.run_id for run in runs if run.status == RunStatus.RUNNING]
        if len(running) > 1:
            find("queue", where, f"runs {len(running)} prompts at a time: {', '.join(running)}")
        active = [session.active_run_id] if session.active_run_id else []
        if len(running) <= 1 and active != running:
            find("queue", where,
                 f"names {session.active_run_id} as its active run, running is {running or None}",
                 "start the daemon: it sets the session right")  # fmt: skip
        orders: dict[int, str] = {}
        for run in runs:
            if run.status != RunStatus.PENDING:
                continue
            self._report.count("waiting runs")
            if run.queue_order < 1:
                find("queue", f"run {run.run_id}", f"its place {run.queue_order} is none")
            if run.queue_order in orders:
                both = f"{orders[run.queue_order]} and {run.run_id}"
                find("queue", where, f"{both} both have place {run.queue_order}",
                     "cancel one of the two and send it again")  # fmt: skip
            orders[run.queue_order] = run.run_id

    def compare_decisions(self, decisions: list[AuditedDecision], runs: list[AuditedRun]) -> None:
        """Hold the session's decisions against its events and its runs."""
        statuses = {run.key: run.status for run in runs}
        known = set()
        for each in decisions:
            known.add(each.permission_id)
            told = self._decisions.get(each.permission_id, set())
            where = f"decision {each.permission_id} ({each.status})"
            if "requested" not in told:
                self._report.find("decisions", where, "no event tells that it was asked")
            if each.status == "pending":
                self._check_pending(each, told, statuses, where)
            elif each.status not in ("resolved", "expired"):
                self._report.find("decisions", where, "has no status that a decision can have")
            elif each.status not in told:
                self._report.find("decisions", where, f"no event tells that it was {each.status}")
        for permission_id in self._decisions.keys() - known:
            self._report.find("decisions", f"decision {permission_id}", "events tell of it, it has"
                              " no row", RESTORE)  # fmt: skip

    def _check_pending(
        self, decision: AuditedDecision, told: set[str], statuses: dict[int, str], where: str
    ) -> None:
        find, cure = self._report.find, "start the daemon: it withdraws what nobody waits for"
        if told & {"resolved", "expired"}:
            find("decisions", where, "is open, yet events tell that it was closed", cure)
        status = None if decision.run_key is None else statuses.get(decision.run_key)
        if status is not None and status in TERMINAL_STATUSES:
            find("decisions", where, f"is open, its run {decision.run_id} is {status}", cure)
        elif self._report.daemon_pid is None:
            self._report.note("decisions", where, "is open and no daemon runs", cure)


def check_content(event: AuditedEvent, where: str, report: Report) -> None:
    """Whether a payload can be given to clients as its flag says, and what stands beside it."""
    payload = event.payload
    if event.flags & LOSSY:
        payload = repaired(payload)
    elif classify(payload):
        report.find("payloads", where, f"{event.kind}: not strict JSON, and not marked lossy")
        return
    for name, value in (("payload", payload), ("host", event.host), ("origin", event.origin)):
        if value is None:
            continue
        try:
            (_SYNTAX if name == "payload" else _HOST).decode(value)
        except msgspec.DecodeError as exc:
            report.find("payloads", where, f"{event.kind}: its {name} is no JSON ({exc})")


def _is_late(event: AuditedEvent) -> bool:
    if event.host is None:
        return False
    try:
        return bytes(_HOST.decode(event.host).get("late", _FALSE)) == b"true"
    except msgspec.DecodeError:
        return False


def _gap(seq: int | None, expected: int) -> str:
    if seq is None:
        return f"an event has no seq where {expected} was due"
    if seq > expected:
        missing = str(expected) if seq == expected + 1 else f"{expected} to {seq - 1}"
        return f"seq {missing} missing: {seq} follows {expected - 1}"
    return f"seq {seq} stands where {expected} was due"
