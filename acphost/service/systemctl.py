"""acphost under a systemd user manager, by way of systemctl."""

import os
from collections.abc import Mapping
from pathlib import Path

from acphost.errors import AgentUnavailableError, AlreadyRunningError
from acphost.service.manager import (
    ServiceError,
    ServiceState,
    remove,
    remove_empty,
    write_changed,
)
from acphost.service.plan import Plan
from acphost.service.systemd import SERVICE, SOCKET, assigned, unit_folder, units
from acphost.transport.command import Completed, run_command
from acphost.transport.lock import lock_holder

_SHOWN = (
    "LoadState",
    "ActiveState",
    "SubState",
    "MainPID",
    "NRestarts",
    "StatusText",
    "Result",
    "ExecMainStatus",
)
#: What `systemctl is-system-running` says where units can be started.
_ALIVE = {"initializing", "starting", "running", "degraded", "maintenance"}
_NO_MANAGER = (
    "no systemd user manager answers here ({said}). Log in as this user (over ssh, say) instead of"
    " su or sudo, or have it run without a login by `loginctl enable-linger`; where there is no"
    " systemd, keep `acphost serve` running by other means"
)


class Systemd:
    """The user manager of this user."""

    name = "systemd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        runtime = Path("/run/user") / str(os.getuid())
        # Lost on the way through su or cron; the manager is there all the same.
        if not environ.get("XDG_RUNTIME_DIR") and runtime.is_dir():
            self._environ["XDG_RUNTIME_DIR"] = str(runtime)
        self.folder = unit_folder(environ)

    def files(self, plan: Plan) -> dict[Path, bytes]:
        """Both units."""
        return {self.folder / name: text.encode() for name, text in units(plan).items()}

    async def check(self) -> None:
        """Raises ServiceError if no user manager answers."""
        try:
            answer = await self._ask("is-system-running")
        except AgentUnavailableError as exc:
            raise ServiceError(_NO_MANAGER.format(said="there is no systemctl")) from exc
        if answer.stdout.strip() not in _ALIVE:
            raise ServiceError(_NO_MANAGER.format(said=answer.said or "it says nothing"))

    async def install(self, plan: Plan) -> list[Path]:
        """Units written, enabled and started; a service that runs as written is left alone."""
        await self.check()
        await self._check_alone(plan)
        changed = write_changed(self.files(plan))
        await self._tell("daemon-reload")
        await self._tell("enable", "--quiet", SERVICE, SOCKET)
        await self._ask("reset-failed", SERVICE, SOCKET)
        if changed:
            # A socket unit takes a new place only while its service is down.
            await self._tell("stop", SERVICE, SOCKET)
        await self._tell("start", SOCKET)
        await self._tell("start", SERVICE)
        return changed

    async def _check_alone(self, plan: Plan) -> None:
        """systemd would take the path away from a daemon that somebody runs by hand."""
        holder = lock_holder(plan.state_dir)
        if holder is not None and holder != (await self.state()).pid:
            raise AlreadyRunningError(
                f"a daemon runs outside of the service (pid {holder}); `acphost stop` ends it",
                pid=holder,
            )

    async def start(self) -> bool:
        """The service, where there is one."""
        if not (self.folder / SERVICE).exists():
            return False
        await self.check()
        await self._tell("start", SERVICE)
        return True

    async def uninstall(self) -> list[Path]:
        """Stopped, forgotten and removed."""
        paths = [self.folder / name for name in (SERVICE, SOCKET)]
        if any(path.exists() for path in paths):
            await self.check()
            # First the socket: whoever connects meanwhile would start the service again.
            listens = await self._show("Listen", SOCKET)
            await self._tell("stop", SOCKET)
            await self._tell("stop", SERVICE)
            await self._tell("disable", "--quiet", SERVICE, SOCKET)
            socket = listens.get("Listen", "").removesuffix(" (Stream)")
            if socket.startswith("/"):
                remove_empty(Path(socket).parent)
        gone = remove(paths)
        if gone:
            await self._tell("daemon-reload")
            await self._ask("reset-failed", SERVICE, SOCKET)
            remove_empty(self.folder, above=2)
        return gone

    async def state(self) -> ServiceState:
        """As `systemctl show` has it."""
        paths = [self.folder / name for name in (SERVICE, SOCKET)]
        shown = await self._show(",".join(_SHOWN), SERVICE)
        socket = await self._show("ActiveState", SOCKET)
        is_known = shown.get("LoadState") == "loaded"
        return ServiceState(
            manager=self.name,
            installed=all(path.exists() for path in paths),
            files=[str(path) for path in paths if path.exists()],
            state=shown.get("ActiveState") if is_known else None,
            socket_state=socket.get("ActiveState") if is_known else None,
            pid=_positive(shown.get("MainPID")),
            restarts=_number(shown.get("NRestarts")) if is_known else None,
            status=shown.get("StatusText") or None,
            result=shown.get("Result") if is_known else None,
            exit_code=_number(shown.get("ExecMainStatus")) if is_known else None,
        )

    def captured_path(self) -> str | None:
        """As the unit has it."""
        try:
            return assigned((self.folder / SERVICE).read_text(), "PATH")
        except OSError:
            return None

    def log_command(self, *, lines: int, follow: bool) -> list[str]:
        """journalctl; the time is in each line already."""
        command = ["journalctl", "--user", "--unit", SERVICE, "--output", "cat", "--no-pager"]
        return [*command, "--lines", str(lines), *(["--follow"] if follow else [])]

    async def _show(self, properties: str, unit: str) -> dict[str, str]:
        answer = await self._ask("show", "--property", properties, unit)
        pairs = (line.partition("=") for line in answer.stdout.splitlines())
        return {name: value for name, _, value in pairs}

    async def _tell(self, *words: str) -> None:
        answer = await self._ask(*words)
        if answer.code:
            raise ServiceError(
                f"systemctl --user {' '.join(words)} failed: {answer.said}; "
                "`acphost service logs` may say why"
            )

    async def _ask(self, *words: str) -> Completed:
        return await run_command(["systemctl", "--user", *words], self._environ, patience=400)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _positive(text: str | None) -> int | None:
    return _number(text) or None
