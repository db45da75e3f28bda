"""A client of the daemon's socket that stays the same while connections come and go."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import msgspec

from acphost.client.calls import Calls
from acphost.client.connection import Connection, OnAnswer
from acphost.client.notifications import Notifications
from acphost.client.params import Params
from acphost.client.questions import Questions
from acphost.client.subscription import BUFFER_BYTES, Subscription
from acphost.client.subscriptions import Subscriptions
from acphost.errors import (
    AcpHostError,
    ConnectionLostError,
    DaemonUnreachableError,
    ProtocolError,
)
from acphost.transport import dial
from acphost.wire.base import Position
from acphost.wire.daemon import InitializeResult
from acphost.wire.host import Cursor
from acphost.wire.jsonrpc import Notification, Request
from acphost.wire.params import InitializeParams, Scope, SubscribeParams

T = TypeVar("T")

#: Between two attempts to find a daemon that went away, in seconds.
FIRST_DELAY, LAST_DELAY = 0.05, 0.5


class State(StrEnum):
    """What became of the connection."""

    CONNECTED = "connected"
    LOST = "lost"
    GAVE_UP = "gave_up"


class Client(Calls):
    """Requests, subscriptions and answers over whichever connection there is; see `connect`."""

    def __init__(
        self,
        path: Path,
        hello: InitializeParams,
        patience: float | None,
        questions: Questions,
        on_state: Callable[[State], None] | None,
    ) -> None:
        self.path = path
        #: What the daemon does by itself besides events of subscriptions.
        self.notifications = Notifications()
        self._hello = hello
        self._patience = patience
        self._questions = questions
        self._on_state = on_state or (lambda _: None)
        self._info: InitializeResult | None = None
        self._connection: Connection | None = None
        self._failure: AcpHostError | None = None
        self._changed = anyio.Event()
        self._subscriptions = Subscriptions()

    # -- facts ------------------------------------------------------------------------------------

    @property
    def info(self) -> InitializeResult:
        """What the daemon said of itself when the connection at hand began."""
        assert self._info is not None
        return self._info

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection just now; without one requests wait for the next."""
        return self._connection is not None

    @property
    def store_id(self) -> str:
        """The journal that the daemon serves; cursors belong to it."""
        return self.info.store_id

    # -- requests ---------------------------------------------------------------------------------

    async def request(
        self, method: str, params: Params, result: type[T], *, repeat: bool = False
    ) -> T:
        """Call a method of the socket and decode its result; waits while there is no connection.

        With `repeat` it is sent again when the connection was lost before the answer came.
        Raises the daemon's error by its word, HostRemoteError for a word unknown here,
        ConnectionLostError, DaemonUnreachableError.
        """
        while True:
            connection = await self._ready()
            try:
                answer = await connection.request(method, params)
            except ConnectionLostError:
                # Its owner may not have noticed yet; nobody is to be given it any more.
                if self._connection is connection:
                    self._connection = None
                if not repeat or self._patience == 0:
                    raise
                continue
            try:
                return msgspec.json.decode(answer, type=result)
            except msgspec.DecodeError as exc:
                raise ProtocolError(f"{method}: cannot read the daemon's answer: {exc}") from exc

    async def _ready(self) -> Connection:
        while self._failure is None:
            if self._connection is not None:
                return self._connection
            await self._changed.wait()
        raise self._failure

    # -- subscriptions ----------------------------------------------------------------------------

    @asynccontextmanager
    async def subscribe(
        self,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        workspace_id: str | None = None,
        after: Literal["now"] | Cursor | Position | None = None,
        store_id: str | None = None,
        kinds: list[str] | None = None,
        max_latency_ms: int | None = None,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> AsyncGenerator[Subscription]:
        """Events of a session, a run, a workspace, or of everything where none is named.

        They begin behind `after`: a cursor, a seq (an offset where neither session nor run is
        named) or "now"; from the start without. `store_id` is the journal `after` was taken from.
        Raises the daemon's refusal, CursorForeignError among others.
        """
        everything = session_id is None and run_id is None and workspace_id is None
        by_seq = session_id is not None or run_id is not None
        given = SubscribeParams(
            scope=Scope(
                session_id=session_id,
                host_run_id=run_id,
                workspace_id=workspace_id,
                all=True if everything else None,
            ),
            store_id=store_id,
            kinds=kinds,
            max_latency_ms=max_latency_ms,
            **_beginning(after, by_seq=by_seq),
        )
        if self._failure is not None:
            raise self._failure
        subscription = Subscription(given, self, self._subscriptions, buffer_bytes)
        with self._subscriptions.keeping(subscription):
            await subscription.opening()
            yield subscription

    def call(self, method: str, params: Params, on_answer: OnAnswer) -> bool:
        """Send a request without waiting for room or answer; False if there is no connection."""
        if self._connection is None:
            return False
        try:
            self._connection.call(method, params, on_answer)
        except ConnectionLostError:
            return False
        return True

    # -- what the daemon says by itself -----------------------------------------------------------

    def on_notification(self, notification: Notification) -> None:
        """Hand events to their subscription, everything else to `notifications`."""
        if notification.method == "events":
            self._subscriptions.deliver(notification.params)
        else:
            self.notifications.put(notification)

    def on_request(self, connection: Connection, request: Request) -> None:
        """Have a question of the daemon answered, beside everything else."""
        self._questions.ask(connection, request)

    # -- connections ------------------------------------------------------------------------------

    async def dial(self) -> Connection:
        """Connect and introduce this client, under the identity it had before."""
        try:
            stream = await dial.connect(self.path)
        except DaemonUnreachableError as exc:
            raise DaemonUnreachableError(f"{exc}; start one with `acphost serve`") from exc
        connection = Connection(stream, self)
        hello = self._hello
        if self._info is not None:
            hello = msgspec.structs.replace(hello, client_id=self._info.client_id)
        greeted = False
        try:
            self._info = await connection.handshake(hello)
            greeted = True
        finally:
            if not greeted:
                connection.close()
        return connection

    async def keep_connected(self, connection: Connection) -> None:
        """Serve one connection after the other until the daemon stays away or refuses."""
        while True:
            self._connection = connection
            self._tell()
            self._subscriptions.open()
            self._on_state(State.CONNECTED)
            await connection.run()
            self._connection = None
            self._subscriptions.lost()
            try:
                connection = await self._redial()
            except AcpHostError as exc:
                self._end(exc)
                self._on_state(State.GAVE_UP)
                return

    async def _redial(self) -> Connection:
        if self._patience == 0:
            raise ConnectionLostError("the daemon closed the connection")
        self._on_state(State.LOST)
        delay = FIRST_DELAY
        with anyio.move_on_after(self._patience):
            while True:
                try:
                    return await self.dial()
                except AcpHostError as exc:
                    if not exc.retryable:
                        raise
                await anyio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)
        raise DaemonUnreachableError(
            f"the daemon at {self.path} went away and did not come back within"
            f" {self._patience:g} s; start one with `acphost serve`"
        )

    def close(self) -> None:
        """Nothing can be asked any more; whoever waits is told."""
        self._end(ConnectionLostError("this client is closed"))

    def _end(self, reason: AcpHostError) -> None:
        self._failure = self._failure or reason
        self._subscriptions.fail(self._failure)
        self._tell()

    def _tell(self) -> None:
        """Wake whoever waits for a connection."""
        self._changed.set()
        self._changed = anyio.Event()


def _beginning(after: Literal["now"] | Cursor | Position | None, *, by_seq: bool) -> dict[str, Any]:
    """`after` as the one of three members that says it."""
    match after:
        case None:
            return {}
        case "now":
            return {"after": "now"}
        case Cursor(seq=str(seq)) if by_seq:
            return {"after_seq": seq}
        case Cursor():
            return {"after_offset": after.offset}
        case _:
            return {"after_seq" if by_seq else "after_offset": after}
