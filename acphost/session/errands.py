"""Requests of an agent that take a while: each has a task of its own, and is answered once.

The reader of the agent never waits for them. One is given up when the agent takes it back
(`$/cancel_request`), all are when the agent is gone.
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from acphost.errors import AcpHostError, OverloadedError, RequestCancelledError
from acphost.log import get_logger
from acphost.provider.connection import AgentConnection
from acphost.provider.switchboard import AgentRequest
from acphost.wire.jsonrpc import RequestId

log = get_logger()

Work = Callable[[AgentRequest], Awaitable[object]]

#: Requests one session's agent may have open at a time.
MAX_OPEN = 256


class Errands:
    """The open requests of one session's agent, by connection and id."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._open: dict[tuple[int, RequestId], anyio.CancelScope] = {}

    def handler(self, work: Work) -> Callable[[AgentRequest], None]:
        """What answers a method: `work` returns the result, or raises what is answered."""

        def take(asked: AgentRequest) -> None:
            key = _key(asked.connection, asked.id)
            if key in self._open or len(self._open) >= MAX_OPEN:
                asked.refuse(OverloadedError(
                    f"{len(self._open)} requests are open, or one has that id", retryAfterMs=100
                ))  # fmt: skip
                return
            scope = self._open[key] = anyio.CancelScope()
            self._tasks.start_soon(self._carry_out, work, asked, scope)

        return take

    def cancel(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """The agent takes a request back; whether it was open. It is answered all the same."""
        scope = self._open.get(_key(connection, request_id))
        if scope is not None:
            scope.cancel()
        return scope is not None

    def abandon(self) -> None:
        """Nobody waits for any of them any more."""
        for scope in self._open.values():
            scope.cancel()

    async def _carry_out(self, work: Work, asked: AgentRequest, scope: anyio.CancelScope) -> None:
        key = _key(asked.connection, asked.id)
        try:
            with scope:
                # An answer that the agent does not read would only be kept in memory.
                await asked.connection.relief()
                asked.answer(await work(asked))
                return
            asked.refuse(RequestCancelledError("the request was cancelled"))
        except AcpHostError as exc:
            asked.refuse(exc)
        except Exception as exc:  # border: whatever a request runs into is its answer
            log.debug("errand_failed", method=asked.method)
            asked.refuse(exc)
        finally:
            if self._open.get(key) is scope:
                del self._open[key]


def _key(connection: AgentConnection, request_id: RequestId) -> tuple[int, RequestId]:
    return id(connection), request_id
