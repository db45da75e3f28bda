"""The areas `runtime` and `usage` of the socket: what serves sessions, and what it takes."""

from typing import Annotated

from acphost.server.access import Access
from acphost.server.connection import ClientConnection
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire.base import carries
from acphost.wire.daemon import ProcessRecord
from acphost.wire.host import Page
from acphost.wire.runtime import RuntimeStarted
from acphost.wire.status import RuntimeReset, RuntimeStatus
from acphost.wire.trouble import RuntimeHealth, RuntimeLogs, RuntimeLogsParams
from acphost.wire.usage import UsageProjection


class RuntimeMethods:
    """Handlers, each a few lines that delegate."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self) -> tuple[Method, ...]:
        """The methods of the area."""
        return (
            Method("runtime/status", p.RuntimeStatusParams, Access.ANY, self.status),
            Method("runtime/start", p.SessionParams, Access.ANY, self.start),
            Method("runtime/reset", p.RuntimeResetParams, Access.ANY, self.reset),
            Method("runtime/logs", RuntimeLogsParams, Access.ANY, self.logs),
            Method("runtime/health", p.NoParams, Access.ANY, self.health),
            Method("runtime/processes", p.ProcessesParams, Access.ANY, self.processes),
            Method("usage/get", p.UsageGetParams, Access.ANY, self.usage),
        )

    async def status(
        self, client: ClientConnection, params: p.RuntimeStatusParams
    ) -> RuntimeStatus | Annotated[Page, carries(RuntimeStatus)]:
        """Which agent serves a session, whether it remembers, why it is busy."""
        if params.session_id is not None:
            return await self._host.board.of_session(params.session_id)
        return await self._host.board.of_all(params)

    async def start(self, client: ClientConnection, params: p.SessionParams) -> RuntimeStarted:
        """Has a session's agent started, and answers when it is there; or why it cannot be had."""
        return await self._host.commands.start_runtime(params.session_id)

    async def reset(self, client: ClientConnection, params: p.RuntimeResetParams) -> RuntimeReset:
        """Ends a session's agent; `next` says what the next run begins with."""
        return await self._host.commands.reset_runtime(params, client.origin)

    async def logs(self, client: ClientConnection, params: RuntimeLogsParams) -> RuntimeLogs:
        """What went wrong lately: complaints of agents, failed tools, refused permissions."""
        return await self._host.logbook.latest(params)

    async def health(self, client: ClientConnection, params: p.NoParams) -> RuntimeHealth:
        """What the daemon rests on: whether agents can be started and events be kept."""
        return await self._host.health()

    async def processes(
        self, client: ClientConnection, params: p.ProcessesParams
    ) -> Annotated[Page, carries(ProcessRecord)]:
        """The agents' processes and what they have started, with memory and age."""
        if params.session_id is not None:
            await self._host.queries.session_row(params.session_id)
        return await self._host.processes.page(params.session_id)

    async def usage(self, client: ClientConnection, params: p.UsageGetParams) -> UsageProjection:
        """Context, turn and session kept apart; of a run, or of a session and its last run.

        Raises RunNotFoundError, SessionNotFoundError.
        """
        return await self._host.queries.usage(params)
