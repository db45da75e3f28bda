"""The area `run` of the socket: prompts, and what became of them."""

from typing import Annotated

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire.base import carries, parse_position
from acphost.wire.host import EventsPage, Page, Run


class RunMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("run/create", p.RunCreateParams, Access.ANY, self.create),
            Method("run/get", p.RunGetParams, Access.ANY, self.get),
            Method("run/list", p.RunListParams, Access.ANY, self.list),
            Method("run/events", p.RunEventsParams, Access.ANY, self.events),
            Method("run/wait", p.RunWaitParams, Access.ANY, self.wait),
            Method("run/cancel", p.RunCancelParams, Access.ANY, self.cancel),
            Method("run/resume", p.RunResumeParams, Access.ANY, self.resume),
            Method("run/dismiss", p.RunParams, Access.ANY, self.dismiss),
        )

    async def create(self, client: ClientConnection, params: p.RunCreateParams) -> Run:
        """Sends a prompt, or queues it while the agent is busy; repeated, it is the same run."""
        run_id = await self._host.commands.create_run(params, client.origin)
        run = await self._host.queries.run(run_id)
        client.follow(run.session_id)
        return run

    async def get(self, client: ClientConnection, params: p.RunGetParams) -> Run:
        """One run; `include` adds its envelope."""
        return await self._host.queries.run(
            params.host_run_id, with_envelope="envelope" in params.include
        )

    async def list(
        self, client: ClientConnection, params: p.RunListParams
    ) -> Annotated[Page, carries(Run)]:
        """The runs, newest first."""
        return await self._host.queries.runs(params)

    async def events(self, client: ClientConnection, params: p.RunEventsParams) -> EventsPage:
        """A page of a run's events: greater seqs only, oldest first."""
        async with client.large_answers:
            await client.outbox.relief()
            return await self._host.queries.run_events(params, parse_position(params.after_seq))

    async def wait(self, client: ClientConnection, params: p.RunWaitParams) -> Run:
        await self._host.commands.wait_run(params.host_run_id, params.timeout_ms)
        return await self._host.queries.run(params.host_run_id)

    async def cancel(self, client: ClientConnection, params: p.RunCancelParams) -> Run:
        """Stops a run; answers at once, `run/wait` tells the end."""
        await self._host.commands.cancel_run(
            params.host_run_id, client.origin, hold_queue=params.hold_queue
        )
        return await self._host.queries.run(params.host_run_id)

    async def resume(self, client: ClientConnection, params: p.RunResumeParams) -> Run:
        run_id = await self._host.commands.resume_run(params, client.origin)
        return await self._host.queries.run(run_id)

    async def dismiss(self, client: ClientConnection, params: p.RunParams) -> Run:
        """Says that an interrupted run has been seen and is not to be resumed."""
        await self._host.commands.dismiss_run(params.host_run_id, client.origin)
        return await self._host.queries.run(params.host_run_id)
