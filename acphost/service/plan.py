"""What a service is to run, as the shell that installs it would run it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acphost.errors import StartError
from acphost.settings.load import load_sound_settings
from acphost.transport.paths import default_socket_path, default_state_dir

#: Variables that move the places where the daemon and its agents look for their files.
_PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
#: Flags and their variables, which become flags of the service.
_FLAGS = {
    "socket": "ACPHOST_SOCKET",
    "state_dir": "ACPHOST_STATE_DIR",
    "config": "ACPHOST_CONFIG",
}
_PROGRAM = "acphost"
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Absolute paths and captured variables: a service manager has neither our PATH nor our cwd."""

    argv: list[str]
    #: PATH first.
    environment: dict[str, str]
    #: More variables, in a file of the user's that need not exist.
    env_file: Path
    socket: Path
    #: Whether the socket is where this system has it without any setting.
    is_usual_socket: bool
    state_dir: Path


def plan_service(
    flags: Mapping[str, object], environ: Mapping[str, str], program: list[str]
) -> Plan:
    """The service for these flags and this environment. Raises StartError, ConfigError."""
    given = {name: _given(name, flags, environ) for name in _FLAGS}
    settings = load_sound_settings(flags=flags, environ=environ).settings
    usual = default_socket_path(environ)
    socket = Path(settings.socket or usual)
    words = [
        word
        for name, value in given.items()
        if value
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    plan = Plan(
        argv=[*program, "serve", *words],
        environment={"PATH": captured_path(environ)}
        | {name: environ[name] for name in _PLACES if environ.get(name, "").startswith("/")},
        env_file=Path(settings.folder) / "env",
        socket=socket,
        is_usual_socket=socket == usual,
        state_dir=Path(settings.state_dir or default_state_dir(environ)),
    )
    _check(plan)
    return plan


def _given(name: str, flags: Mapping[str, object], environ: Mapping[str, str]) -> str | None:
    named = flags.get(name) or environ.get(_FLAGS[name])
    return str(Path(str(named)).expanduser().absolute()) if named else None


def _check(plan: Plan) -> None:
    """No line of a unit may end early."""
    words = [*plan.argv, *plan.environment.values(), str(plan.socket), str(plan.env_file)]
    for word in words:
        if not word.isprintable():
            raise StartError(f"{word!r} cannot stand in a service: it has control characters")


def captured_path(environ: Mapping[str, str]) -> str:
    """The PATH of this shell, each absolute folder once: agents are found where they are now."""
    folders = environ.get("PATH", "").split(os.pathsep)
    kept = dict.fromkeys(folder for folder in folders if folder.startswith("/"))
    return os.pathsep.join(kept) or _FALLBACK_PATH


def own_program(argv0: str) -> list[str]:
    """The words that start this program from anywhere, as it was installed.

    Links are not followed: the one that a tool keeps in ~/.local/bin outlives an upgrade.
    """
    script = Path(argv0).absolute()
    for candidate in (script, Path(sys.executable).parent / _PROGRAM):
        if candidate.name == _PROGRAM and os.access(candidate, os.X_OK) and candidate.is_file():
            return [str(candidate)]
    # -P: the folder it is started in has no say in what is imported.
    return [sys.executable, "-P", "-m", _PROGRAM]
