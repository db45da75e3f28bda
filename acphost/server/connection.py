"""One client: its handshake, its requests side by side, its subscriptions, its end."""

from dataclasses import dataclass, field
from typing import Protocol

import anyio
import anyio.lowlevel
import msgspec
from anyio import CancelScope
from anyio.abc import TaskGroup

from acphost.errors import (
    AcpHostError,
    ConnectionLostError,
    InvalidRequestError,
    NotInitializedError,
    OverloadedError,
    ParseError,
    TooLargeError,
)
from acphost.log import get_logger
from acphost.rpc.codec import Repaired, decode_message, encode_failure, encode_success
from acphost.rpc.failures import error_object
from acphost.rpc.framing import LineFramer, Oversized
from acphost.server.outbox import Outbox
from acphost.server.reverse import ReverseCalls
from acphost.server.subscription import Subscription
from acphost.transport.unix import SocketStream
from acphost.wire.event import Origin
from acphost.wire.jsonrpc import Notification, Request, RequestId

log = get_logger()

#: What a client should wait before it tries again when its own requests pile up.
RETRY_AFTER_MS = 100
#: A line may have so many bytes as long as nobody has been introduced.
GREETING_BYTES = 1 << 20
#: Lines of one client that are taken before the others have their turn.
FAIR_SHARE = 32
#: Answers of megabytes that one client may have in the making.
LARGE_ANSWERS = 2
#: Sessions a client is remembered to have to do with; the least recent ones go first.
MAX_FOLLOWED = 1000
#: How long answers may still take to reach a client that has closed its side.
FLUSH_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is at the other end, as it introduced itself."""

    client_id: str
    actor_id: str
    client_name: str
    role: str
    answers_permissions: bool
    #: What it does for agents: `readTextFile`, `writeTextFile`.
    files: frozenset[str] = frozenset()

    @property
    def origin(self) -> Origin:
        """As events carry it."""
        return Origin(
            client_id=self.client_id, actor_id=self.actor_id, client_name=self.client_name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one client may ask of us."""

    max_line: int
    max_in_flight: int
    handshake_timeout: float


class Dispatcher(Protocol):
    """Who answers the requests."""

    async def call(
        self, connection: "ClientConnection", method: str, params: msgspec.Raw
    ) -> object:
        """The result of a method. Raises AcpHostError."""


@dataclass(slots=True)
class _Subscribed:
    subscription: Subscription
    scope: CancelScope


