"""How OpenSSH is asked for a socket of another machine: arguments and answers, nothing run."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from acphost.errors import DaemonUnreachableError, SocketPathError

#: Another program than `ssh`, with options of its own, as in "ssh -F file".
PROGRAM_VARIABLE = "ACPHOST_SSH"

#: Never a question that nobody sees, never the connection of somebody else that may end.
_ALWAYS = (
    "BatchMode=yes",
    "ConnectTimeout=15",
    "ControlMaster=no",
    "ControlPath=none",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
)
#: A forwarding that cannot be had is an error, a line that is dead is found out in 15 seconds, and
#: what an ssh before this one left behind is replaced.
_FORWARDING = (
    "ExitOnForwardFailure=yes",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "StreamLocalBindUnlink=yes",
    "StreamLocalBindMask=0177",
    "ClearAllForwardings=no",
)
#: Asked of a shell there: its home, and the socket by acphost's own word or else by its rules.
#: The shell of the account may be any: all of it is one word for `sh`.
_QUESTION = r"""
printf "@home %s\n" "$PWD"
PATH=$PATH:$HOME/.local/bin
if told=$(acphost status --json 2>/dev/null); then
    printf "@status %s\n" "$told"
    exit
fi
folder=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
if [ -d "$folder" ]; then
    folder=$folder/acphost
else
    folder=${TMPDIR:-/tmp}/acphost-$(id -u)
fi
printf "@socket %s\n" "${ACPHOST_SOCKET:-$folder/acphost.sock}"
"""


class There(NamedTuple):
    """What is known of the other machine."""

    socket: str
    #: Where relative folders begin.
    home: str


class _Status(msgspec.Struct):
    socket: str


def program(environ: Mapping[str, str]) -> list[str]:
    """The words that ssh is called by."""
    return shlex.split(environ.get(PROGRAM_VARIABLE, "")) or ["ssh"]


def question(ssh: list[str], host: str) -> list[str]:
    """Ask where the socket is."""
    return [*ssh, "-T", *_options(_ALWAYS), "--", _checked(host), f"sh -c {shlex.quote(_QUESTION)}"]


def forwarding(ssh: list[str], host: str, here: Path, there: str) -> list[str]:
    """Have connections to the socket `here` arrive at the socket `there`."""
    if ":" in there or "\\" in there or not there.startswith("/"):
        raise SocketPathError(
            f"{there!r} cannot be forwarded: it must be absolute, without colon and backslash"
        )
    options = _options((*_ALWAYS, *_FORWARDING))
    return [*ssh, "-N", "-T", *options, "-L", f"{here}:{there}", "--", _checked(host)]


def _options(names: tuple[str, ...]) -> list[str]:
    return [word for name in names for word in ("-o", name)]


def _checked(host: str) -> str:
    """A host that is no option in disguise."""
    if not host or host.startswith("-"):
        raise DaemonUnreachableError(f"{host!r} is no host; name it as ssh does: [user@]host")
    return host


def answer(said: str) -> There:
    """What the shell there told; anything a login prints beside it is passed over.

    Raises DaemonUnreachableError if it told nothing.
    """
    told = dict(
        line[1:].split(" ", 1)
        for line in said.splitlines()
        if line.startswith(("@home ", "@status ", "@socket "))
    )
    socket = told.get("socket")
    if "status" in told:
        try:
            socket = msgspec.json.decode(told["status"], type=_Status).socket
        except msgspec.DecodeError as exc:
            raise DaemonUnreachableError(f"`acphost status` there is unreadable: {exc}") from exc
    if socket is None or "home" not in told:
        raise DaemonUnreachableError("the shell there does not say where the socket is; --socket")
    return There(socket, told["home"])
