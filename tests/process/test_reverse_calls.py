"""What the daemon asks its clients: whom first, whose answer counts, and how long it waits."""

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import TaskGroup

from acphost.errors import ConnectionLostError, NotInitializedError, OverloadedError, RemoteError
from acphost.server.connection import (
    Attendance,
    ClientConnection,
    ConnectionLimits,
    Dispatcher,
    Identity,
)
from acphost.server.editors import ClientEditors
from acphost.transport.unix import SocketStream
from tests.support.patience import NEVER, PATIENCE

LIMITS = ConnectionLimits(max_line=1 << 20, max_in_flight=8, handshake_timeout=NEVER)
SESSION = "sess_1"


class Unanswered(Dispatcher):
    """No client asks anything here."""

    async def call(self, connection: ClientConnection, method: str, params: msgspec.Raw) -> object:
        raise AssertionError(method)


class Peer:
    """The other end: an editor that is told what to say."""

    def __init__(self, connection: ClientConnection, end: socket.socket) -> None:
        self.connection = connection
        self._stream = SocketStream(end)
        self._buffer = b""

    async def read(self) -> dict[str, Any]:
        """The next message."""
        with anyio.fail_after(PATIENCE):
            while b"\n" not in self._buffer:
                self._buffer += await self._stream.receive()
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    async def say(self, request_id: object, **body: object) -> None:
        """Answer something."""
        message = {"jsonrpc": "2.0", "id": request_id, **body}
        await self._stream.send(json.dumps(message).encode() + b"\n")

    def leave(self) -> None:
        """Close."""
        self._stream.close()


@asynccontextmanager
async def peer(
    attendance: Attendance, *offers: str, follows: str | None = SESSION
) -> AsyncGenerator[Peer]:
    """A client with these offers, introduced."""
    ours, theirs = socket.socketpair()
    connection = ClientConnection(SocketStream(ours), Unanswered(), LIMITS)
    connection.introduce(Identity("c", "a", "editor", "user", False, frozenset(offers)))
    if follows is not None:
        connection.follow(follows)
    attendance.connections.add(connection)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.run)
        yield Peer(connection, theirs)
        tasks.cancel_scope.cancel()
    ours.close()
    theirs.close()


async def editors(
    stack: AsyncExitStack, *offers: tuple[str, ...]
) -> tuple[ClientEditors, list[Peer], TaskGroup]:
    """Editors of the session, the first the longest."""
    attendance = Attendance()
    peers = [await stack.enter_async_context(peer(attendance, *some)) for some in offers]
    tasks = await stack.enter_async_context(anyio.create_task_group())
    return ClientEditors(attendance), peers, tasks


async def test_an_editor_is_asked_for_the_text_in_its_buffer() -> None:
    """The request is that of ACP, with the window as it was asked for."""
    async with AsyncExitStack() as stack:
        found, (editor,), tasks = await editors(stack, ("readTextFile",))
        texts: list[str | None] = []

        async def read() -> None:
            texts.append(await found.read(SESSION, "/a/b", 3, 2))

        tasks.start_soon(read)
        asked = await editor.read()
        await editor.say(asked["id"], result={"content": "unsaved"})

    assert asked["method"] == "fs/read_text_file"
    assert asked["params"] == {"sessionId": SESSION, "path": "/a/b", "line": 3, "limit": 2}
    assert texts == ["unsaved"]


async def test_the_next_editor_is_asked_when_one_does_not_have_the_file() -> None:
    """The last to do something comes first; an error, and an answer that is none, pass it on."""
    async with AsyncExitStack() as stack:
        offer = ("readTextFile",)
        found, (first, second, third), tasks = await editors(stack, offer, offer, offer)
        third.connection.follow(SESSION)
        texts: list[str | None] = []

        async def read() -> None:
            texts.append(await found.read(SESSION, "/a/b", None, None))

        tasks.start_soon(read)
        await third.say((await third.read())["id"], error={"code": -32002, "message": "not open"})
        await second.say((await second.read())["id"], result={"text": "?"})
        await first.say((await first.read())["id"], result={"content": "mine"})

    assert texts == ["mine"]


async def test_who_offers_nothing_or_follows_another_session_is_not_asked() -> None:
    async with AsyncExitStack() as stack:
        found, _, _ = await editors(stack, ("writeTextFile",), ())

        assert await found.read(SESSION, "/a/b", None, None) is None
        assert not await found.write("sess_2", "/a/b", "text")


async def test_an_answer_counts_only_from_the_connection_that_was_asked() -> None:
    """Another client that answers with the same id changes nothing."""
    async with AsyncExitStack() as stack:
        found, (stranger, editor), tasks = await editors(stack, (), ("writeTextFile",))
        taken: list[bool] = []

        async def write() -> None:
            taken.append(await found.write(SESSION, "/a/b", "text"))

        tasks.start_soon(write)
        asked = await editor.read()
        await stranger.say(asked["id"], error={"code": -32000, "message": "no"})
        await editor.say(str(asked["id"]), error={"code": -32000, "message": "wrong type"})
        await editor.say(asked["id"], result={})

    assert asked["params"] == {"sessionId": SESSION, "path": "/a/b", "content": "text"}
    assert taken == [True]


async def test_whoever_waits_for_a_client_is_told_when_it_goes() -> None:
    async with AsyncExitStack() as stack:
        _, (editor,), tasks = await editors(stack, ())
        outcomes: list[Exception] = []

        async def ask() -> None:
            try:
                await editor.connection.reverse.ask("fs/read_text_file", {}, patience=PATIENCE)
            except ConnectionLostError as exc:
                outcomes.append(exc)

        tasks.start_soon(ask)
        await editor.read()
        editor.leave()
        with anyio.fail_after(PATIENCE):
            while not outcomes:
                await anyio.lowlevel.checkpoint()
        with pytest.raises(ConnectionLostError):
            await editor.connection.reverse.ask("fs/read_text_file", {}, patience=PATIENCE)


async def test_a_silent_client_is_not_waited_for_beyond_the_patience() -> None:
    """An answer that comes too late is dropped, and the next question has another id."""
    async with AsyncExitStack() as stack:
        _, (editor,), tasks = await editors(stack, ())
        with pytest.raises(TimeoutError):
            await editor.connection.reverse.ask("x", {}, patience=0.01)
        late = await editor.read()
        errors: list[RemoteError] = []

        async def ask() -> None:
            try:
                await editor.connection.reverse.ask("x", {}, patience=PATIENCE)
            except RemoteError as exc:
                errors.append(exc)

        tasks.start_soon(ask)
        again = await editor.read()
        await editor.say(late["id"], result={})
        await editor.say(again["id"], error={"code": -32601, "message": "no such method"})

    assert again["id"] != late["id"]
    assert [(error.remote_code, str(error)) for error in errors] == [(-32601, "no such method")]


async def test_a_client_that_is_let_go_for_two_reasons_is_told_one() -> None:
    """Its time for a greeting is over in the moment in which it makes room for another."""
    ours, theirs = socket.socketpair()
    connection = ClientConnection(SocketStream(ours), Unanswered(), LIMITS)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.run)
        await anyio.wait_all_tasks_blocked()
        connection.shed(OverloadedError("many are connected"))
        connection.shed(NotInitializedError("no `initialize` within its time"))
    ours.close()
    with theirs:
        (line,) = theirs.recv(4096).splitlines()
        assert json.loads(line)["error"]["data"]["code"] == "overloaded"
        assert theirs.recv(4096) == b""
