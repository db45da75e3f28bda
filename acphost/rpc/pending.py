"""Our open requests: ids out, answers back, each settled once. No I/O."""

from collections.abc import Callable
from typing import Literal

import msgspec

from acphost.errors import AcpHostError
from acphost.wire.jsonrpc import RequestId

#: A result, or why there is none: RemoteError if the peer answered with an error.
Answer = msgspec.Raw | AcpHostError

#: Why an answer fits no open request.
Stray = Literal["repeated", "wrong_type", "unknown"]


class Pending:
    """Hands out ids and calls back once for each of them, synchronously."""

    def __init__(self) -> None:
        self._open: dict[int, Callable[[Answer], None]] = {}
        self._next = 1
        self._closed: AcpHostError | None = None

    def register(self, on_answer: Callable[[Answer], None]) -> int:
        """An id that was never used before on this connection.

        Raises what `fail_all` was given, once it was.
        """
        if self._closed is not None:
            raise self._closed
        request_id = self._next
        self._next += 1
        self._open[request_id] = on_answer
        return request_id

    def abandon(self, request_id: int) -> None:
        """Nobody waits any more; an answer that comes yet is `repeated`."""
        self._open.pop(request_id, None)

    def settle(self, request_id: RequestId, answer: Answer) -> bool:
        """Deliver an answer; False if nothing waits for it, `stray` tells why."""
        # Type and value: the keys are ints, and neither True nor 1.0 may pass for 1.
        if type(request_id) is not int:
            return False
        on_answer = self._open.pop(request_id, None)
        if on_answer is None:
            return False
        try:
            on_answer(answer)
        except Exception:
            # It is ours who failed, and nobody answers twice: `fail_all` ends the wait.
            self._open[request_id] = on_answer
            raise
        return True

    def stray(self, request_id: RequestId) -> Stray:
        """What is wrong with the id of an answer that was not settled."""
        if type(request_id) is int:
            return "repeated" if 0 < request_id < self._next else "unknown"
        return "wrong_type" if request_id in {str(number) for number in self._open} else "unknown"

    def fail_all(self, reason: AcpHostError) -> None:
        """Deliver `reason` to everybody who waits, oldest first; nothing can be registered then."""
        self._closed = reason
        waiting = list(self._open.values())
        self._open.clear()
        for on_answer in waiting:
            on_answer(reason)

    def __len__(self) -> int:
        return len(self._open)
