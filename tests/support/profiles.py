"""A real daemon with a recorded agent: Hermes or Reasonix, quirks and all, without the program."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.support.config import Table
from tests.support.daemon import Daemon, running_daemon

FIXTURES = Path(__file__).parents[2] / "fixtures/agents"
PROFILES = {"hermes": "hermes-0.19", "reasonix": "reasonix-1.38"}


def hosted(
    runtime: str, *, agent: Table | None = None, host: Table | None = None, **variables: str
) -> AbstractAsyncContextManager[Daemon]:
    """A daemon whose agent `fake` plays a profile; `variables` are its `--set`."""

    def prepare(daemon: Daemon) -> None:
        script = FIXTURES / f"{PROFILES[runtime]}.script"
        command = [sys.executable, "-m", "acphost.demo.agent", str(script)]
        command += daemon.command()[-4:]
        for name, text in variables.items():
            command += ["--set", f"{name}={text}"]
        daemon.configure(agent={"runtime": runtime, "command": command, **(agent or {})})

    return running_daemon(host=host, prepare=prepare)
