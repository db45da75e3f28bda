"""acphost as an agent of launchd, by way of launchctl."""

import os
import plistlib
import re
from collections.abc import Mapping
from pathlib import Path

from acphost.errors import AgentUnavailableError, AlreadyRunningError, SocketPathError
from acphost.service.launchd import LABEL, OUTPUT_NAME, agent, agent_file
from acphost.service.manager import (
    ServiceError,
    ServiceState,
    remove,
    remove_empty,
    write_changed,
)
from acphost.service.plan import Plan
from acphost.transport.command import Completed, run_command
from acphost.transport.lock import lock_holder
from acphost.transport.paths import default_state_dir
from acphost.transport.private import private_directory

_PID = re.compile(r"^\s*pid = (\d+)$", re.MULTILINE)
_STATE = re.compile(r"^\s*state = (.+)$", re.MULTILINE)
_EXIT = re.compile(r"^\s*last exit code = (\d+)", re.MULTILINE)


class Launchd:
    """The graphical session of this user."""

    name = "launchd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"

    def files(self, plan: Plan) -> dict[Path, bytes]:
        """The property list."""
        return {agent_file(): agent(plan)}

    async def check(self) -> None:
        """Raises ServiceError if this user has no graphical session."""
        try:
            answer = await self._ask("print", self._domain)
        except AgentUnavailableError as exc:
            raise ServiceError("there is no launchctl; keep `acphost serve` running") from exc
        if answer.code:
            raise ServiceError(f"launchd has no session for this user here: {answer.said}")

    async def install(self, plan: Plan) -> list[Path]:
        """Written, loaded and started. launchd makes the socket, but not the folders."""
        await self.check()
        holder = lock_holder(plan.state_dir)
        if holder is not None and holder != (await self.state()).pid:
            raise AlreadyRunningError(
                f"a daemon runs outside of the service (pid {holder}); `acphost stop` ends it",
                pid=holder,
            )
        private_directory(plan.state_dir)
        private_directory(plan.socket.parent, SocketPathError)
        changed = write_changed(self.files(plan))
        if changed:
            await self._ask("bootout", self._target)  # not loaded: nothing to do
            await self._tell("bootstrap", self._domain, str(agent_file()))
        await self._tell("kickstart", self._target)
        return changed

    async def start(self) -> bool:
        """The agent, where there is one."""
        if not agent_file().exists():
            return False
        await self._tell("kickstart", self._target)
        return True

    async def uninstall(self) -> list[Path]:
        """Unloaded and removed."""
        await self._ask("bootout", self._target)
        gone = remove([agent_file()])
        if gone:
            remove_empty(agent_file().parent)
        return gone

    async def state(self) -> ServiceState:
        """As `launchctl print` has it, whose words are no interface but all there is."""
        answer = await self._ask("print", self._target)
        told = answer.stdout if not answer.code else ""
        path = agent_file()
        pid, state, code = (found.search(told) for found in (_PID, _STATE, _EXIT))
        return ServiceState(
            manager=self.name,
            installed=path.exists(),
            files=[str(path)] if path.exists() else [],
            state=state[1] if state else None,
            pid=int(pid[1]) if pid else None,
            exit_code=int(code[1]) if code else None,
        )

    def captured_path(self) -> str | None:
        """As the property list has it."""
        try:
            found = plistlib.loads(agent_file().read_bytes())
            return str(found["EnvironmentVariables"]["PATH"])
        except (OSError, ValueError, KeyError, plistlib.InvalidFileException):
            return None

    def log_command(self, *, lines: int, follow: bool) -> list[str]:
        """What came before the daemon's own log."""
        path = default_state_dir(self._environ) / OUTPUT_NAME
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(path)]

    async def _tell(self, *words: str) -> None:
        answer = await self._ask(*words)
        if answer.code:
            raise ServiceError(f"launchctl {' '.join(words)} failed: {answer.said}")

    async def _ask(self, *words: str) -> Completed:
        return await run_command(["launchctl", *words], self._environ)
