"""The editor at the other end of stdio: its requests in, our answers, updates and questions out."""

import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw

from acphost.errors import (
    AcpHostError,
    FrameTooLongError,
    ProtocolError,
    RemoteError,
)
from acphost.frontdoor.failures import REQUEST_CANCELLED, failure_frame
from acphost.frontdoor.stdio import Stdio
from acphost.rpc.codec import (
    Repaired,
    decode_message,
    deserves_answer,
    encode_failure,
    encode_notification,
    encode_request,
    encode_success,
)
from acphost.rpc.framing import LineFramer
from acphost.rpc.pending import Answer, Pending
from acphost.wire.acp import lenient
from acphost.wire.base import AcpStruct
from acphost.wire.jsonrpc import (
    ErrorObject,
    Failure,
    Notification,
    Request,
    RequestId,
    Success,
)

#: Nothing more is taken from the daemon while the editor has so much unread.
OUTBOX_BYTES = 1 << 20
_WRITE_BYTES = 1 << 16
#: After the editor has closed its end: for answers that are under way, and to write them.
_LAST_ANSWERS = 0.4
_LAST_WRITES = 0.3

CANCEL = "$/cancel_request"


class _CancelParams(AcpStruct, frozen=True):
    request_id: RequestId


class Reply:
    """The answer to one request of the editor: given once, by whoever knows it."""

    def __init__(self, request_id: RequestId, editor: "Editor") -> None:
        self.request_id = request_id
        self._editor = editor
        self.is_given = False
        #: The session the request is about, for errors that should name it.
        self.session_id: str | None = None
        #: What `$/cancel_request` does; by itself it ends the work and says that.
        self.on_cancel: Callable[[], None] | None = None
        #: A prompt is waited for while its turn runs, and not when the editor goes away.
        self.is_long = False

    def give(self, result: object) -> None:
        """Answer with a result."""
        self._send(encode_success(self.request_id, result))

    def fail(self, exc: Exception) -> None:
        """Answer with an error."""
        self._send(failure_frame(self.request_id, exc, session_id=self.session_id))

    def refuse(self, error: ErrorObject) -> None:
        """Answer with this error."""
        self._send(encode_failure(self.request_id, error))

    def _send(self, frame: bytes) -> None:
        if not self.is_given:
            self.is_given = True
            self._editor.answered(self, frame)


#: Serves a request: answers it now or lets somebody do it later, or raises.
OnRequest = Callable[[str, Raw, Reply], Awaitable[None]]
#: Takes a notification.
OnNotification = Callable[[str, Raw], None]


