"""What a check reads, as SQL that trusts no row to have an owner, and no index to forbid."""

from typing import NamedTuple

from acphost.journal.segments import SegmentHead


class AuditedEvent(NamedTuple):
    """What an event must be checked for; the session is the one that was asked for."""

    offset: int
    seq: int | None
    run_key: int | None
    kind: str
    codec: int
    flags: int
    payload: bytes
    host: bytes | None
    origin: bytes | None


class AuditedRun(NamedTuple):
    """What a run must be checked for."""

    key: int
    run_id: str
    session_id: str
    status: str
    queue_order: int
    first_seq: int | None
    last_seq: int | None
    terminal_seq: int | None
    has_prompt: bool


class AuditedSession(NamedTuple):
    """What a session must be checked for."""

    key: int
    session_id: str
    status: str
    active_run_id: str | None
    queue_rev: int


class AuditedDecision(NamedTuple):
    """What a decision must be checked for."""

    permission_id: str
    status: str
    run_key: int | None
    run_id: str | None


class AuditedBinding(NamedTuple):
    """What a live binding must be checked for; `is_ledgered` if its launch is in the ledger."""

    binding_id: str
    session_key: int
    launch_id: str | None
    is_ledgered: bool
    launch_has_ended: bool


class AuditedProcess(NamedTuple):
    """A launch that was not seen to end."""

    launch_id: str
    agent_id: str
    pid: int | None
    birth: str | None
    pgid: int | None
    boot_id: str | None
    host_pid: int | None
    descendants: str | None


class AuditedSegment(NamedTuple):
    """What a segment must be checked for: what is known of it, and what is in it."""

    head: SegmentHead
    events: int
    raw_bytes: int
    facts: bytes | None
    payloads: bytes | None


EVENTS = (
    "SELECT offset, seq, run_key, kind, codec, flags, payload, host, origin, events FROM events"
    " WHERE session_key IS ? ORDER BY seq, offset"
)
RUNS = (
    "SELECT r.key, r.run_id, r.session_id, r.status, r.queue_order, r.first_seq, r.last_seq,"
    " r.terminal_seq, p.run_key IS NOT NULL FROM runs r LEFT JOIN prompts p ON p.run_key = r.key"
    " WHERE r.session_key = ? ORDER BY r.key"
)
SESSIONS = "SELECT key, session_id, status, active_run_id, queue_rev FROM sessions ORDER BY key"
DECISIONS = (
    "SELECT permission_id, status, run_key, run_id FROM decisions WHERE session_key = ?"
    " ORDER BY created_at, permission_id"
)
LIVE_BINDINGS = (
    "SELECT b.binding_id, b.session_key, b.launch_id, p.launch_id IS NOT NULL,"
    " p.ended_at IS NOT NULL FROM bindings b LEFT JOIN processes p ON p.launch_id = b.launch_id"
    " WHERE b.status = 'live' ORDER BY b.session_key, b.created_at"
)
UNENDED = (
    "SELECT launch_id, agent_id, pid, birth, pgid, boot_id, host_pid, {} FROM processes"
    " WHERE ended_at IS NULL ORDER BY started_at"
)
# The index that forbids it is not asked, since it may be what is damaged.
REPEATED_KEYS = (
    "SELECT idempotency_key, group_concat(run_id, ', ') FROM runs NOT INDEXED"
    " WHERE idempotency_key IS NOT NULL GROUP BY idempotency_key HAVING count(*) > 1"
)
#: What each row is called, and which of them name an owner that is not there.
STRAYS = {
    "event of no session": """
        SELECT 'at offset ' || e.offset FROM events e WHERE e.session_key IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.key = e.session_key)
    """,
    "event of no run": """
        SELECT 'at offset ' || e.offset FROM events e WHERE e.run_key IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM runs r WHERE r.key = e.run_key AND r.session_key = e.session_key)
    """,
    "run of no session": """
        SELECT r.run_id FROM runs r WHERE NOT EXISTS
        (SELECT 1 FROM sessions s WHERE s.key = r.session_key AND s.session_id = r.session_id)
    """,
    "prompt of no run": """
        SELECT 'of run key ' || p.run_key FROM prompts p WHERE NOT EXISTS
        (SELECT 1 FROM runs r WHERE r.key = p.run_key)
    """,
    "decision of no session": """
        SELECT d.permission_id FROM decisions d WHERE NOT EXISTS
        (SELECT 1 FROM sessions s WHERE s.key = d.session_key AND s.session_id = d.session_id)
    """,
    "decision of no run": """
        SELECT d.permission_id FROM decisions d WHERE d.run_key IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM runs r WHERE r.key = d.run_key AND r.run_id = d.run_id
        AND r.session_key = d.session_key)
    """,
    "binding of no session": """
        SELECT b.binding_id FROM bindings b WHERE NOT EXISTS
        (SELECT 1 FROM sessions s WHERE s.key = b.session_key)
    """,
}
#: The same, in a store that knows segments.
SEALED_STRAYS = {
    "segment of no session": """
        SELECT 'at offset ' || g.first_offset FROM segments g WHERE NOT EXISTS
        (SELECT 1 FROM sessions s WHERE s.key = g.session_key)
    """,
    "content of no segment": """
        SELECT 'at offset ' || c.first_offset FROM segment_contents c WHERE NOT EXISTS
        (SELECT 1 FROM segments g WHERE g.first_offset = c.first_offset)
    """,
    "sealed run of no segment": """
        SELECT 'key ' || u.run_key || ' at offset ' || u.first_offset FROM sealed_runs u
        WHERE NOT EXISTS (SELECT 1 FROM segments g WHERE g.first_offset = u.first_offset)
    """,
    "sealed run of no run": """
        SELECT 'key ' || u.run_key || ' at offset ' || u.first_offset FROM sealed_runs u
        WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.key = u.run_key)
    """,
}
SEGMENTS = (
    "SELECT g.first_offset, g.last_offset, g.session_key, g.first_seq, g.last_seq, g.codec,"
    " g.events, g.raw_bytes, c.facts, c.payloads FROM segments g"
    " LEFT JOIN segment_contents c ON c.first_offset = g.first_offset"
    " WHERE g.session_key = ? ORDER BY g.first_seq, g.first_offset"
)
SEALED_RUNS = (
    "SELECT run_key, last_seq, terminal_seq FROM sealed_runs WHERE first_offset = ?"
    " ORDER BY run_key"
)
PLAIN_EVENTS = "SELECT coalesce(sum(events), 0) FROM events"
SEALED_EVENTS = "SELECT coalesce(sum(events), 0) FROM segments"
#: Tables and indexes, and how they were made.
SHAPES = (
    "SELECT type || ' ' || name, sql FROM sqlite_schema"
    " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
)
