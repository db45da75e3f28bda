"""A real systemd user manager, in namespaces of its own, for a home that is a temporary folder.

Processes in it are seen by `run` (which enters the namespaces); files are shared.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANAGER = Path("/lib/systemd/systemd")
_PATIENCE = 30.0
_BOOT = """
mount --make-rprivate /
mount -t tmpfs none /run/systemd
mkdir -p /run/systemd/system
"$0" --user --log-target=console --log-level=info &
wait
"""


class UserManager:
    """Runs commands as the user of that manager would."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        self.home = folder / "home"
        self.runtime = folder / "run"
        self._process = process
        self._log = log
        self.environ = _environment(folder)
        #: The program that is under test.
        self.program = Path(sys.executable).parent / "acphost"

    @property
    def units(self) -> Path:
        """Where its units are."""
        return self.home / ".config" / "systemd" / "user"

    def log(self) -> str:
        """What manager and services have printed."""
        return self._log.read_text(errors="replace")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command inside."""
        inside = ["nsenter", "--target", str(self._inner()), "--mount", "--pid", "--cgroup", "--"]
        done = subprocess.run(
            [*inside, *command],
            env=self.environ, cwd=self.home, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command}: {done}\n{self.log()}"
        return done

    def acphost(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the program that is under test."""
        return self.run(str(self.program), *words, check=check)

    def systemctl(self, *words: str, check: bool = True) -> str:
        """Ask the manager."""
        return self.run("systemctl", "--user", "--no-pager", *words, check=check).stdout.strip()

    def shown(self, what: str, unit: str = "acphost.service") -> str:
        """A property of a unit."""
        return self.systemctl("show", "--property", what, "--value", unit)

    def until(self, what: str, value: str, unit: str = "acphost.service") -> None:
        """Wait until a property has a value."""
        end = time.monotonic() + _PATIENCE
        while (seen := self.shown(what, unit)) != value:
            assert time.monotonic() < end, f"{what} is {seen}, not {value}\n{self.log()}"
            time.sleep(0.05)

    def processes(self) -> list[str]:
        """Command lines of all that runs inside."""
        return self.run("ps", "-e", "-o", "args=").stdout.splitlines()

    def _inner(self) -> int:
        """A process of the namespaces: the first one."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return int(children.read_text().split()[0])

    def is_up(self) -> bool:
        """Whether it takes commands."""
        return (self.runtime / "systemd" / "private").exists()


def why_not() -> str | None:
    """Why no user manager can be had on this machine; None if it can."""
    missing = [name for name in ("unshare", "nsenter", "systemctl", "ps") if not shutil.which(name)]
    if missing or not MANAGER.exists():
        return f"no systemd user manager here: {', '.join(missing) or MANAGER} is not there"
    if os.geteuid() != 0:
        return "a systemd user manager of its own needs namespaces, which only root may make"
    probe = subprocess.run(
        ["unshare", "-m", "-C", "-p", "-f", "--mount-proc", "sh", "-c", "mount --make-rprivate /"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if probe.returncode == 0 else f"no namespaces here: {probe.stderr.strip()}"


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
        "LANG": "C.UTF-8",
    }


@contextmanager
def user_manager(folder: Path) -> Generator[UserManager]:
    """A manager, running; it and all it has started are gone after the block."""
    for name in ("home", "run"):
        (folder / name).mkdir(mode=0o700)
    log = folder / "manager.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["unshare", "-m", "-C", "-p", "-f", "--kill-child", "--mount-proc",
             "sh", "-c", _BOOT, str(MANAGER)],
            env=_environment(folder), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        manager = UserManager(folder, process, log)
        end = time.monotonic() + _PATIENCE
        while not manager.is_up():
            assert process.poll() is None, manager.log()
            assert time.monotonic() < end, manager.log()
            time.sleep(0.05)
        yield manager
    finally:
        process.kill()
        process.wait()
