"""What a service manager can be told, whichever it is."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from acphost.errors import StartError
from acphost.service.plan import Plan


class ServiceError(StartError):
    """The service manager does not do as it is told; the message says what it said."""

    word = "service_failed"


class ServiceState(msgspec.Struct, rename="camel", kw_only=True):
    """How the service fares."""

    manager: str
    installed: bool
    files: list[str]
    #: As the manager calls it: active, inactive, failed …; None if it does not know the service.
    state: str | None = None
    #: Of the socket, where that has a state of its own.
    socket_state: str | None = None
    pid: int | None = None
    restarts: int | None = None
    #: What the daemon says of itself.
    status: str | None = None
    #: Why it is not running, by the manager's word.
    result: str | None = None
    exit_code: int | None = None


class ServiceManager(Protocol):
    """systemd or launchd."""

    name: str

    def files(self, plan: Plan) -> dict[Path, bytes]:
        """What is written at installation, by place."""

    async def check(self) -> None:
        """Raises ServiceError, with the cure, if there is no manager for this user."""

    async def install(self, plan: Plan) -> list[Path]:
        """Write, load and start it; returns the files that changed. Raises ServiceError."""

    async def start(self) -> bool:
        """Start it where it is installed; whether it is. Raises ServiceError."""

    async def uninstall(self) -> list[Path]:
        """Stop it and remove all that `install` has made; returns the files that are gone."""

    async def state(self) -> ServiceState:
        """How it fares."""

    def captured_path(self) -> str | None:
        """The PATH that the installed service has; None if it is not installed."""

    def log_command(self, *, lines: int, follow: bool) -> list[str]:
        """The program that shows the log."""


def write_changed(files: Mapping[Path, bytes]) -> list[Path]:
    """Write what is not so already, each file at once; returns which."""
    changed = []
    for path, content in files.items():
        with suppress(OSError):
            if path.read_bytes() == content:
                continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f".{path.name}.new")
            fresh.write_bytes(content)
            fresh.chmod(0o644)
            fresh.replace(path)
        except OSError as exc:
            raise ServiceError(f"cannot write {path}: {exc.strerror}") from exc
        changed.append(path)
    return changed


def remove(paths: list[Path]) -> list[Path]:
    """Remove files that are there, and the folders that they leave empty; returns the files."""
    gone = []
    for path in paths:
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise ServiceError(f"cannot remove {path}: {exc.strerror}") from exc
        gone.append(path)
    return gone


def remove_empty(folder: Path, *, above: int = 0) -> None:
    """Remove a folder if nothing is in it, and so many above it likewise."""
    for each in (folder, *folder.parents)[: above + 1]:
        try:
            os.rmdir(each)  # noqa: PTH106  a folder with something in it stays
        except OSError:
            return
