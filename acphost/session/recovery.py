"""What a start makes of the store that a crash left behind (contract section 2, ARCHITECTURE 4).

Every live claim in it is false now. Each session is put right in one unit, so that a crash in the
middle of this leaves every session either as it was or done; doing it again changes nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from acphost.ids import Clock
from acphost.journal.event import SYNTHETIC, Draft, EventRow, RunRef
from acphost.journal.reader import Reader
from acphost.journal.rows import BindingRow, DecisionRow, RunRow, SessionRow
from acphost.journal.selects import SessionFilter
from acphost.journal.statements import (
    Statement,
    save_binding,
    save_decision,
    save_process,
    save_run,
    save_session,
)
from acphost.journal.store import Store
from acphost.journal.tool_calls import tool_call_id
from acphost.journal.writer import SessionLog
from acphost.log import get_logger
from acphost.provider.traits import Traits
from acphost.session import closing
from acphost.session.calls import CallBook
from acphost.session.decisions import withdrawal
from acphost.session.ending import Ending
from acphost.session.ledger import launch_of
from acphost.session.scribe import note
from acphost.session.state import USER_HOLD
from acphost.session.usage import UsageLedger, read_context
from acphost.settings.model import QueueSettings
from acphost.transport.processes import end_launch
from acphost.wire.acp import lenient
from acphost.wire.base import AcpStruct
from acphost.wire.event import Kind
from acphost.wire.host import ErrorWord, RunStatus, SessionStatus

log = get_logger()

_TOOL_KINDS = frozenset(
    {Kind.TOOL_STARTED, Kind.TOOL_UPDATED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED}
)
#: What only a daemon can be doing for a session.
_WORK = (
    SessionStatus.STARTING,
    SessionStatus.RUNNING,
    SessionStatus.QUIET,
    SessionStatus.STOPPING,
    SessionStatus.WAITING,
)


async def sweep_processes(store: Store, now: Clock) -> int:
    """End every agent process that an earlier daemon left, and what it had started."""
    ended = 0
    for row in await store.reader.processes(unended_only=True):
        survivors = await end_launch(launch_of(row))
        if survivors:
            log.warning("agent_survived", agent=row.agent_id, pids=[p.pid for p in survivors])
            continue
        row.ended_at = now()
        store.writer.record([save_process(row)])
        ended += 1
    return ended


@dataclass(slots=True)
class _Remains:
    """What of one session is not closed."""

    runs: list[RunRow] = field(default_factory=list)
    endless: list[RunRow] = field(default_factory=list)
    decisions: list[DecisionRow] = field(default_factory=list)
    bindings: list[BindingRow] = field(default_factory=list)


async def reconcile(
    store: Store, now: Clock, traits_of: Callable[[str], Traits], queue: QueueSettings
) -> int:
    """Put every session right that was at work when the last daemon ended; returns how many.

    `traits_of` tells what is peculiar to a runtime.
    """
    goes_on = queue.on_interrupted == "continue"
    unfinished = await store.reader.unfinished()
    remains: dict[int, _Remains] = defaultdict(_Remains)
    for run in unfinished.runs:
        remains[run.session_key].runs.append(run)
    for run in unfinished.endless:
        remains[run.session_key].endless.append(run)
    for decision in unfinished.decisions:
        remains[decision.session_key].decisions.append(decision)
    for binding in unfinished.bindings:
        remains[binding.session_key].bindings.append(binding)
    for session_key in await _at_work(store.reader):
        _ = remains[session_key]
    for session_key, left in remains.items():
        session = await store.reader.session_by_key(session_key)
        if session is not None:
            traits = traits_of(session.runtime)
            await _reconcile_session(store, session, left, now(), traits, goes_on=goes_on)
    await store.writer.drain()
    return len(remains)


async def _at_work(reader: Reader) -> list[int]:
    """Sessions that say they are doing something, whether or not anything else of it is left."""
    found: list[int] = []
    for word in _WORK:
        cursor: str | None = None
        while True:
            rows, cursor = await reader.sessions(SessionFilter(status=word), cursor, 500)
            found += [row.key for row in rows]
            if cursor is None:
                break
    return found


async def _reconcile_session(
    store: Store, session: SessionRow, left: _Remains, now: int, traits: Traits, *, goes_on: bool
) -> None:
    numbering = SessionLog(session.key, session.session_id, session.last_seq)
    drafts: list[Draft] = []
    statements: list[Statement] = []
    for decision in left.decisions:
        decision.status, decision.resolved_at = "expired", now
        drafts.append(withdrawal(decision, "the daemon was restarted"))
        statements.append(save_decision(decision))
    interrupted: RunRow | None = None
    for run in left.runs:
        if run.status == RunStatus.RUNNING:
            usage = UsageLedger(session.usage)
            before = await _look_back(store.reader, run, traits, usage)
            ending = _interruption(run)
            run.usage = usage.end(None, is_cumulative=False, model=session.resolved_model)
            session.usage = usage.encode()
            if run.usage is not None:
                ending.extra["usage"] = usage.told()
            drafts += closing.conclude(
                run, ending, before, next_seq=numbering.seq + len(drafts) + 1, now=now
            )
            run.updated_at = now
            statements.append(save_run(run))
            interrupted = run
    for run in left.endless:
        drafts.append(_missing_end(run, numbering.seq + len(drafts) + 1))
        statements.append(save_run(run))
    for binding in left.bindings:
        binding.status, binding.reason, binding.ended_at = "lost", "the daemon was restarted", now
        payload = {"acpSessionId": binding.acp_session_id, "reason": binding.reason}
        drafts.append(note(Kind.BINDING_LOST, payload))
        statements.append(save_binding(binding))
    waiting = any(run.status == RunStatus.PENDING for run in left.runs)
    drafts += await _settle_queue(
        store.reader, session, interrupted, waiting=waiting, goes_on=goes_on
    )
    session.updated_at = now
    statements.append(save_session(session))
    store.writer.append(numbering, drafts, statements, at=now)


def _interruption(run: RunRow) -> Ending:
    asked = run.cancel_requested_at is not None
    return Ending(
        status=RunStatus.INTERRUPTED,
        error_code=ErrorWord.CANCEL_UNCONFIRMED if asked else ErrorWord.HOST_RESTARTED,
        error="the daemon ended before the agent's answer was read; the outcome is unknown",
    )


async def _settle_queue(
    reader: Reader, session: SessionRow, interrupted: RunRow | None, *, waiting: bool, goes_on: bool
) -> list[Draft]:
    """What was waiting goes on waiting, until a person says so or sends again; or it `goes_on`."""
    unresolved = interrupted is not None or bool(await reader.unresolved_runs(session.key))
    held: list[Draft] = []
    reason = _hold_reason(interrupted, goes_on=goes_on and waiting)
    if session.held_reason is None and (unresolved or waiting) and reason is not None:
        session.held_reason = reason
        held.append(note(Kind.QUEUE_HELD, {"reason": session.held_reason}))
    if interrupted is not None:
        session.last_run_status = interrupted.status
    session.active_run_id = None
    is_held = session.held_reason is not None or unresolved
    session.status = SessionStatus.HELD if is_held else SessionStatus.IDLE
    session.status_reason = session.held_reason
    return held


def _hold_reason(interrupted: RunRow | None, *, goes_on: bool) -> str | None:
    """Why what waits has to wait; None if it goes on, as is configured."""
    if not goes_on:
        return ErrorWord.HOST_RESTARTED
    if interrupted is not None and interrupted.hold_after:
        return f"{USER_HOLD}: holdAfter"
    if interrupted is not None and interrupted.cancel_requested_at is not None:
        # Whether it was stopped to hold the queue is not known any more.
        return ErrorWord.CANCEL_UNCONFIRMED
    return None


async def _look_back(
    reader: Reader, run: RunRow, traits: Traits, usage: UsageLedger
) -> Sequence[Draft]:
    """Close the calls and commands that the run had open, and see what it has used."""
    open_calls = CallBook(run.run_id)
    jobs: dict[str, Draft] = {}
    seq = (run.first_seq or 1) - 1
    while rows := await reader.events_after_seq(
        run.session_key, seq, limit=1000, max_bytes=1 << 20, run_key=run.key
    ):
        seq = rows[-1].seq or seq
        for row in rows:
            if row.kind in _TOOL_KINDS:
                open_calls.follow(row.kind, tool_call_id(row.payload))
            elif row.kind == Kind.USAGE_UPDATED:
                usage.update(read_context(Raw(row.payload)))
            elif row.kind == Kind.EVIDENCE:
                _follow_extension(row.payload, traits, usage)
            elif row.kind in (Kind.JOB_STARTED, Kind.JOB_ENDED):
                _follow_job(row, run, jobs)
    return [*closing.abandoned_tools(run, open_calls), *jobs.values()]


class _Job(AcpStruct, frozen=True):
    job_id: str = ""
    title: str = ""


def _follow_job(row: EventRow, run: RunRow, jobs: dict[str, Draft]) -> None:
    """A command that was started: the event of its end, unless there is one."""
    job = lenient(_Job, row.payload)
    if row.kind == Kind.JOB_ENDED:
        jobs.pop(job.job_id, None)
        return
    told = {
        "jobId": job.job_id, "title": job.title, "status": "failed", "exitCode": None,
        "signal": None, "error": "the daemon ended, and the command was ended after it",
    }  # fmt: skip
    host = {"outcome": "unknown"}
    jobs[job.job_id] = note(Kind.JOB_ENDED, told, run=run, host=host, flags=SYNTHETIC)


class _Extension(msgspec.Struct):
    method: str
    params: Raw


def _follow_extension(payload: bytes, traits: Traits, usage: UsageLedger) -> None:
    """Some agents tell only by notifications of their own what a turn has used."""
    try:
        told = msgspec.json.decode(payload, type=_Extension)
    except msgspec.DecodeError:
        return
    reported = traits.usage_of(told.method, told.params)
    if reported is not None:
        usage.report(reported)


def _missing_end(run: RunRow, seq: int) -> Draft:
    """A run that is over by its row gets the event that says so."""
    kind = {
        RunStatus.COMPLETED: Kind.RUN_COMPLETED,
        RunStatus.FAILED: Kind.RUN_FAILED,
        RunStatus.CANCELLED: Kind.RUN_CANCELLED,
        RunStatus.INTERRUPTED: Kind.RUN_INTERRUPTED,
    }[RunStatus(run.status)]
    run.terminal_seq = seq
    run.last_seq = max(run.last_seq or 0, seq)
    draft = note(kind, {"stopReason": run.stop_reason, "errorCode": run.error_code}, run=run)
    return draft._replace(flags=SYNTHETIC, run=RunRef(run.key, run.run_id))
