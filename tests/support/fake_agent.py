"""The host's side of a fake agent that runs as a real process, in a few blocking calls."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE

Message = dict[str, Any]


class FakeAgent:
    """One process; every line it writes is kept in `lines`, in order."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._ids = iter(range(10_000))
        self._incoming: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._incoming.put(line)
        self._incoming.put(None)

    def join(self) -> None:
        """Wait for the last line; only a process that holds the pipe could keep it."""
        self._reader.join(PATIENCE)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **message: object) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def request(self, method: str, **params: object) -> int:
        number = next(self._ids)
        self.send(id=number, method=method, params=params)
        return number

    def prompt(self, session: str, text: str) -> int:
        return self.request(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}]
        )

    def cancel(self, session: str) -> None:
        self.send(method="session/cancel", params={"sessionId": session})

    def line(self) -> bytes | None:
        """The next line, None at the end of the output."""
        line = self._incoming.get(timeout=PATIENCE)
        if line is not None:
            self.lines.append(line)
        return line

    def message(self) -> Message:
        line = self.line()
        assert line is not None, "the agent closed its stdout"
        message: Message = json.loads(line)
        return message

    def answer(self, number: object) -> tuple[Message, list[Message]]:
        """The answer to a request, and every message that came before it."""
        before: list[Message] = []
        while True:
            message = self.message()
            if "method" not in message and message.get("id") == number:
                return message, before
            before.append(message)

    def until(self, kind: str) -> list[Message]:
        """Every message up to the first of a kind, that one included."""
        found: list[Message] = []
        while not found or kind_of(found[-1]) != kind:
            found.append(self.message())
        return found

    def choose(self, question: Message, option: str | None) -> None:
        """Answer a permission request; None: cancelled."""
        outcome: Message = {"outcome": "cancelled"}
        if option is not None:
            outcome = {"outcome": "selected", "optionId": option}
        self.send(id=question["id"], result={"outcome": outcome})

    def open(self, cwd: str = "/w") -> str:
        """Initialize and open a session; what follows the answer is not waited for."""
        self.answer(self.request("initialize", protocolVersion=1))
        return self.new(cwd)

    def new(self, cwd: str = "/w") -> str:
        answer, _ = self.answer(self.request("session/new", cwd=cwd, mcpServers=[]))
        session: str = answer["result"]["sessionId"]
        return session

    def end(self) -> int:
        """Close stdin and wait for the process; what it still says goes to `lines`."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        while self.line() is not None:
            pass
        return self.process.wait(PATIENCE)

    def stderr(self) -> bytes:
        """What it has said on stderr, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


@contextmanager
def playing(*arguments: str, **environment: str) -> Iterator[FakeAgent]:
    """A fake agent with these arguments; it is gone after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "acphost.demo.agent", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    agent = FakeAgent(process)
    try:
        yield agent
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        agent.join()  # nobody may read a stream that is being closed
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with suppress(OSError):  # what was not flushed has no reader any more
                stream.close()


def kind_of(message: Message) -> str:
    """One word for a message: the kind of an update, a method, or `answer`."""
    if "method" not in message:
        return "answer"
    update = message.get("params", {}).get("update")
    return str(update["sessionUpdate"] if isinstance(update, dict) else message["method"])


def texts(messages: list[Message]) -> str:
    """The text of the answer in these messages."""
    updates = [message["params"].get("update", {}) for message in messages if "params" in message]
    return "".join(
        update["content"]["text"]
        for update in updates
        if update.get("sessionUpdate") == "agent_message_chunk"
    )


def recorded(path: Path) -> list[Message]:
    """The lines of a record file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
