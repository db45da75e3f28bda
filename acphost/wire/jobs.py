"""Commands that run for agents, as clients see them (contract section 10)."""

from typing import Annotated, Literal

from msgspec import Meta

from acphost.wire.base import HostParams, HostRecord


class Job(HostRecord, frozen=True):
    """A command that an agent runs through the host, until the agent has done with it."""

    job_id: str
    title: str
    status: Literal["running", "completed", "failed"]
    session_id: str
    host_run_id: str | None


class JobListParams(HostParams, frozen=True):
    """`job/list`: those of one session, or all."""

    session_id: str | None = None


class JobParams(HostParams, frozen=True):
    """`job/stop`."""

    job_id: Annotated[str, Meta(min_length=1)]


class JobStopAllParams(HostParams, frozen=True):
    """`job/stopAll`: those of one session, or all."""

    session_id: str | None = None


class JobsStopped(HostRecord, frozen=True):
    """The answer to `job/stopAll`."""

    stopped: int
    message: str
