"""A bare client of the socket: it sends whatever it is told to, right or wrong."""

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

from tests.support.patience import PATIENCE

Frame = dict[str, Any]


class Wire:
    """One connection, line by line."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._next = 0

    async def send(self, *frames: Frame) -> None:
        """Write frames, all of them at once."""
        await self.send_bytes(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    async def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        await self._stream.send(data)

    async def read(self) -> Frame:
        """The next frame."""
        with anyio.fail_after(PATIENCE):
            while b"\n" not in self._buffer:
                self._buffer += await self._stream.receive(1 << 20)
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        frame: Frame = json.loads(line)
        return frame

    async def call(self, method: str, params: object = None) -> Frame:
        """Send a request and return its answer; notifications in between are left out."""
        self._next += 1
        frame: Frame = {"jsonrpc": "2.0", "id": self._next, "method": method}
        if params is not None:
            frame["params"] = params
        await self.send(frame)
        return await self.answer(self._next)

    async def answer(self, request_id: object) -> Frame:
        """The answer to a request; frames before it are left out."""
        while True:
            frame = await self.read()
            if frame.get("id") == request_id and "method" not in frame:
                return frame

    async def result(self, method: str, params: object = None) -> Any:  # noqa: ANN401  it is JSON
        """The result of a call that must succeed."""
        answer = await self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: object = None) -> Frame:
        """The error of a call that must fail."""
        answer = await self.call(method, params)
        assert "error" in answer, answer
        error: Frame = answer["error"]
        return error

    async def closed(self) -> None:
        """Wait until the daemon has closed the connection."""
        with anyio.fail_after(PATIENCE):
            try:
                while True:
                    self._buffer += await self._stream.receive(1 << 20)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    async def end_sending(self) -> None:
        """Close our half only."""
        await self._stream.send_eof()

    def reset(self) -> None:
        """Go away without a word, what was not read thrown away."""
        raw = self._stream.extra(SocketAttribute.raw_socket)  # noqa: S610  no SQL anywhere
        raw.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def wire(path: Path, *, greet: bool = True, **hello: object) -> AsyncGenerator[Wire]:
    """A connection for the length of the block, introduced unless told not to."""
    with anyio.CancelScope(shield=True):  # anyio trips over being cancelled at a full backlog
        connected = await anyio.connect_unix(path)
    async with connected as stream:
        client = Wire(stream)
        if greet:
            client_info = {"name": "wire", "version": "1"}
            await client.result(
                "initialize", {"protocolVersion": 1, "clientInfo": client_info, **hello}
            )
        yield client