class ClientConnection:
    """A client on the socket."""

    def __init__(
        self, stream: SocketStream, dispatcher: Dispatcher, limits: ConnectionLimits
    ) -> None:
        self._stream = stream
        self._dispatcher = dispatcher
        self._limits = limits
        self._in_flight = 0
        self._idle = anyio.Event()
        self._greeted = anyio.Event()
        self._is_greeting = False
        self._scope: CancelScope | None = None
        #: Held while an answer is made that may have megabytes.
        self.large_answers = anyio.Semaphore(LARGE_ANSWERS)
        self.since = anyio.current_time()
        self._subscribed: dict[str, _Subscribed] = {}
        self._tasks: TaskGroup | None = None
        self.outbox = Outbox(stream)
        self.reverse = ReverseCalls(self.outbox)
        self.identity: Identity | None = None
        #: The sessions this client has to do with, and when it last had.
        self.followed: dict[str, float] = {}

    @property
    def peer_uid(self) -> int:
        """The user at the other end, as the kernel knows it."""
        return self._stream.peer_uid

    @property
    def origin(self) -> Origin:
        """Who causes what this connection does. Raises NotInitializedError."""
        return self.known.origin

    @property
    def known(self) -> Identity:
        """The client's identity. Raises NotInitializedError."""
        if self.identity is None:
            raise NotInitializedError("send `initialize` first")
        return self.identity

    def introduce(self, identity: Identity) -> None:
        """The handshake is done."""
        self.identity = identity
        self._greeted.set()

    def follow(self, session_id: str) -> None:
        """The client has to do with that session now."""
        self.followed.pop(session_id, None)
        self.followed[session_id] = anyio.current_time()
        if len(self.followed) > MAX_FOLLOWED:
            del self.followed[next(iter(self.followed))]

    # -- life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the client until it has gone or broken the protocol beyond repair."""
        async with anyio.create_task_group() as tasks:
            self._tasks, self._scope = tasks, tasks.cancel_scope
            tasks.start_soon(self.outbox.run)
            tasks.start_soon(self._await_greeting)
            try:
                await self._read_all()
            finally:
                # Who has closed its sending side cannot answer any more.
                self.reverse.close()
            await self._linger()
            tasks.cancel_scope.cancel()

    def shed(self, reason: AcpHostError) -> None:
        """End the connection to make room for another; the first reason is told, no second."""
        if self._scope is not None and self._scope.cancel_called:
            return
        self._fail(None, reason)
        if self._scope is not None:
            self._scope.cancel()

    async def _await_greeting(self) -> None:
        with anyio.move_on_after(self._limits.handshake_timeout):
            await self._greeted.wait()
            return
        # A client that was only slow, as its machine may be, is to come again.
        self.shed(OverloadedError(
            f"no `initialize` within {self._limits.handshake_timeout:g} s",
            retryAfterMs=RETRY_AFTER_MS,
        ))  # fmt: skip

    async def _read_all(self) -> None:
        framer = LineFramer(min(GREETING_BYTES, self._limits.max_line), discard=True)
        while chunk := await self._receive():
            for number, line in enumerate(framer.feed(chunk), 1):
                self._take(line)
                if self._is_greeting:
                    framer.allow(self._limits.max_line)
                if self.outbox.is_flooded:
                    await self.outbox.relief()
                elif not number % FAIR_SHARE:
                    await anyio.lowlevel.checkpoint()
        for line in framer.finish():
            self._take(line)

    async def _receive(self) -> bytes:
        """What comes next; nothing is read from a client that does not read what it is told."""
        await self.outbox.relief()
        return b"" if self.outbox.is_broken else await self._stream.receive()

    async def _linger(self) -> None:
        """A client that only closed its sending side still gets its answers and its events."""
        while (self._in_flight or self._subscribed) and not self._is_peer_gone():
            # Nothing tells when it closes the other half as well: look from time to time.
            self._idle = anyio.Event()
            with anyio.move_on_after(FLUSH_GRACE):
                await self._idle.wait()
        with anyio.move_on_after(FLUSH_GRACE):
            await self.outbox.flushed()

    def _is_peer_gone(self) -> bool:
        """Tell a client that closed altogether from one that only has nothing more to ask."""
        try:
            self._stream.try_send(b"")
        except ConnectionLostError:
            return True
        return self.outbox.is_broken

    # -- requests ---------------------------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        if isinstance(line, Oversized):
            limit = self._limits.max_line
            if not self._is_greeting:
                limit = min(GREETING_BYTES, limit)
            self._fail(None, TooLargeError(f"a line may have {limit} bytes at most", limit=limit))
            return
        try:
            decoded = decode_message(line)
        except (ParseError, InvalidRequestError) as exc:
            self._fail(None, exc)
            return
        if isinstance(decoded, Repaired):
            self._refuse_damaged(decoded)
        elif isinstance(decoded, Request):
            self._accept(decoded)
        elif not isinstance(decoded, Notification) and not self.reverse.settle(decoded):
            log.debug("stray_response", client=self.identity and self.identity.client_id)

    def _refuse_damaged(self, repaired: Repaired) -> None:
        """An agent's damaged text is kept; a client is told, or its words would be changed."""
        message = repaired.message
        request_id = message.id if isinstance(message, Request) else None
        self._fail(request_id, ParseError("the line is not strict JSON in valid UTF-8"))

    def _accept(self, request: Request) -> None:
        if self._in_flight >= self._limits.max_in_flight:
            self._fail(request.id, OverloadedError(
                f"{self._in_flight} requests of this connection are open",
                retryAfterMs=RETRY_AFTER_MS,
            ))  # fmt: skip
            return
        assert self._tasks is not None, "requests are read inside run"
        self._is_greeting = self._is_greeting or request.method == "initialize"
        self._in_flight += 1
        self._tasks.start_soon(self._serve, request)

    async def _serve(self, request: Request) -> None:
        try:
            # An answer that nobody reads would only be kept in memory.
            await self.outbox.relief()
            result = await self._dispatcher.call(self, request.method, request.params)
            self.outbox.put(encode_success(request.id, result))
        except Exception as exc:  # border: whatever a request runs into is its answer
            self._fail(request.id, exc)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _fail(self, request_id: RequestId, exc: Exception) -> None:
        self.outbox.put(encode_failure(request_id, error_object(exc)))

    # -- subscriptions ----------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        """Start a subscription; its first event follows the answer that this step puts."""
        assert self._tasks is not None, "requests are read inside run"
        entry = _Subscribed(subscription, anyio.CancelScope())
        self._subscribed[subscription.id] = entry
        self._tasks.start_soon(self._carry, entry)

    async def _carry(self, entry: _Subscribed) -> None:
        with entry.scope:
            await entry.subscription.run()
        self._subscribed.pop(entry.subscription.id, None)

    def unsubscribe(self, subscription_id: str) -> bool:
        """End a subscription; whether there was one."""
        entry = self._subscribed.pop(subscription_id, None)
        if entry is None:
            return False
        entry.scope.cancel()
        return True


@dataclass(slots=True)
class Attendance:
    """The clients that are connected now."""

    connections: set[ClientConnection] = field(default_factory=set)

    def anybody(self) -> bool:
        """Whether somebody is there who could answer a question."""
        return any(c.identity and c.identity.answers_permissions for c in self.connections)
