"""A scripted editor: it starts the front door and speaks ACP with it, in its own few lines.

async with editor(daemon) as zed:
    session = await zed.new()
    answer = await zed.prompt(session, "hello")
"""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import Process

from tests.support.daemon import Daemon
from tests.support.patience import PATIENCE

Message = dict[str, Any]


class Editor:
    """One front door and the editor in front of it; `lines` is all that came, in order."""

    def __init__(self, process: Process, work: str) -> None:
        self.process = process
        self.work = work
        self.lines: list[bytes] = []
        self.messages: list[Message] = []
        self.stderr = b""
        self._next = 0
        self._came = anyio.Event()
        self.is_over = False

    # -- wires ------------------------------------------------------------------------------------

    async def read(self) -> None:
        """Take what comes until the front door has ended."""
        assert self.process.stdout is not None
        buffer = bytearray()
        async for chunk in self.process.stdout:
            buffer += chunk
            while b"\n" in buffer:
                line, _, rest = buffer.partition(b"\n")
                buffer = bytearray(rest)
                self.lines.append(bytes(line))
                self.messages.append(json.loads(line))
                self._tell()
        assert not buffer, f"half a line: {buffer!r}"
        self.is_over = True
        self._tell()

    async def read_stderr(self) -> None:
        """Keep what it complains about."""
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self.stderr += chunk

    def _tell(self) -> None:
        self._came.set()
        self._came = anyio.Event()

    async def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        await self.process.stdin.send(data)

    async def send(self, **message: object) -> None:
        """Write one message."""
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def ask(self, method: str, request_id: object = None, **params: object) -> object:
        """Send a request, without waiting for its answer; returns its id."""
        if request_id is None:
            self._next += 1
            request_id = self._next
        await self.send(id=request_id, method=method, params=params)
        return request_id

    async def notify(self, method: str, **params: object) -> None:
        """Send a notification."""
        await self.send(method=method, params=params)

    async def until(self, holds: Callable[[Message], bool], *, after: int = 0) -> Message:
        """The first message from `after` on for which it holds, waited for."""
        with anyio.fail_after(PATIENCE):
            while True:
                for message in self.messages[after:]:
                    if holds(message):
                        return message
                assert not self.is_over, f"the front door has ended: {self.stderr.decode()}"
                await self._came.wait()

    async def answer(self, request_id: object) -> Message:
        """The answer to a request."""
        return await self.until(
            lambda message: "method" not in message and message["id"] == request_id
        )

    def is_answered(self, request_id: object) -> bool:
        """Whether the answer is there."""
        return any("method" not in each and each["id"] == request_id for each in self.messages)

    async def call(self, method: str, **params: object) -> Message:
        """Send a request and return its answer, good or bad."""
        return await self.answer(await self.ask(method, **params))

    async def result(self, method: str, **params: object) -> Any:  # noqa: ANN401  it is JSON
        """The result of a request that must succeed."""
        answer = await self.call(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: object) -> Message:
        """The error of a request that must fail."""
        answer = await self.call(method, **params)
        assert "error" in answer, answer
        error: Message = answer["error"]
        return error

    # -- the protocol -----------------------------------------------------------------------------

    async def initialize(self, capabilities: object = None, **more: object) -> Message:
        """Shake hands."""
        result: Message = await self.result(
            "initialize",
            protocolVersion=1,
            clientCapabilities=capabilities or {},
            clientInfo={"name": "scripted", "version": "1"},
            **more,
        )
        return result

    async def new(self, **params: object) -> str:
        """A new session; returns its id."""
        given = {"cwd": self.work, "mcpServers": [], **params}
        session: str = (await self.result("session/new", **given))["sessionId"]
        return session

    async def load(self, session: str, method: str = "session/load", **params: object) -> Message:
        """Open a session that there is."""
        given = {"cwd": self.work, "mcpServers": [], **params}
        answer: Message = await self.result(method, sessionId=session, **given)
        return answer

    async def begin(self, session: str, text: str) -> object:
        """Send a prompt and return the id of the request."""
        return await self.ask(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}]
        )

    async def prompt(self, session: str, text: str) -> Message:
        """Send a prompt and wait for the end of its turn."""
        answer = await self.answer(await self.begin(session, text))
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    async def busy(self) -> tuple[str, object]:
        """A new session, and the prompt "wait" to whose agent it has said that it is working."""
        session = await self.new()
        request = await self.begin(session, "wait")
        await self.shows(session, "working")
        return session, request

    async def queued(self, daemon: Daemon, session: str) -> object:
        """Another prompt, once it waits behind the one that runs."""
        request = await self.begin(session, "hello")
        await daemon.until(session, lambda seen: seen.queued_count == 1, "one waits")
        return request

    async def question(self, after: int = 0) -> Message:
        """The next request for permission."""
        return await self.until(
            lambda message: message.get("method") == "session/request_permission", after=after
        )

    async def choose(self, question: Message, option: str | None) -> None:
        """Answer it; None: cancelled."""
        outcome: Message = {"outcome": "cancelled"}
        if option is not None:
            outcome = {"outcome": "selected", "optionId": option}
        await self.send(id=question["id"], result={"outcome": outcome})

    async def withdrawn(self, question: Message) -> None:
        """Wait until it is taken back."""
        await self.until(
            lambda message: (
                message.get("method") == "$/cancel_request"
                and message["params"] == {"requestId": question["id"]}
            )
        )

    # -- looking ----------------------------------------------------------------------------------

    def updates(self, session: str, after: int = 0) -> list[Message]:
        """What was told of a session."""
        return [
            message["params"]["update"]
            for message in self.messages[after:]
            if message.get("method") == "session/update"
            and message["params"]["sessionId"] == session
        ]

    def said(self, session: str, who: str = "agent", after: int = 0) -> str:
        """The text of `agent` or `user` in these updates."""
        return "".join(
            update["content"].get("text", "")
            for update in self.updates(session, after)
            if update["sessionUpdate"] == f"{who}_message_chunk"
        )

    async def shows(self, session: str, text: str, who: str = "agent", after: int = 0) -> None:
        """Wait until that text is there."""
        await self.until(lambda _: text in self.said(session, who, after))

    def place(self, request_id: object) -> int:
        """Where in `messages` an answer stands."""
        (place,) = [
            number
            for number, message in enumerate(self.messages)
            if "method" not in message and message["id"] == request_id
        ]
        return place

    # -- the end ----------------------------------------------------------------------------------

    async def close(self) -> int:
        """End of stdin; returns the exit code."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        with anyio.fail_after(PATIENCE):
            return await self.process.wait()


def front_door(*arguments: str) -> list[str]:
    """The command of the front door."""
    return [sys.executable, "-m", "acphost", "acp", *arguments]


@asynccontextmanager
async def editor(
    daemon: Daemon,
    *arguments: str,
    greet: bool = True,
    capabilities: object = None,
    environ: Mapping[str, str] | None = None,
    command: list[str] | None = None,
) -> AsyncGenerator[Editor]:
    """An editor for the length of the block, introduced unless told not to."""
    # A daemon that ends with its test is not to be started again.
    words = ["--socket", str(daemon.socket), "--agent", "fake", "--no-autostart", *arguments]
    async with await anyio.open_process(
        command or front_door(*words),
        env={**daemon.environ, **(environ or {})},
        cwd=daemon.folder,
        stderr=subprocess.PIPE,
    ) as process:
        opened = Editor(process, str(daemon.work))
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(opened.read)
            tasks.start_soon(opened.read_stderr)
            try:
                if greet:
                    await opened.initialize(capabilities)
                yield opened
            except Exception as exc:  # raised below: a task group would wrap it
                print(opened.stderr.decode())
                for line in opened.lines:
                    print(line.decode())
                failure = exc
            if process.returncode is None:
                process.kill()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
