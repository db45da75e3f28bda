"""JSON-RPC with one agent process: every line is handed over synchronously, in wire order.

One task reads, one writes, one drains stderr. Reading never waits for writing; it waits only for
`room`, which is how a journal that cannot keep up reaches the agent (its pipe is not read).
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import anyio
import anyio.lowlevel
import msgspec
from msgspec import UnsetType

from acphost.errors import (
    AcpHostError,
    ConnectionLostError,
    FrameTooLongError,
    InvalidRequestError,
    MethodNotFoundError,
    ParseError,
    RemoteError,
)
from acphost.ids import Clock, ticks_ms
from acphost.provider.burst import read_updates
from acphost.provider.outbox import Outbox
from acphost.provider.secrets import Secrets
from acphost.provider.tail import Tail
from acphost.rpc.codec import (
    Repaired,
    decode_message,
    deserves_answer,
    encode_failure,
    encode_notification,
    encode_request,
    encode_success,
    verbatim_member,
)
from acphost.rpc.failures import error_object
from acphost.rpc.framing import LineFramer
from acphost.rpc.outline import outlined
from acphost.rpc.pending import Answer, Pending
from acphost.transport.child import Child, Exit
from acphost.wire.acp import SessionUpdate
from acphost.wire.jsonrpc import Failure, Message, Notification, Request, RequestId, Success

#: How long an agent that closed its stdout may take to leave before it is taken for a hung one.
EXIT_GRACE = 1.0
#: How long its last words on stderr are waited for after that.
STDERR_GRACE = 0.2
#: So many lines are read one by one where they cannot be read together.
FEW = 16
#: So many are taken before it is looked whether others have waited, and so long they may.
MANY, TURN_MS = 256, 10
#: The code of an answer of which only the id could be read.
_UNREADABLE = -32700


class AgentGoneError(ConnectionLostError):
    """The agent's process ended, or closed its stdout, with requests open."""

    def __init__(
        self,
        message: str,
        *,
        exit_: Exit | None,
        stderr: str,
        unheard: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(message, exitCode=exit_.code if exit_ else None, stderr=stderr)
        self.exit = exit_
        self.stderr = stderr
        #: Requests that were not written to their end: the agent cannot have acted on them.
        self.unheard = unheard


class Asked:
    """A request on its way, and its answer."""

    def __init__(self) -> None:
        #: None: the agent was gone already.
        self.id: int | None = None
        self.answered = anyio.Event()
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The answer, once `answered` is set."""
        assert self._answer is not None, "asked before it was answered"
        return self._answer

    def take(self, answer: Answer) -> None:
        """Called by the reader."""
        self._answer = answer
        self.answered.set()

    async def result(self) -> msgspec.Raw:
        """Wait for the result. Raises RemoteError, AgentGoneError."""
        await self.answered.wait()
        if isinstance(self.answer, AcpHostError):
            raise self.answer
        return self.answer


class Inbox(Protocol):
    """Who is told what the agent says. Nothing here may block: the reader waits for it."""

    def on_updates(self, updates: Sequence[SessionUpdate], at: int) -> None:
        """Updates that came in a row, in wire order."""

    def on_notification(
        self, method: str, params: msgspec.Raw, at: int, exact: bytes | None = None
    ) -> None:
        """Any other notification, and an update that stands alone.

        `exact`: the agent's own bytes, where `params` had to be mended to be read.
        """

    def on_request(self, request_id: RequestId, method: str, params: msgspec.Raw, at: int) -> None:
        """A request; it is answered by `answer` or `refuse`, now or later."""

    def on_stray(self, what: str, said: object, at: int) -> None:
        """An answer that nobody waits for, or a line (bytes) that is no protocol at all."""


class AgentConnection:
    """The protocol side of an agent process."""

    def __init__(
        self,
        child: Child,
        inbox: Inbox,
        *,
        max_line: int,
        now: Clock,
        room: Callable[[], Awaitable[None]],
        secrets: Secrets,
    ) -> None:
        self._child = child
        self._inbox = inbox
        self._now = now
        self._room = room
        self._framer = LineFramer(max_line)
        self._pending = Pending()
        self._outbox = Outbox(child, self._hang_up)
        self._listening = anyio.CancelScope()
        #: Why it is not listened to any more, where that is not its own doing.
        self._reason = ""
        self._stderr_ended = anyio.Event()
        self.secrets = secrets
        self.stderr = Tail(secrets.masked)
        #: What came on stdout and was no protocol: kept as a diagnostic, never shown as an answer.
        self.noise = Tail(secrets.masked)
        self.anomalies = 0
        #: When the last line came, by `ticks_ms`.
        self.last_activity = ticks_ms()
        self.gone: AgentGoneError | None = None

    # -- what we say ------------------------------------------------------------------------------

    def request(
        self, method: str, params: object, on_answer: Callable[[Answer], None]
    ) -> int | None:
        """Send a request; `on_answer` is called in wire order, with an error if the agent dies.

        Returns the id it went out with.
        """
        if self.gone:
            on_answer(self.gone)
            return None
        request_id = self._pending.register(on_answer)
        self._outbox.put(encode_request(request_id, method, params), request_id)
        return request_id

    async def call(self, method: str, params: object) -> msgspec.Raw:
        """Send a request and wait for its result. Raises RemoteError, AgentGoneError."""
        with self.asking(method, params) as asked:
            return await asked.result()

    @contextmanager
    def asking(self, method: str, params: object) -> Iterator["Asked"]:
        """Send a request; whoever leaves without its answer tells the agent so (guide rule 24)."""
        asked = Asked()
        asked.id = self.request(method, params, asked.take)
        try:
            yield asked
        finally:
            if asked.id is not None and not asked.answered.is_set() and self.gone is None:
                # A late answer is still read, and told from one that nobody asked for.
                self.notify("$/cancel_request", {"requestId": asked.id})

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._outbox.put(encode_notification(method, params))

    def send_line(self, line: bytes) -> None:
        """Send bytes that are no message, as only a probe does."""
        self._outbox.put(line)

    def answer(self, request_id: RequestId, result: object) -> None:
        """Answer a request of the agent."""
        self._outbox.put_reply(encode_success(request_id, result))

    def refuse(self, request_id: RequestId, error: Exception) -> None:
        """Answer a request of the agent with an error."""
        self._outbox.put_reply(encode_failure(request_id, error_object(error)))

    async def relief(self) -> None:
        """Wait until the agent has read most of what it was sent, or will never."""
        await self._outbox.relief()

    @property
    def unread_bytes(self) -> int:
        """What waits for the agent to read it."""
        return 0 if self.gone else self._outbox.unread

    def _hang_up(self, reason: str) -> None:
        """Listen no longer: the connection is over."""
        self._reason = self._reason or reason
        self._listening.cancel()

    # -- what the agent says ----------------------------------------------------------------------

    async def run(self) -> AgentGoneError:
        """Carry messages until the agent's stdout ends; returns how it went."""
        reason = "closed its stdout"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._outbox.write_all)
            tasks.start_soon(self._drain_stderr)
            try:
                with self._listening:
                    await self._read_all()
            except FrameTooLongError as exc:
                reason = f"sent a {exc}"
            reason = self._reason or reason
            exit_ = await self._exit()
            tasks.cancel_scope.cancel()
        gone = AgentGoneError(
            f"the agent {_how(exit_) or reason}", exit_=exit_, stderr=self.stderr.text(),
            unheard=self._outbox.unheard,
        )  # fmt: skip
        self.lose(gone)
        return gone

    def lose(self, gone: AgentGoneError) -> None:
        """The agent is out of reach: whoever waits for an answer has it now."""
        self.gone = gone
        self._outbox.close()
        self._pending.fail_all(gone)

    async def _exit(self) -> Exit | None:
        with anyio.move_on_after(EXIT_GRACE):
            exit_ = await self._child.wait()
            # The last words on stderr explain the exit; what it started may hold the pipe.
            with anyio.move_on_after(STDERR_GRACE):
                await self._stderr_ended.wait()
            return exit_
        return None

    async def _read_all(self) -> None:
        while chunk := await self._child.read_stdout():
            self.last_activity = ticks_ms()
            await self._take_chunk(self._framer.feed(chunk), self._now())
            if self._framer.error:
                raise self._framer.error
            await self._room()
        for line in self._framer.finish():
            self._take(line, self._now())

    async def _take_chunk(self, lines: Sequence[bytes], at: int) -> None:
        """What cannot be read together takes longer: others have their turn in between."""
        updates = read_updates(lines)
        if updates is not None:
            self._inbox.on_updates(updates, at)
            return
        began = ticks_ms()
        for start in range(0, len(lines), MANY):
            if ticks_ms() - began > TURN_MS:
                await anyio.lowlevel.checkpoint()
                began = ticks_ms()
            self._take_all(lines[start : start + MANY], at)

    def _take_all(self, lines: Sequence[bytes], at: int) -> None:
        updates = read_updates(lines)
        if updates is not None:
            self._inbox.on_updates(updates, at)
        elif len(lines) > FEW:
            # One line that is something else: most of the others can still be read together.
            middle = len(lines) // 2
            self._take_all(lines[:middle], at)
            self._take_all(lines[middle:], at)
        else:
            for line in lines:
                self._take(line, at)

    def _take(self, line: bytes, at: int) -> None:
        try:
            message = decode_message(line)
        except (ParseError, InvalidRequestError) as exc:
            self._take_unreadable(line, exc, at)
            return
        if isinstance(message, Repaired):
            self._take_repaired(message, at)
        else:
            self._dispatch(message, at)

    def _dispatch(self, message: Message, at: int) -> None:
        match message:
            case Notification():
                self._inbox.on_notification(message.method, message.params, at)
            case Request():
                self._inbox.on_request(message.id, message.method, message.params, at)
            case Success():
                self._settle(message, message.result, at)
            case Failure():
                error = message.error
                data = None
                if isinstance(error.data, msgspec.Raw):
                    data = self.secrets.masked_bytes(bytes(error.data))
                said = self.secrets.masked(error.message)
                self._settle(message, RemoteError(error.code, said, data), at)

    def _take_repaired(self, repaired: Repaired, at: int) -> None:
        """A line that had to be mended: what the journal keeps is still the agent's own bytes."""
        self.anomalies += 1
        message = repaired.message
        if repaired.lossy and isinstance(message, Notification):
            exact = verbatim_member(repaired.line, "params")
            self._inbox.on_notification(message.method, message.params, at, exact)
        else:
            self._dispatch(message, at)

    def _settle(self, message: Success | Failure, answer: Answer, at: int) -> None:
        if not self._pending.settle(message.id, answer):
            # Of an unknown request, or the second to one: it is told, and changes nothing (FR-5).
            self.anomalies += 1
            self._inbox.on_stray("stray_answer", message, at)

    def _take_unreadable(self, line: bytes, exc: ParseError | InvalidRequestError, at: int) -> None:
        """Noise, unless somebody waits on account of it: nobody may wait for ever."""
        self.anomalies += 1
        self.noise.feed(line + b"\n")
        self._inbox.on_stray("stdout_noise", line, at)
        id_, has_method, is_response = outlined(line)
        if is_response and not isinstance(id_, UnsetType):
            self._pending.settle(id_, RemoteError(_UNREADABLE, f"unreadable answer: {exc}"))
        elif has_method and not isinstance(id_, UnsetType):
            self._outbox.put_reply(encode_failure(id_, error_object(exc)))
        elif isinstance(exc, InvalidRequestError) and deserves_answer(line):
            self._outbox.put_reply(encode_failure(None, error_object(exc)))

    # -- pipes ------------------------------------------------------------------------------------

    async def _drain_stderr(self) -> None:
        while data := await self._child.read_stderr():
            self.stderr.feed(data)
        self._stderr_ended.set()


def method_not_found(method: str) -> MethodNotFoundError:
    """The answer to what this host does not offer."""
    return MethodNotFoundError(f"method not found: {method}")


def _how(exit_: Exit | None) -> str:
    if exit_ is None:
        return ""
    if exit_.signal is not None:
        return f"was ended by signal {exit_.signal}"
    return f"exited with code {exit_.code}"
