"""The areas `job` and `grant` of the socket: commands of agents, and folders they may use."""

import msgspec
from msgspec import Raw

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.session.jobs import JobBoard
from acphost.wire import params as p
from acphost.wire.grants import Grant, GrantAddParams, GrantRemoveParams
from acphost.wire.host import Page
from acphost.wire.jobs import Job, JobListParams, JobParams, JobsStopped, JobStopAllParams


class WorkshopMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._board = JobBoard(host.house)

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("job/list", JobListParams, Access.ANY, self.jobs),
            Method("job/stop", JobParams, Access.ANY, self.stop_job),
            Method("job/stopAll", JobStopAllParams, Access.ANY, self.stop_jobs),
            Method("grant/list", p.NoParams, Access.ANY, self.grants),
            Method("grant/add", GrantAddParams, Access.ANY, self.grant),
            Method("grant/remove", GrantRemoveParams, Access.ANY, self.take_back),
        )

    async def jobs(self, client: ClientConnection, params: JobListParams) -> Page:
        """The commands that agents run through the host now."""
        jobs = self._board.every(params.session_id)
        return Page(items=[Raw(msgspec.json.encode(each)) for each in jobs])

    async def stop_job(self, client: ClientConnection, params: JobParams) -> Job:
        """End a command; its agent goes on, and sees how it ended."""
        return await self._board.stop(params.job_id, client.origin)

    async def stop_jobs(self, client: ClientConnection, params: JobStopAllParams) -> JobsStopped:
        """End every command that runs, of one session or of all."""
        return await self._board.stop_all(params.session_id, client.origin)

    async def grants(self, client: ClientConnection, params: p.NoParams) -> Page:
        """The folders that the actor lets agents use beside those of their sessions."""
        items = self._host.house.grants.of(client.known.actor_id)
        return Page(items=[Raw(msgspec.json.encode(each)) for each in items])

    async def grant(self, client: ClientConnection, params: GrantAddParams) -> Grant:
        """Let agents use a folder in all sessions of the actor, to read only or also to write."""
        return await self._host.house.grants.add(client.known.actor_id, params)

    async def take_back(self, client: ClientConnection, params: GrantRemoveParams) -> Grant:
        """Take a folder back; the answer is what was granted."""
        return await self._host.house.grants.remove(client.known.actor_id, params.grant_id)
