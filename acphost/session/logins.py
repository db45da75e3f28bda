"""Logging in to agents: on the process that asked for it, after which what waited goes on.

Nobody is logged in before an agent asks for it (guide rule 45), and a login is followed by one try
of what waited, no more.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import msgspec

from acphost.errors import AgentRefusedError, InvalidParamsError, RemoteError
from acphost.ids import Clock
from acphost.journal.writer import Writer
from acphost.provider.pool import AgentPool
from acphost.provider.process import AgentProcess
from acphost.provider.switchboard import Sink
from acphost.session.conversation import Conversation
from acphost.session.house import House
from acphost.session.scribe import note
from acphost.wire.acp import AuthMethod
from acphost.wire.event import Kind, Origin
from acphost.wire.logins import AgentAuthenticateParams, AgentLogin, TerminalLogin, choices


class Logins:
    """Authenticates agents, and lets the sessions go on that waited for it."""

    def __init__(self, pool: AgentPool, house: House, writer: Writer, now: Clock) -> None:
        self._pool = pool
        self._house = house
        self._writer = writer
        self._now = now

    async def authenticate(self, params: AgentAuthenticateParams, origin: Origin) -> AgentLogin:
        """Log in by one of the agent's methods.

        Raises AgentNotFoundError, AgentUnavailableError, AgentRefusedError, InvalidParamsError.
        """
        agent_id = params.agent_id
        self._pool.agent(agent_id)
        async with self._process(agent_id) as (process, asker):
            offered = process.greeting.auth_methods
            if params.method_id is None:
                return _login(agent_id, "choose", offered)
            method = _chosen(offered, params.method_id)
            if method.type == "terminal" and not params.completed:
                login = _login(agent_id, "terminal", offered, method.id)
                return msgspec.structs.replace(login, terminal=_terminal(process, method))
            if method.type != "terminal":
                await _ask(process, "authenticate", {"methodId": method.id}, asker)
            # What a program in a terminal has stored is read by a process at its start.
            await self._renew(agent_id, keep=process if method.type != "terminal" else None)
        sessions = self._go_on(agent_id)
        told = {"agentId": agent_id, "state": "authenticated", "methodId": method.id, "by": origin}
        await self._tell(told, origin)
        login = _login(agent_id, "authenticated", offered, method.id)
        return msgspec.structs.replace(login, sessions=sessions)

    async def logout(self, agent_id: str, origin: Origin) -> AgentLogin:
        """Log out, where the agent offers it; sessions that are open may or may not go on.

        Raises AgentNotFoundError, AgentUnavailableError, AgentRefusedError.
        """
        self._pool.agent(agent_id)
        async with self._process(agent_id) as (process, asker):
            offered = process.greeting.auth_methods
            if not process.greeting.agent_capabilities.offers_auth("logout"):
                raise AgentRefusedError(f"agent {agent_id!r} does not offer to log out")
            await _ask(process, "logout", {}, asker)
        await self._tell({"agentId": agent_id, "state": "logged_out", "by": origin}, origin)
        return _login(agent_id, "logged_out", offered)

    @asynccontextmanager
    async def _process(self, agent_id: str) -> AsyncGenerator[tuple[AgentProcess, Sink | None]]:
        """A process of the agent to talk to, and the session that may be asked on its account."""
        for conversation in self._waiting(agent_id):
            parked = conversation.binder.parked
            if parked is not None and parked.is_live:
                yield parked, conversation.binder.sink
                return
        async with self._pool.borrowed(agent_id) as process:
            yield process, None

    async def _renew(self, agent_id: str, keep: AgentProcess | None) -> None:
        """Whoever is not attached to anything gets a process that was started after the login."""
        for conversation in self._waiting(agent_id):
            parked = conversation.binder.parked
            if parked is not None and parked is not keep:
                conversation.binder.parked = None
                await self._pool.retire(parked)

    def _go_on(self, agent_id: str) -> list[str]:
        waiting = self._waiting(agent_id)
        for conversation in waiting:
            conversation.readiness.try_again()
        return [conversation.row.session_id for conversation in waiting]

    def _waiting(self, agent_id: str) -> list[Conversation]:
        return [
            conversation
            for conversation in self._house.conversations
            if conversation.row.agent_id == agent_id and conversation.state.login is not None
        ]

    async def _tell(self, told: Mapping[str, object], origin: Origin) -> None:
        draft = note(Kind.AGENT_STATE, told, origin=origin)
        ticket = self._writer.append(None, [draft], (), at=self._now())
        await self._writer.durable(ticket)


async def _ask(
    process: AgentProcess, method: str, params: dict[str, object], asker: Sink | None
) -> None:
    patience = process.plan.agent.login_timeout
    try:
        await process.ask(method, params, patience=patience, sink=asker)
    except RemoteError as exc:
        raise AgentRefusedError(
            f"agent {process.plan.agent_id!r} refused `{method}`: {exc}",
            agentError={"code": exc.remote_code, "message": str(exc)},
        ) from exc


def _chosen(offered: list[AuthMethod], method_id: str) -> AuthMethod:
    for method in offered:
        if method.id == method_id:
            return method
    there = ", ".join(method.id for method in offered) or "none"
    raise InvalidParamsError(f"no such method; there are: {there} - at `$.methodId`")


def _terminal(process: AgentProcess, method: AuthMethod) -> TerminalLogin:
    agent = process.plan.agent
    return TerminalLogin(
        command=list(agent.command), args=method.args, env=method.env, configured=sorted(agent.env)
    )


def _login(
    agent_id: str, status: str, offered: list[AuthMethod], method_id: str | None = None
) -> AgentLogin:
    return AgentLogin(
        agent_id=agent_id, status=status, methods=choices(offered), method_id=method_id
    )
