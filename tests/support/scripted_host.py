"""A daemon of a few lines at the end of a real socket, so that a client can be tested alone.

Each connection plays one script, in the order in which they are given. Frames are read and written
with the standard library's json, as a second opinion on the client's own codec.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio.abc import SocketListener, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.patience import PATIENCE

STORE = "store_1"
_MAX_LINE = 1 << 24

Frame = dict[str, Any]


class Peer:
    """The daemon's end of one connection."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._reader = BufferedByteReceiveStream(stream)
        #: Every frame read so far.
        self.seen: list[Frame] = []

    async def read(self) -> Frame:
        """The next frame, whatever it is."""
        line = await self._reader.receive_until(b"\n", _MAX_LINE)
        frame: Frame = json.loads(line)
        self.seen.append(frame)
        return frame

    async def expect(self, method: str) -> Frame:
        """The next frame, which must be a request for `method`."""
        frame = await self.read()
        assert frame.get("method") == method, frame
        assert frame["jsonrpc"] == "2.0"
        return frame

    async def send(self, frame: Frame) -> None:
        """Write one frame."""
        await self.send_bytes(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    async def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        await self._stream.send(data)

    async def reply(self, request: Frame, result: object) -> None:
        """Answer a request."""
        await self.send({"id": request["id"], "result": result})

    async def fail(
        self, request: Frame, code: int, word: str | None = None, **data: object
    ) -> None:
        """Answer a request with an error."""
        error: Frame = {"code": code, "message": f"refused: {word}"}
        if word is not None:
            error["data"] = {"code": word, "retryable": False, **data}
        await self.send({"id": request["id"], "error": error})

    async def greet(self, *, store: str = STORE, client_id: str = "client_1") -> Frame:
        """Answer `initialize`; returns what the client said."""
        hello = await self.expect("initialize")
        await self.reply(
            hello,
            {
                "protocolVersion": 1,
                "schemaRevision": "test",
                "hostInfo": {"name": "scripted", "version": "0", "pid": 1},
                "storeId": store,
                "clientId": client_id,
                "actorId": "uid:0",
                "role": "user",
                "capabilities": {},
                "limits": {"maxLineBytes": 1 << 20, "maxInFlight": 8},
            },
        )
        return hello

    async def subscribed(self, subscription_id: str, *, head: int = 0) -> Frame:
        """Accept `events/subscribe`; returns its params."""
        request = await self.expect("events/subscribe")
        await self.reply(
            request,
            {"subscriptionId": subscription_id, "headSeq": None, "headOffset": position(head)},
        )
        params: Frame = request["params"]
        return params

    async def events(
        self, subscription_id: str, *offsets: int, caught_up: bool = False, padding: str = ""
    ) -> None:
        """Send one batch."""
        params: Frame = {
            "subscriptionId": subscription_id,
            "events": [event(offset, padding) for offset in offsets],
            "cursor": {"offset": position(offsets[-1]), "seq": position(offsets[-1])},
        }
        if caught_up:
            params["caughtUp"] = True
        await self.send({"method": "events", "params": params})

    async def closed(self) -> None:
        """Wait until the client has gone; whatever it still sends is kept in `seen`."""
        try:
            while True:
                await self.read()
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return


def position(number: int) -> str:
    """A seq or offset as it travels."""
    return f"{number:018d}"


def event(offset: int, padding: str = "") -> Frame:
    """An event that says its own number."""
    return {
        "schema": "mnote.ai_run_event.v1",
        "offset": position(offset),
        "seq": position(offset),
        "sessionId": "sess_1",
        "hostRunId": "run_1",
        "kind": "message.delta",
        "source": "acp",
        "payload": {"content": {"type": "text", "text": f"{offset}{padding}"}},
        "synthetic": False,
        "createdAt": "2026-01-01T00:00:00.000Z",
    }


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def scripted_host(*scripts: Script) -> AsyncGenerator[Path]:
    """A socket whose connections play `scripts`; one that has played its script is closed.

    The listener stays until the block ends, all of which takes at most `PATIENCE` seconds.
    """
    with TemporaryDirectory(prefix="ah", dir="/tmp") as folder, anyio.fail_after(PATIENCE):
        path = Path(folder) / "s"
        async with (
            await anyio.create_unix_listener(path, mode=0o600) as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_play, listener, scripts)
            yield path
            tasks.cancel_scope.cancel()


async def _play(listener: SocketListener, scripts: tuple[Script, ...]) -> None:
    for script in scripts:
        async with await listener.accept() as stream:
            await script(Peer(stream))
