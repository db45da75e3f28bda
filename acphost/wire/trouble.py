"""What `runtime/logs` and `runtime/health` take and tell."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from acphost.wire.agents import AgentCheck
from acphost.wire.base import HostParams, HostRecord

LOGS_SCHEMA = "mnote.page_ai_runtime_logs.v1"
HEALTH_SCHEMA = "mnote.page_ai_runtime_health.v1"


class Trouble(StrEnum):
    """What went wrong with an agent, or was not let through."""

    STDERR = "acp_stderr"
    TOOL_FAILED = "tool_failed"
    DENIED = "permission_denied"
    MCP_FAILED = "mcp_failed"


class RuntimeLogsParams(HostParams, frozen=True):
    """`runtime/logs`: of one session, or of all; the latest `limit` of them."""

    session_id: str | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class LogItem(HostRecord, frozen=True):
    """One piece of trouble."""

    at: str
    kind: Trouble
    session_id: str
    host_run_id: str | None
    agent_id: str
    text: str


class RuntimeLogs(HostRecord, frozen=True):
    """The latest trouble, the newest first."""

    items: list[LogItem]
    #: Why there may be more of long ago; null: there is not.
    incomplete: str | None = None
    schema: str = LOGS_SCHEMA


class StoreHealth(HostRecord, frozen=True):
    """Whether events can be kept."""

    state: str
    reason: str | None
    since: str | None


class RuntimeHealth(HostRecord, frozen=True):
    """What the daemon rests on."""

    agents: list[AgentCheck]
    store: StoreHealth
    #: Null: this daemon has none.
    mcp_bridge: str | None = None
    knowledge: str | None = None
    schema: str = HEALTH_SCHEMA
