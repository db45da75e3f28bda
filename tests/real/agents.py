"""The two real agents: where they are installed, the home each needs, how its tools are called."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.model import CONTEXT_TOKENS, MODEL, Call

_INSTALLED = Path(__file__).parents[2] / ".real"
_KEY = "stage-key"


@dataclass(frozen=True)
class Launch:
    """How an agent is started so that it touches nothing outside its own folder."""

    command: list[str]
    env: dict[str, str]


@dataclass(frozen=True)
class RealAgent:
    """One real agent and what its habits mean for a test."""

    name: str
    binary: Path
    #: Builds a private home for it: binary, folder, URL of the model.
    prepare: Callable[[Path, Path, str], Launch]
    #: The name of its tool for shell commands.
    shell_tool: str
    #: Whether it asks before every write, or only before those outside the workspace.
    asks_for_every_write: bool

    def __str__(self) -> str:
        return self.name

    def launch(self, folder: Path, url: str) -> Launch:
        """Build its home in `folder`; what it and its children write to TMPDIR stays there too."""
        home, scratch = folder / f"{self.name}-home", folder / f"{self.name}-tmp"
        home.mkdir(mode=0o700)
        scratch.mkdir()
        launch = self.prepare(self.binary, home, url)
        launch.env.update(HOME=str(home), TMPDIR=str(scratch))
        return launch

    def write(self, path: Path, content: str) -> Call:
        """A write, as a model asks for it."""
        return Call("write_file", {"path": str(path), "content": content})

    def read(self, path: Path) -> Call:
        """A read."""
        return Call("read_file", {"path": str(path)})

    def run(self, command: str) -> Call:
        """A shell command."""
        return Call(self.shell_tool, {"command": command})

    def mcp(self, server: str, tool: str, **arguments: object) -> Call:
        """A call of an MCP server's tool; both agents spell its name alike."""
        return Call(f"mcp__{server}__{tool}", arguments)

    @property
    def missing(self) -> str | None:
        """Why it cannot be used here, in one line; None if it can."""
        if self.binary.is_file() and os.access(self.binary, os.X_OK):
            return None
        return f"{self.name} is not installed: no {self.binary.relative_to(_INSTALLED.parent)}"


def _hermes_home(binary: Path, home: Path, url: str) -> Launch:
    # Without the probe, which runs pip several times, its first turn comes seconds earlier.
    config = f"""\
model:
  default: {MODEL}
  provider: custom
  base_url: {url}
  api_key: {_KEY}
agent:
  environment_probe: false
approvals:
  mode: manual
"""
    (home / "config.yaml").write_text(config, encoding="utf-8")
    return Launch([str(binary)], {"HERMES_HOME": str(home)})


def _reasonix_home(binary: Path, home: Path, url: str) -> Launch:
    secrets = home / ".env"
    secrets.write_text(f"STAGE_API_KEY={_KEY}\n", encoding="utf-8")
    secrets.chmod(0o600)
    config = f"""\
config_version = 1
default_model = "stage/{MODEL}"

[[providers]]
name = "stage"
kind = "openai"
base_url = "{url}"
models = ["{MODEL}"]
default = "{MODEL}"
api_key_env = "STAGE_API_KEY"
context_window = {CONTEXT_TOKENS}
"""
    (home / "config.toml").write_text(config, encoding="utf-8")
    return Launch([str(binary), "acp"], {"REASONIX_HOME": str(home)})


def _reasonix_platform() -> str:
    system = {"darwin": "darwin", "linux": "linux"}.get(sys.platform, sys.platform)
    machine = os.uname().machine
    return f"cli-{system}-" + {"x86_64": "x64", "aarch64": "arm64"}.get(machine, machine)


HERMES = RealAgent(
    name="hermes",
    binary=_INSTALLED / "hermes/bin/hermes-acp",
    prepare=_hermes_home,
    shell_tool="terminal",
    asks_for_every_write=True,
)

REASONIX = RealAgent(
    name="reasonix",
    # The program itself: the wrapper that npm puts into .bin adds a process that dies alone.
    binary=_INSTALLED / "reasonix/node_modules/@reasonix" / _reasonix_platform() / "bin/reasonix",
    prepare=_reasonix_home,
    shell_tool="bash",
    asks_for_every_write=False,
)

AGENTS = (HERMES, REASONIX)
