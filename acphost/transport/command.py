"""A program that is run for what it prints: systemctl, journalctl, launchctl."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import anyio

from acphost.ids import mint
from acphost.transport.child import Child, ChildSpec, spawn

_GRACE = 1.0


class Completed(NamedTuple):
    """How it ended, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """Its complaint, or what else it printed, on one line."""
        return " ".join((self.stderr.strip() or self.stdout.strip()).split())


async def run_command(
    argv: Sequence[str], environ: Mapping[str, str], *, patience: float = 120.0
) -> Completed:
    """Run a program with nothing on its stdin; whatever it has started ends with it.

    Raises AgentUnavailableError if it cannot be started, TimeoutError if it does not end in time.
    """
    stdout = bytearray()
    with anyio.fail_after(patience):
        code, stderr = await follow_command(argv, environ, stdout.extend)
    return Completed(code, stdout.decode(errors="replace"), stderr)


async def follow_command(
    argv: Sequence[str], environ: Mapping[str, str], on_output: Callable[[bytes], object]
) -> tuple[int, str]:
    """Hand on what a program prints as it comes; returns its exit code and its complaints.

    Cancelled, it ends the program. Raises AgentUnavailableError if it cannot be started.
    """
    child = _start(argv, environ)
    stderr = bytearray()
    try:
        async with anyio.create_task_group() as readers:
            readers.start_soon(_read, child.read_stdout, on_output)
            readers.start_soon(_read, child.read_stderr, stderr.extend)
        end = await child.wait()
    finally:
        await child.stop(eof_grace=0, term_grace=_GRACE)
    code = end.code if end.code is not None else 128 + (end.signal or 0)
    return code, stderr.decode(errors="replace")


def _start(argv: Sequence[str], environ: Mapping[str, str]) -> Child:
    spec = ChildSpec(argv=argv, cwd=os.sep, env=environ, launch_id=mint("cmd"), drain_grace=0.5)
    child = spawn(spec)
    child.close_stdin()
    return child


async def _read(
    source: Callable[[], Awaitable[bytes]], on_output: Callable[[bytes], object]
) -> None:
    while data := await source():
        on_output(data)
