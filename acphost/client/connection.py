"""One live socket to the daemon, from the handshake to its loss."""

from collections.abc import Callable
from math import inf
from typing import Protocol

import anyio
import msgspec

from acphost.client.failures import host_error
from acphost.client.params import Params, lean
from acphost.errors import (
    AcpHostError,
    ConnectionLostError,
    FrameTooLongError,
    ProtocolError,
    RemoteError,
    TooLargeError,
)
from acphost.rpc.codec import Repaired, decode_message, encode_request
from acphost.rpc.framing import LineFramer
from acphost.rpc.nesting import UNLIMITED
from acphost.rpc.pending import Answer, Pending
from acphost.transport.socket_stream import SocketStream
from acphost.wire.daemon import InitializeResult
from acphost.wire.jsonrpc import Failure, Notification, Request, Success
from acphost.wire.params import InitializeParams

#: Of one line from the daemon; only a guard against a peer that is not one.
MAX_LINE = 1 << 28
#: Requests wait their turn while so much is still unwritten.
OUTBOX_BYTES = 1 << 20

OnAnswer = Callable[[Answer], None]


class Receiver(Protocol):
    """Who is told what the daemon says by itself; called in wire order, must not block."""

    def on_notification(self, notification: Notification) -> None:
        """The daemon told something."""

    def on_request(self, connection: "Connection", request: Request) -> None:
        """The daemon asks; the answer goes back over this connection and no other."""


class Connection:
    """Frames out by one writer, frames in by one reader; an answer is settled in wire order."""

    def __init__(self, stream: SocketStream, receiver: Receiver) -> None:
        self._stream = stream
        self._pending = Pending()
        self._receiver = receiver
        self._framer = LineFramer(MAX_LINE)
        self._outbox, self._frames = anyio.create_memory_object_stream[bytes](inf)
        self._unwritten = 0
        self._room = anyio.Event()
        self._closed = False
        self._max_frame: int | None = None

    async def handshake(self, params: InitializeParams) -> InitializeResult:
        """Say hello and wait for the answer; nothing else may be sent before.

        Raises UnsupportedVersionError, ConnectionLostError.
        """
        answers: list[Answer] = []
        request_id = self._pending.register(answers.append)
        await self._stream.send(encode_request(request_id, "initialize", lean(params)))
        while not answers:
            if not await self._read():
                raise ConnectionLostError("the daemon closed the connection during the handshake")
        result = msgspec.json.decode(_result(answers[0]), type=InitializeResult)
        self._max_frame = result.limits.max_line_bytes
        return result

    async def run(self) -> None:
        """Read and write until the connection ends.

        It is closed then, and everybody who waits for an answer has a ConnectionLostError.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write)
                while await self._read():
                    pass
                tasks.cancel_scope.cancel()
        finally:
            self.close()

    def close(self) -> None:
        """End the connection; whoever waits for an answer or for room is told."""
        if self._closed:
            return
        self._closed = True
        self._pending.fail_all(ConnectionLostError("the connection to the daemon was lost"))
        self._room.set()
        self._stream.close()
        self._outbox.close()
        self._frames.close()

    def post(self, frame: bytes) -> None:
        """Put one frame behind those that wait; never blocks, dropped once the connection is gone.

        For what is bounded elsewhere: answers, and the opening and closing of subscriptions.
        """
        if not self._closed:
            self._unwritten += len(frame)
            self._outbox.send_nowait(frame)

    def call(self, method: str, params: Params, on_answer: OnAnswer) -> int:
        """Send a request; `on_answer` runs in wire order, before what follows the answer is read.

        Raises ConnectionLostError, TooLargeError.
        """
        if self._closed:
            raise ConnectionLostError("the connection to the daemon is closed")
        request_id = self._pending.register(on_answer)
        frame = encode_request(request_id, method, lean(params))
        if self._max_frame is not None and len(frame) > self._max_frame:
            self._pending.abandon(request_id)
            raise TooLargeError(
                f"{method} takes {len(frame)} bytes, the daemon reads {self._max_frame}"
            )
        self.post(frame)
        return request_id

    async def request(self, method: str, params: Params) -> msgspec.Raw:
        """Send a request and wait for its result.

        Raises the AcpHostError that the daemon answered with, ConnectionLostError, TooLargeError.
        """
        while self._unwritten > OUTBOX_BYTES and not self._closed:
            await self._room.wait()
        answers: list[Answer] = []
        answered = anyio.Event()

        def on_answer(answer: Answer) -> None:
            answers.append(answer)
            answered.set()

        request_id = self.call(method, params, on_answer)
        try:
            await answered.wait()
        finally:
            if not answers:
                self._pending.abandon(request_id)
        return _result(answers[0])

    async def _write(self) -> None:
        try:
            async for frame in self._frames:
                await self._stream.send(frame)
                self._unwritten -= len(frame)
                if self._unwritten <= OUTBOX_BYTES:
                    self._room.set()
                    self._room = anyio.Event()
        except ConnectionLostError:
            self._stream.close()  # ends the reader, which ends the connection

    async def _read(self) -> bool:
        """Take one chunk; False at the end."""
        try:
            chunk = await self._stream.receive()
        except ConnectionLostError:
            return False
        try:
            for line in self._framer.feed(chunk):
                self._take(line)
        except FrameTooLongError:
            return False
        return bool(chunk)

    def _take(self, line: bytes) -> None:
        try:
            message = decode_message(line, UNLIMITED)
        except ProtocolError:
            return  # not from a daemon of ours; whoever waits for it has a timeout
        match message.message if isinstance(message, Repaired) else message:
            case Success(id_, result):
                self._pending.settle(id_, result)
            case Failure(id_, error):
                data = None if error.data is msgspec.UNSET else bytes(error.data)
                self._pending.settle(id_, RemoteError(error.code, error.message, data))
            case Notification() as notification:
                self._receiver.on_notification(notification)
            case Request() as request:
                self._receiver.on_request(self, request)


def _result(answer: Answer) -> msgspec.Raw:
    if isinstance(answer, AcpHostError):
        raise host_error(answer)
    return answer
