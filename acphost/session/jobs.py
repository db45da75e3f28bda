"""The commands of all sessions, for people to look at and to stop."""

import anyio

from acphost.errors import InvalidParamsError
from acphost.session.house import House
from acphost.session.terminals import TerminalDesk
from acphost.wire.event import Origin
from acphost.wire.jobs import Job, JobsStopped


class JobBoard:
    """Knows which commands there are now; ended ones that were released are in the journal."""

    def __init__(self, house: House) -> None:
        self._house = house

    def every(self, session_id: str | None = None) -> list[Job]:
        """The commands of a session, or all, the oldest first."""
        return [job for desk in self._desks(session_id) for job in desk.jobs()]

    async def stop(self, job_id: str, origin: Origin) -> Job:
        """End a command; its agent still sees how it ended. Raises InvalidParamsError."""
        for desk in self._desks(None):
            if await desk.stop(job_id, origin):
                return next(job for job in desk.jobs() if job.job_id == job_id)
        raise InvalidParamsError(f"no command {job_id!r} is there - at `$.jobId`")

    async def stop_all(self, session_id: str | None, origin: Origin) -> JobsStopped:
        """End every command that runs, of a session or at all."""
        running = [job for job in self.every(session_id) if job.status == "running"]
        if not running:
            return JobsStopped(stopped=0, message="no command is running")
        async with anyio.create_task_group() as tasks:
            for desk in self._desks(session_id):
                for job in running:
                    tasks.start_soon(desk.stop, job.job_id, origin)
        return JobsStopped(stopped=len(running), message=f"{len(running)} ended")

    def _desks(self, session_id: str | None) -> list[TerminalDesk]:
        return [
            each.services.terminals
            for each in self._house.conversations
            if session_id in (None, each.row.session_id)
        ]
