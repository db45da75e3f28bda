"""Rows of the tables beside the events: mutable values whose fields are the columns.

JSON columns are bytes. Timestamps are milliseconds since the epoch. A field marked `derived` is
found by the reader and never stored.
"""

from dataclasses import dataclass, field
from typing import Any


def _derived(default: Any) -> Any:  # noqa: ANN401 (as `field`: it stands for the value)
    return field(default=default, metadata={"derived": True})


@dataclass(slots=True, kw_only=True)
class SessionRow:
    """A session and the state of its side of the agent."""

    key: int
    session_id: str
    agent_id: str
    runtime: str
    profile: str
    title: str | None = None
    workspace_id: str
    cwd: str
    document_id: str | None = None
    actor_id: str
    pinned: bool = False
    status: str = "idle"
    status_reason: str | None = None
    mode: str = "new_session"
    continuity_code: str = "no_context"
    continuity_reason: str | None = None
    acp_session_id: str | None = None
    resolved_model: str | None = None
    additional_directories: bytes = b"[]"
    mcp_servers: bytes = b"[]"
    active_run_id: str | None = None
    held_reason: str | None = None
    queue_rev: int = 0
    last_run_status: str | None = None
    load_status: str | None = None
    load_attempted: bool = False
    replay_seen: bool = False
    replay_seq: int | None = None
    replay_count: int = 0
    supports_load: bool = False
    supports_resume: bool = False
    cold_packet_bytes: int | None = None
    cold_truncated_reason: str | None = None
    settings: bytes = b"{}"
    created_at: int
    updated_at: int
    #: Rules that answer for a person in this session, before those of the configuration.
    policy: bytes = b"[]"
    #: What its turns have used so far, as `session.usage` keeps it.
    usage: bytes = b"{}"
    #: Last seq in the journal, and runs waiting, at the moment of reading.
    last_seq: int = _derived(0)
    queued_count: int = _derived(0)


@dataclass(slots=True, kw_only=True)
class RunRow:
    """One prompt on its way through the queue and the agent; its content is in `prompts`."""

    key: int
    run_id: str
    session_key: int
    session_id: str
    request_id: str
    idempotency_key: str | None = None
    fingerprint: str | None = None
    agent_id: str
    provider: str
    profile: str
    provider_run_id: str | None = None
    actor_id: str
    client_id: str | None = None
    client_name: str | None = None
    workspace_id: str
    document_id: str | None = None
    parent_run_id: str | None = None
    resume_request_id: str | None = None
    status: str = "pending"
    queue_order: int = 0
    queue_rev: int = 0
    preview: str = ""
    context_refs: bytes = b"[]"
    target: bytes | None = None
    target_hash: str | None = None
    capability_hash: str | None = None
    stop_reason: str | None = None
    error_code: str | None = None
    error: str | None = None
    is_empty: bool = False
    continuity: str | None = None
    acp_session_id: str | None = None
    cancel_requested_at: int | None = None
    hold_after: bool = False
    first_seq: int | None = None
    #: Read as the greater of what is stored and what the journal holds.
    last_seq: int | None = None
    terminal_seq: int | None = None
    dismissed_at: int | None = None
    created_at: int
    started_at: int | None = None
    ended_at: int | None = None
    updated_at: int
    #: What it has used, as `session.usage` keeps it; None: nothing is known.
    usage: bytes | None = None
    #: Of a pending run: how many runs of its session go before it, a running one included.
    queue_position: int | None = _derived(None)


@dataclass(slots=True, kw_only=True)
class DecisionRow:
    """A question of an agent, and who answered it how."""

    permission_id: str
    kind: str
    session_key: int
    session_id: str
    run_key: int | None = None
    run_id: str | None = None
    tool_call_key: str | None = None
    options: bytes = b"[]"
    request: bytes = b"{}"
    status: str = "pending"
    outcome: str | None = None
    option_id: str | None = None
    by: bytes | None = None
    rule: str | None = None
    created_at: int
    resolved_at: int | None = None
    expires_at: int | None = None


@dataclass(slots=True, kw_only=True)
class BindingRow:
    """One tie between a session and a conversation inside an agent process."""

    binding_id: str
    session_key: int
    acp_session_id: str | None = None
    launch_id: str | None = None
    mode: str
    status: str = "live"
    reason: str | None = None
    run_id: str | None = None
    created_at: int
    ended_at: int | None = None


@dataclass(slots=True, kw_only=True)
class ProcessRow:
    """A process we started: enough to end exactly it, and nobody else, after a crash."""

    launch_id: str
    agent_id: str
    session_id: str | None = None
    pid: int | None = None
    birth: str | None = None
    pgid: int | None = None
    boot_id: str | None = None
    host_pid: int | None = None
    command: bytes = b"[]"
    started_at: int
    ended_at: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    #: The control group that it and all it started are in.
    cgroup: str | None = None
    #: What it has started, as far as that was seen: a JSON list of [pid, birth, group].
    descendants: str | None = None
