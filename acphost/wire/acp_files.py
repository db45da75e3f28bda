"""What agents ask of files and terminals (guide sections 5.7 and 5.8).

Here leniency has no place: a window that is misread gives the agent another part of the file.
"""

from typing import Annotated

from msgspec import Meta

from acphost.wire.base import AcpStruct

Positive = Annotated[int, Meta(ge=1, le=2**53)]


class ReadTextFile(AcpStruct, frozen=True):
    """`fs/read_text_file`; `line` counts from 1, `limit` lines."""

    session_id: str
    path: str
    line: Positive | None = None
    limit: Positive | None = None


class WriteTextFile(AcpStruct, frozen=True):
    """`fs/write_text_file`."""

    session_id: str
    path: str
    content: str


class EnvVariable(AcpStruct, frozen=True):
    """One variable; they travel as a list of pairs, not as an object."""

    name: Annotated[str, Meta(pattern=r"\A[^=\x00]+\Z")]
    value: Annotated[str, Meta(pattern=r"\A[^\x00]*\Z")]


class CreateTerminal(AcpStruct, frozen=True):
    """`terminal/create`."""

    session_id: str
    command: Annotated[str, Meta(pattern=r"\A[^\x00]+\Z")]
    args: list[Annotated[str, Meta(pattern=r"\A[^\x00]*\Z")]] | None = None
    env: list[EnvVariable] | None = None
    cwd: str | None = None
    output_byte_limit: Annotated[int, Meta(ge=0)] | None = None


class TerminalParams(AcpStruct, frozen=True):
    """`terminal/output`, `wait_for_exit`, `kill` and `release`."""

    session_id: str
    terminal_id: str


class ReadTextFileResult(AcpStruct, frozen=True, omit_defaults=False):
    """The answer to `fs/read_text_file`."""

    content: str


class WriteTextFileResult(AcpStruct, frozen=True):
    """The answer to `fs/write_text_file`: that it came says all."""


class ExitStatus(AcpStruct, frozen=True, omit_defaults=False):
    """How a command ended; of a signal only its name is told."""

    exit_code: int | None = None
    signal: str | None = None


class TerminalOutput(AcpStruct, frozen=True):
    """The answer to `terminal/output`."""

    output: str
    truncated: bool
    exit_status: ExitStatus | None = None
