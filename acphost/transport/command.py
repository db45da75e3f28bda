"""A program that is run to its end for what it prints: systemctl, launchctl, ssh."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import anyio

from acphost.ids import mint
from acphost.transport.child import ChildSpec, spawn

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
    spec = ChildSpec(argv=argv, cwd=os.sep, env=environ, launch_id=mint("cmd"), drain_grace=0.5)
    child = spawn(spec)
    child.close_stdin()
    stdout, stderr = bytearray(), bytearray()

    async def read(source: Callable[[], Awaitable[bytes]], into: bytearray) -> None:
        while data := await source():
            into += data

    try:
        with anyio.fail_after(patience):
            async with anyio.create_task_group() as readers:
                readers.start_soon(read, child.read_stdout, stdout)
                readers.start_soon(read, child.read_stderr, stderr)
            end = await child.wait()
    finally:
        await child.stop(eof_grace=0, term_grace=_GRACE)
    code = end.code if end.code is not None else 128 + (end.signal or 0)
    return Completed(code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))
