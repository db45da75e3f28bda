"""Rows of the store as the records that clients read. Pure."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.journal.rows import DecisionRow, RunRow, SessionRow
from acphost.session.controls import Controls, read_kept
from acphost.session.usage import UsageLedger, stored_run_usage
from acphost.wire.base import NULL, optional_timestamp, position_text, timestamp
from acphost.wire.host import (
    ENVELOPE_SCHEMA,
    Decision,
    QueuedRun,
    Recovery,
    Run,
    RunStatus,
    Session,
    SessionStatus,
)
from acphost.wire.logins import Login
from acphost.wire.policy import PolicyRule
from acphost.wire.receipt import Receipt
from acphost.wire.usage import ColdResumeUsage, UsageProjection


def session_view(
    row: SessionRow,
    *,
    status: str | None = None,
    recovery: Recovery | None = None,
    login: Login | None = None,
    is_whole: bool = False,
) -> Session:
    """A session; `status` overrides the stored word where time has changed it.

    With `is_whole` it tells also what can be set.
    """
    controls = Controls(read_kept(row.settings))
    return Session(
        session_id=row.session_id,
        title=row.title,
        agent_id=row.agent_id,
        runtime=row.runtime,
        profile=row.profile,
        resolved_model=row.resolved_model,
        workspace_id=row.workspace_id,
        cwd=row.cwd,
        document_id=row.document_id,
        actor_id=row.actor_id,
        pinned=row.pinned,
        status=status or row.status,
        status_reason=row.status_reason,
        mode=row.mode,
        acp_session_id=row.acp_session_id,
        active_run_id=row.active_run_id,
        queued_count=row.queued_count,
        last_run_status=row.last_run_status,
        last_seq=position_text(row.last_seq),
        created_at=timestamp(row.created_at),
        updated_at=timestamp(row.updated_at),
        runtime_group=row.runtime,
        active_pinned=row.active_run_id is not None,
        recovery=recovery,
        agent_mode=controls.mode,
        login=login,
        settable=list(controls.all()) if is_whole else UNSET,
        policy=msgspec.json.decode(row.policy, type=list[PolicyRule]),
    )


def run_view(
    row: RunRow,
    *,
    recovery: Recovery | None = None,
    envelope: Raw | UnsetType = UNSET,
    receipt: Receipt | None = None,
) -> Run:
    """A run."""
    return Run(
        host_run_id=row.run_id,
        request_id=row.request_id,
        agent_id=row.agent_id,
        provider=row.provider,
        profile=row.profile,
        provider_run_id=row.provider_run_id,
        session_id=row.session_id,
        actor_id=row.actor_id,
        workspace_id=row.workspace_id,
        document_id=row.document_id,
        parent_run_id=row.parent_run_id,
        status=row.status,
        queue_position=row.queue_position,
        stop_reason=row.stop_reason,
        error_code=row.error_code,
        error=row.error,
        empty=row.is_empty,
        continuity=row.continuity,
        acp_session_id=row.acp_session_id,
        context_refs=msgspec.json.decode(row.context_refs, type=list[str]),
        target_snapshot_hash=row.target_hash,
        capability_snapshot_hash=row.capability_hash,
        cancel_requested_at=optional_timestamp(row.cancel_requested_at),
        first_seq=_optional_position(row.first_seq),
        last_seq=_optional_position(row.last_seq),
        terminal_seq=_optional_position(row.terminal_seq),
        dismissed_at=optional_timestamp(row.dismissed_at),
        created_at=timestamp(row.created_at),
        started_at=optional_timestamp(row.started_at),
        ended_at=optional_timestamp(row.ended_at),
        updated_at=timestamp(row.updated_at),
        recovery=recovery,
        envelope=envelope,
        receipt=receipt,
    )


def recovery_view(
    row: RunRow, session: SessionRow, *, files_touched: list[str], is_configured: bool
) -> Recovery:
    """What can be done about a run whose outcome nobody knows."""
    again = ["resume", "resume_with_history"] if is_configured else []
    return Recovery(
        was_running=True,
        last_seq=position_text(row.last_seq or 0),
        files_touched=files_touched,
        can_resume=session.supports_resume,
        can_load=session.supports_load,
        actions=[*again, "dismiss"],
    )


def queued_view(row: RunRow, session: SessionRow, content: bytes, position: int) -> QueuedRun:
    """A waiting run as the queue shows it."""
    return QueuedRun(
        id=row.run_id,
        user_id=row.actor_id,
        workspace_id=row.workspace_id,
        document_id=row.document_id,
        session_id=row.session_id,
        run_id=row.run_id,
        runtime=session.runtime,
        profile=row.profile,
        acp_session_id=session.acp_session_id,
        payload=Raw(content),
        preview=row.preview,
        position=position,
        rev=row.queue_rev,
        status="queued",
        held_reason=session.held_reason,
        created_at=timestamp(row.created_at),
        updated_at=timestamp(row.updated_at),
    )


def decision_view(row: DecisionRow) -> Decision:
    """A decision."""
    return Decision(
        permission_id=row.permission_id,
        kind=row.kind,
        session_id=row.session_id,
        host_run_id=row.run_id,
        tool_call_key=row.tool_call_key,
        options=Raw(row.options),
        status=row.status,
        outcome=row.outcome,
        option_id=row.option_id,
        by=NULL if row.by is None else Raw(row.by),
        rule=row.rule,
        created_at=timestamp(row.created_at),
        resolved_at=optional_timestamp(row.resolved_at),
        expires_at=optional_timestamp(row.expires_at),
        request=Raw(row.request),
    )


def usage_view(session: SessionRow, run: RunRow | None, ledger: UsageLedger) -> UsageProjection:
    """What was used: by a run, or the last one, and by its session."""
    if run is None:
        used = ledger.last_run
    elif run.status == RunStatus.RUNNING:
        used = ledger.turn
    else:
        used = stored_run_usage(run.usage)
    return UsageProjection(
        session_id=session.session_id,
        host_run_id=None if run is None else run.run_id,
        run=used,
        session=ledger.session,
        context=ledger.context,
        cold_resume=ColdResumeUsage(
            packet_bytes=session.cold_packet_bytes,
            truncated_reason=session.cold_truncated_reason,
        ),
        by_model=ledger.models,
    )


def quiet_or(status: str, *, is_quiet: bool) -> str:
    """The stored word, unless silence has outgrown it."""
    return SessionStatus.QUIET if is_quiet else status


def _optional_position(number: int | None) -> str | None:
    return None if number is None else position_text(number)


def envelope(run: RunRow, session: SessionRow, folders: list[str]) -> Raw:
    """`mnote.agent_run_envelope.v1`: for audit and permission, never part of a prompt."""
    target = msgspec.json.decode(run.target, type=dict[str, Raw]) if run.target else {}
    return Raw(
        msgspec.json.encode(
            {
                "schema": ENVELOPE_SCHEMA,
                "hostRunId": run.run_id,
                "actorId": run.actor_id,
                "workspaceId": run.workspace_id,
                "agentId": run.agent_id,
                "profile": run.profile,
                "contextRefs": Raw(run.context_refs),
                "allowedRoots": folders,
                "editorTarget": target.get("editorTarget"),
                "runTargetSnapshot": target.get("runTargetSnapshot"),
                "capabilities": [],
                "skills": [],
                "tools": [],
            }
        )
    )
