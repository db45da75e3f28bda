"""What the daemon tells of itself: who it is, its processes, its upkeep."""

from acphost.wire.base import HostRecord


class Descendant(HostRecord, frozen=True):
    """A process that an agent started, or that one of those did."""

    pid: int
    command: str
    memory_bytes: int
    age_ms: int


class ProcessRecord(HostRecord, frozen=True):
    """An agent process of the ledger with what came of it; memory is each one's own."""

    launch_id: str
    agent_id: str
    #: The session it was started for; null where several share it.
    session_id: str | None
    #: The sessions that are bound to it now.
    session_ids: list[str]
    pid: int | None
    #: starting, live, stopping, or left: not seen to end by the daemon that started it.
    state: str
    command: str
    memory_bytes: int | None
    age_ms: int
    descendants: list[Descendant]
    #: Descendants that run outside the agent's process group.
    left_group: list[int]


class BackupDone(HostRecord, frozen=True):
    """The answer to `host/backup`."""

    path: str
    bytes: int
    duration_ms: int
    #: How many files of secrets are in it.
    secrets: int


class HostInfo(HostRecord, frozen=True):
    """Which daemon this is."""

    name: str
    version: str
    pid: int


class Limits(HostRecord, frozen=True):
    """What a connection may do."""

    max_line_bytes: int
    max_in_flight: int


class InitializeResult(HostRecord, frozen=True):
    """The answer to a client's first request."""

    protocol_version: int
    schema_revision: str
    host_info: HostInfo
    store_id: str
    client_id: str
    actor_id: str
    role: str
    capabilities: dict[str, bool]
    limits: Limits


class Pong(HostRecord, frozen=True):
    """The answer to `host/ping`."""

    now: str
    uptime_ms: int


class Reloaded(HostRecord, frozen=True):
    """The answer to `host/reload`: what counts otherwise now, or what is wrong with the files."""

    #: Keys as they are written in the files.
    changed: list[str]
    agents: list[str]
    #: Keys that count only at the next start.
    needs_restart: list[str]
    files: list[str]
    loaded_at: str
    problem: str | None
    #: Each with `file`, `key`, `text`, `line`, `column`.
    mistakes: list[dict[str, object]]


class RetentionItem(HostRecord, frozen=True):
    """A session that retention deleted, or would delete."""

    session_id: str
    agent_id: str
    title: str | None
    updated_at: str
    bytes: int
    #: `age` or `size`.
    cause: str


class RetentionDone(HostRecord, frozen=True):
    """The answer to `host/retention`: the rules, what went or would go, and what is left."""

    dry_run: bool
    max_age_days: float | None
    max_bytes: int | None
    used_bytes: int
    bytes: int
    sessions: list[RetentionItem]
