"""Questions that the daemon asks a client, such as for the text of an unsaved buffer."""

from collections.abc import Awaitable, Callable

import msgspec
from anyio.abc import TaskGroup

from acphost.client.connection import Connection
from acphost.client.failures import error_object
from acphost.errors import AcpHostError, MethodNotFoundError, OverloadedError
from acphost.rpc.codec import encode_failure, encode_success
from acphost.wire.jsonrpc import Request

#: Questions of the daemon that may be open at a time; more are refused.
MAX_OPEN = 64

#: Answers a question: method and params in, result out, or an AcpHostError raised.
OnRequest = Callable[[str, msgspec.Raw], Awaitable[object]]


class Questions:
    """Answers each question in a task of its own, over the connection it came by and no other."""

    def __init__(self, handler: OnRequest | None, tasks: TaskGroup) -> None:
        self._handler = handler
        self._tasks = tasks
        self._open = 0

    def ask(self, connection: Connection, request: Request) -> None:
        """Have one question answered; it always gets an answer."""
        if self._handler is None:
            refusal: AcpHostError = MethodNotFoundError(f"{request.method}: not offered here")
        elif self._open >= MAX_OPEN:
            refusal = OverloadedError(f"{MAX_OPEN} questions are open already")
        else:
            self._open += 1
            self._tasks.start_soon(self._reply, self._handler, connection, request)
            return
        connection.post(encode_failure(request.id, error_object(refusal)))

    async def _reply(self, handler: OnRequest, connection: Connection, request: Request) -> None:
        try:
            frame = encode_success(request.id, await handler(request.method, request.params))
        except AcpHostError as exc:
            frame = encode_failure(request.id, error_object(exc))
        finally:
            self._open -= 1
        connection.post(frame)
