"""A reading process at the end of a connected socket, seen from the bench."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.bench.report import BenchError

Mode = Literal["count", "stamps"]
_PROGRAM = Path(__file__).with_name("reader.py")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a subscriber saw: the time of the last event in ns, and the age of each in ms."""

    last: int
    ages: list[float]

    def rate(self, count: int, start: int) -> float:
        """Events a second since `start`."""
        return count * 1e9 / (self.last - start)


class Subscriber:
    """Takes the socket over and reads `wanted` events from it, in a process of its own."""

    def __init__(self, connection: socket.socket, mode: Mode, wanted: int) -> None:
        self._wanted = wanted
        descriptor = connection.fileno()
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), str(descriptor), mode, str(wanted)],
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
        )
        connection.close()

    def wait_until_ready(self) -> None:
        """Return when it reads. Raises BenchError."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise BenchError("a subscriber did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self._process.pid, signal.SIGCONT)

    def reading(self, patience: float = 60) -> Reading:
        """Wait for its end. Raises BenchError unless it has seen everything by then."""
        try:
            output, _ = self._process.communicate(timeout=patience)
            told = json.loads(output)
        except (subprocess.TimeoutExpired, ValueError) as exc:
            raise BenchError(f"a subscriber saw no end within {patience:g} s") from exc
        if told["seen"] != self._wanted:
            raise BenchError(f"a subscriber saw {told['seen']} of {self._wanted} events")
        return Reading(told["last"], told.get("ages", []))
