"""A daemon of the bench's own: its process, and its socket with plain lines."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.bench.report import BenchError

#: How the agent of the bench is started, here and below the bare loop.
AGENT = (sys.executable, "-I", str(Path(__file__).with_name("agent.py")))
_CONFIG = f"""\
[agents.bench]
command = {json.dumps(AGENT)}
process = "per_session"
"""
_PATIENCE = 30.0
_LOOK_AGAIN = 0.001


class Line:
    """A connection to the daemon: requests in a row, answered in a row."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(_PATIENCE)
        self.socket.connect(os.fspath(path))
        self._rest = b""
        self._asked = 0
        self.call("initialize", protocolVersion=1, clientInfo={"name": "bench"})

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """The result. Raises BenchError if it is an error."""
        self.ask(method, **params)
        return self.answer()

    def ask(self, method: str, **params: object) -> None:
        """Send a request; `answer` is to be called once for each."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        """The next result. Raises BenchError if it is an error."""
        while "id" not in (answer := self.read()):
            pass
        if "error" in answer:
            raise BenchError(f"a request was refused: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def read(self) -> dict[str, Any]:
        """The next message."""
        while b"\n" not in self._rest:
            data = self.socket.recv(1 << 16)
            if not data:
                raise BenchError("the daemon has hung up")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def subscribe(self, session_id: str) -> socket.socket:
        """Follow a session from now on; the socket belongs to whoever reads it from here."""
        self.call("events/subscribe", scope={"sessionId": session_id}, after="now")
        while not self.read().get("params", {}).get("caughtUp"):
            pass
        if self._rest:
            raise BenchError("an event came before its time")
        self.socket.settimeout(None)
        return self.socket

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class Daemon:
    """A running daemon. `line` is the bench's own connection, once `greet` has made one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.path = folder / "s"
        self.log = folder / "log"
        (folder / "config.toml").write_text(_CONFIG)
        self._lines: list[Line] = []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "acphost", "serve"),
                    *("--socket", str(self.path)),
                    *("--state-dir", str(folder / "state")),
                    *("--config", str(folder / "config.toml")),
                ],
                stderr=log,
            )

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    def wait_until_ready(self) -> None:
        """Return as soon as it takes connections. Raises BenchError if it does not come to that."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
                probe.connect(os.fspath(self.path))
                return
            time.sleep(_LOOK_AGAIN)
        said = self.log.read_text(errors="replace").strip()[-2000:]
        raise BenchError(f"the daemon did not start; it said: {said or 'nothing'}")

    def connect(self) -> Line:
        """A connection, closed with the daemon at the latest."""
        line = Line(self.path)
        self._lines.append(line)
        return line

    def warm_session(self, line: Line) -> str:
        """A session whose agent is up, and has answered once."""
        session = line.call("session/create", agentId="bench", cwd=str(self.folder))["sessionId"]
        self.finish(line, self.prompt(line, session, "hello"))
        return str(session)

    def prompt(self, line: Line, session_id: str, text: str) -> str:
        """Start a run; returns its id."""
        return self.prompt_all(line, [session_id], text)[0]

    def prompt_all(self, line: Line, session_ids: Sequence[str], text: str) -> list[str]:
        """Start a run in each session, all at once; returns their ids."""
        for session_id in session_ids:
            request_id = f"bench-{time.monotonic_ns()}"
            line.ask("run/create", requestId=request_id, sessionId=session_id, text=text)
        return [str(line.answer()["hostRunId"]) for _ in session_ids]

    def finish(self, line: Line, run_id: str) -> None:
        """Wait for the end of a run. Raises BenchError unless it is a good one."""
        run = line.call("run/wait", hostRunId=run_id, timeoutMs=int(_PATIENCE * 1000))
        if run["status"] != "completed":
            raise BenchError(f"a run is {run['status']}: {run['error']}")

    def end(self) -> None:
        """Have it gone."""
        for line in self._lines:
            line.close()
        for _ in range(2):  # the second signal asks it not to wait for turns
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(_PATIENCE / 2)
        self.process.kill()
        self.process.wait()


@contextmanager
def running(folder: Path) -> Iterator[Daemon]:
    """A daemon that takes connections, for the length of a block."""
    daemon = Daemon(folder)
    try:
        daemon.wait_until_ready()
        yield daemon
    finally:
        daemon.end()
