"""What can be done about a run whose outcome nobody knows: what it touched, and its second try."""

import msgspec

from acphost.errors import ConflictError
from acphost.journal.event import EventRow
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow
from acphost.session.state import SessionState
from acphost.wire.acp import lenient
from acphost.wire.base import AcpStruct
from acphost.wire.event import Kind, Origin
from acphost.wire.host import Mode, RunStatus
from acphost.wire.params import RunResumeParams

#: So many files are named; who touched more has to be looked at as a whole.
MAX_FILES = 200
_TOOL_KINDS = frozenset(
    {Kind.TOOL_STARTED, Kind.TOOL_UPDATED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED}
)
#: Tools of these kinds look at files and leave them as they are.
_HARMLESS = frozenset({"read", "search", "fetch", "think"})


class _Location(AcpStruct, frozen=True):
    path: str = ""


class _Content(AcpStruct, frozen=True):
    type: str = ""
    path: str = ""


class _Call(AcpStruct, frozen=True):
    tool_call_id: str = ""
    kind: str | None = None
    locations: list[_Location] | None = None
    content: list[_Content] | None = None


async def files_touched(reader: Reader, run: RunRow) -> list[str]:
    """The files that the run's tools may have changed, in the order in which they were named."""
    found: dict[str, None] = {}
    harmless: set[str] = set()
    seq = (run.first_seq or 1) - 1
    while len(found) < MAX_FILES and (
        rows := await reader.events_after_seq(
            run.session_key, seq, limit=1000, max_bytes=1 << 20, upto_seq=run.last_seq,
            run_key=run.key,
        )
    ):  # fmt: skip
        seq = rows[-1].seq or seq
        for row in rows:
            if row.kind in _TOOL_KINDS:
                found |= dict.fromkeys(_files_of(row, harmless))
    return list(found)[:MAX_FILES]


def _files_of(row: EventRow, harmless: set[str]) -> list[str]:
    try:
        call = lenient(_Call, row.payload)
    except msgspec.DecodeError:
        return []
    if call.kind is not None:
        (harmless.add if call.kind in _HARMLESS else harmless.discard)(call.tool_call_id)
    written = [each.path for each in call.content or () if each.type == "diff"]
    if call.tool_call_id not in harmless:
        written += [each.path for each in call.locations or ()]
    return [path for path in written if path]


def check_resumable(parent: RunRow, state: SessionState) -> None:
    """Raises ConflictError unless the run was interrupted and nobody is at it already."""
    if parent.status != RunStatus.INTERRUPTED:
        raise ConflictError(
            f"run {parent.run_id} is {parent.status}; only an interrupted run can be resumed"
        )
    if parent.dismissed_at is not None:
        raise ConflictError(f"run {parent.run_id} was dismissed; send its prompt as a new run")
    under_way = [waiting.run for waiting in state.queue]
    if state.turn is not None:
        under_way.append(state.turn.run)
    for run in under_way:
        if run.parent_run_id == parent.run_id:
            raise ConflictError(
                f"run {parent.run_id} is being resumed by run {run.run_id}", hostRunId=run.run_id
            )


def child_of(
    parent: RunRow, params: RunResumeParams, origin: Origin, *, key: int, run_id: str, now: int
) -> RunRow:
    """A run that says the same once more, under its own name."""
    return RunRow(
        key=key,
        run_id=run_id,
        session_key=parent.session_key,
        session_id=parent.session_id,
        request_id=params.resume_request_id,
        parent_run_id=parent.run_id,
        resume_request_id=params.resume_request_id,
        fingerprint=parent.fingerprint,
        agent_id=parent.agent_id,
        provider=parent.provider,
        profile=parent.profile,
        actor_id=origin.actor_id,
        client_id=origin.client_id,
        client_name=origin.client_name,
        workspace_id=parent.workspace_id,
        document_id=parent.document_id,
        context_refs=parent.context_refs,
        target=parent.target,
        target_hash=parent.target_hash,
        preview=parent.preview,
        queue_order=parent.queue_order,
        # What it is to be begun with; `run.started` tells what it was.
        continuity=Mode.COLD_RESUMED if params.with_history else None,
        created_at=now,
        updated_at=now,
    )


def wants_history(run: RunRow) -> bool:
    """Whether a run that waits must not rely on what the agent remembers."""
    return run.status == RunStatus.PENDING and run.continuity == Mode.COLD_RESUMED
