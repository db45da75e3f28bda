"""The service manager: whether it keeps the daemon, and whether it would do so right."""

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from acphost.doctor.finding import Diagnosis, Patient, fine, problem, warning
from acphost.errors import AcpHostError
from acphost.service.manager import ServiceManager, ServiceState
from acphost.service.plan import plan_service
from acphost.transport.command import run_command

_INSTALL = "`acphost service install` does it"


async def look_at_service(
    patient: Patient, manager: ServiceManager, program: list[str]
) -> AsyncIterator[Diagnosis]:
    """The installed service against what would be installed now."""
    try:
        state = await manager.state()
    except AcpHostError as exc:
        yield fine("service", f"no service manager to ask: {exc}")
        return
    if not state.installed:
        yield fine("service", f"not installed; {_INSTALL}")
        return
    yield _running(state)
    plan = plan_service(patient.flags, patient.environ, program)
    stale = [path for path, content in manager.files(plan).items() if not _is(path, content)]
    if stale:
        yield warning(
            "service",
            f"{', '.join(path.name for path in stale)}: program, PATH or places have changed since",
            "run `acphost service install` again",
        )
    if sys.platform == "linux":
        async for each in _lingering(patient):
            yield each


def _running(state: ServiceState) -> Diagnosis:
    if state.state in {"active", "running"}:
        return fine("service", f"{state.manager}: {state.state}, pid {state.pid}")
    if state.socket_state == "active":
        return fine("service", f"{state.manager}: {state.state}; its socket wakes it")
    told = f"{state.manager}: {state.state or 'not loaded'}"
    if state.result and state.result != "success":
        told += f" ({state.result}, exit code {state.exit_code})"
    return problem("service", told, "`acphost service logs` says why; then `service install`")


def _is(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


async def _lingering(patient: Patient) -> AsyncIterator[Diagnosis]:
    if shutil.which("loginctl") is None:
        return
    command = ["loginctl", "show-user", "--property", "Linger", "--value", "self"]
    try:
        answer = await run_command(command, patient.environ, patience=5)
    except (AcpHostError, TimeoutError):
        return
    if answer.stdout.strip() == "no":
        yield fine("service", "ends with your last login; `loginctl enable-linger` keeps it")
