"""The agent of a macOS user session, from the template that ships with acphost."""

import plistlib
from pathlib import Path
from typing import Any

from acphost.service.plan import Plan
from acphost.settings.places import shipped_folder

LABEL = "acphost"
#: What launchd itself and a program that cannot start have to say; the daemon has a log of its own.
OUTPUT_NAME = "launchd.log"
LOG_NAME = "daemon.log"


def agent(plan: Plan) -> bytes:
    """The property list.

    launchd shows no status and rotates no file: the daemon writes its own log, and only what comes
    before that goes where launchd puts it.
    """
    table: dict[str, Any] = plistlib.loads(
        (shipped_folder() / "launchd" / "acphost.plist").read_bytes()
    )
    log = str(plan.state_dir / LOG_NAME)
    table["ProgramArguments"] = [*plan.argv, "--log", log]
    table["EnvironmentVariables"] = dict(plan.environment)
    table["WorkingDirectory"] = str(Path.home())
    table["StandardOutPath"] = table["StandardErrorPath"] = str(plan.state_dir / OUTPUT_NAME)
    table["Sockets"]["Control"]["SockPathName"] = str(plan.socket)
    return plistlib.dumps(table, sort_keys=False)


def agent_file() -> Path:
    """Where launchd looks for it at login."""
    return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