class Editor:
    """One peer, one reader, one writer; whatever is written stands in the order of the calls."""

    def __init__(
        self,
        stdio: Stdio,
        framer: LineFramer,
        on_request: OnRequest,
        on_notification: OnNotification,
    ) -> None:
        self._stdio = stdio
        self._framer = framer
        self._on_request = on_request
        self._on_notification = on_notification
        self._pending = Pending()
        self._outbox: deque[bytes] = deque()
        self._unwritten = 0
        self._work = anyio.Event()
        self._room = anyio.Event()
        self._idle = anyio.Event()
        self._replies: dict[tuple[type, RequestId], tuple[Reply, anyio.CancelScope]] = {}
        self._tasks: TaskGroup | None = None

    # -- life -------------------------------------------------------------------------------------

    async def run(self, first: list[bytes]) -> None:
        """Serve the editor until its end of stdin, or until it does not read any more."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._write)
            for line in first:
                self._take(line)
            await self._read_all()
            await self._linger()
            tasks.cancel_scope.cancel()

    async def _read_all(self) -> None:
        try:
            while chunk := await self._stdio.receive():
                for line in self._framer.feed(chunk):
                    self._take(line)
                    # In the order of the wire: each request has begun before the next is read.
                    await anyio.lowlevel.checkpoint()
        except FrameTooLongError as exc:
            self.post(failure_frame(None, exc))
            return
        for line in self._framer.finish():
            self._take(line)

    async def _linger(self) -> None:
        """A script that only closed its end still gets the answers that are under way."""
        with anyio.move_on_after(_LAST_ANSWERS):
            while any(not reply.is_long for reply, _ in self._replies.values()):
                await self._idle.wait()
        with anyio.move_on_after(_LAST_WRITES):
            while self._unwritten:
                await self._room.wait()

    async def _write(self) -> None:
        while True:
            while not self._outbox:
                self._work = anyio.Event()
                await self._work.wait()
            some: list[bytes] = []
            size = 0
            while self._outbox and size < _WRITE_BYTES:
                some.append(self._outbox.popleft())
                size += len(some[-1])
            try:
                await self._stdio.send(b"".join(some))
            except OSError:
                # Nobody reads: the same as the end of stdin, which comes with it.
                assert self._tasks is not None, "it is written inside run"
                self._tasks.cancel_scope.cancel()
                return
            self._unwritten -= size
            self._room.set()
            self._room = anyio.Event()

    # -- in ---------------------------------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        try:
            decoded = decode_message(line)
        except ProtocolError as exc:
            if deserves_answer(line):
                self.post(failure_frame(None, exc))
            return
        match decoded.message if isinstance(decoded, Repaired) else decoded:
            case Success(id_, result):
                self._pending.settle(id_, result)
            case Failure(id_, error):
                data = None if error.data is UNSET else bytes(error.data)
                self._pending.settle(id_, RemoteError(error.code, error.message, data))
            case Notification(method, params) if method == CANCEL:
                self._cancel(params)
            case Notification(method, params):
                self._on_notification(method, params)
            case Request() as request:
                self._serve(request)

    def _serve(self, request: Request) -> None:
        assert self._tasks is not None, "requests are read inside run"
        reply = Reply(request.id, self)
        scope = anyio.CancelScope()
        self._replies[_key(request.id)] = reply, scope
        self._tasks.start_soon(self._answer, request, reply, scope)

    async def _answer(self, request: Request, reply: Reply, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self._on_request(request.method, request.params, reply)
            except AcpHostError as exc:
                reply.fail(exc)
            except Exception as exc:  # border: whatever a request runs into is its answer
                traceback.print_exception(exc, file=sys.stderr)
                reply.fail(exc)

    def _cancel(self, params: Raw) -> None:
        """`$/cancel_request`: what is not there any more, or never was, is ignored."""
        with suppress(msgspec.DecodeError):
            found = self._replies.get(_key(lenient(_CancelParams, params).request_id))
            if found is None:
                return
            reply, scope = found
            if reply.on_cancel is not None:
                reply.on_cancel()
            else:
                scope.cancel()
                reply.refuse(REQUEST_CANCELLED)

    # -- out --------------------------------------------------------------------------------------

    def answered(self, reply: Reply, frame: bytes) -> None:
        """Write the answer to a request; nobody can take it back any more."""
        self._replies.pop(_key(reply.request_id), None)
        self.post(frame)
        self._idle.set()
        self._idle = anyio.Event()

    def post(self, frame: bytes) -> None:
        """Write a frame behind those that wait."""
        self._outbox.append(frame)
        self._unwritten += len(frame)
        self._work.set()

    def notify(self, method: str, params: object) -> None:
        """Tell the editor something."""
        self.post(encode_notification(method, params))

    def ask(self, method: str, params: object, on_answer: Callable[[Answer], None]) -> int:
        """Ask the editor; its answer is handed on when it comes. Returns what `withdraw` takes."""
        request_id = self._pending.register(on_answer)
        self.post(encode_request(request_id, method, params))
        return request_id

    def withdraw(self, request_id: int) -> None:
        """Nobody wants that answer any more; one that comes all the same is ignored."""
        self._pending.abandon(request_id)
        self.notify(CANCEL, {"requestId": request_id})

    async def asked(self, method: str, params: object) -> Raw:
        """Ask the editor and wait. Raises RemoteError with its refusal."""
        answers: list[Answer] = []
        came = anyio.Event()

        def on_answer(answer: Answer) -> None:
            answers.append(answer)
            came.set()

        request_id = self.ask(method, params, on_answer)
        try:
            await came.wait()
        finally:
            if not answers:
                self.withdraw(request_id)
        if isinstance(answers[0], AcpHostError):
            raise answers[0]
        return answers[0]

    async def room(self) -> None:
        """Return when the editor has read enough of what it was told."""
        while self._unwritten > OUTBOX_BYTES:
            await self._room.wait()


def _key(request_id: RequestId) -> tuple[type, RequestId]:
    return type(request_id), request_id
