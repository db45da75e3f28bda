"""What the daemon asks of a client: requests that go the other way on the same connection."""

import anyio
import msgspec

from acphost.errors import AcpHostError, ConnectionLostError, RemoteError
from acphost.rpc.codec import encode_request
from acphost.rpc.pending import Answer, Pending
from acphost.server.outbox import Outbox
from acphost.wire.jsonrpc import Failure, Success


class ReverseCalls:
    """Requests to one client. Its answers alone settle them: ids of others mean nothing here."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._pending = Pending()

    async def ask(self, method: str, params: object, *, patience: float) -> msgspec.Raw:
        """The client's result.

        Raises RemoteError for its error, ConnectionLostError if it goes, TimeoutError after
        `patience` seconds; an answer that comes later than that is dropped.
        """
        if self._outbox.is_broken or not self._outbox.has_room:
            raise ConnectionLostError("the client does not read what it is told")
        answered = anyio.Event()
        box: list[Answer] = []

        def on_answer(answer: Answer) -> None:
            box.append(answer)
            answered.set()

        request_id = self._pending.register(on_answer)
        try:
            self._outbox.put(encode_request(request_id, method, params))
            with anyio.fail_after(patience):
                await answered.wait()
        finally:
            self._pending.abandon(request_id)
        if isinstance(box[0], AcpHostError):
            raise box[0]
        return box[0]

    def settle(self, answer: Success | Failure) -> bool:
        """Take an answer; False if nothing waits for it."""
        if isinstance(answer, Success):
            # A copy: what was read together lies in one buffer, which would be kept whole.
            return self._pending.settle(answer.id, answer.result.copy())
        error = answer.error
        data = bytes(error.data) if isinstance(error.data, msgspec.Raw) else None
        return self._pending.settle(answer.id, RemoteError(error.code, error.message, data))

    def close(self) -> None:
        """The client has gone: whoever waits is told."""
        self._pending.fail_all(ConnectionLostError("the client went away"))
