"""The service under a real systemd user manager: from nothing to an answer, and back to nothing."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acphost.service.plan import plan_service
from acphost.service.systemd import units
from tests.support.user_manager import UserManager, user_manager, why_not

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def manager(short_dir: Path) -> Iterator[UserManager]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with user_manager(short_dir) as started:
        config = started.home / ".config" / "acphost"
        config.mkdir(parents=True)
        # What `service install` does not capture, as a person would add it.
        (config / "env").write_text(f"PYTHONPATH={started.environ['PYTHONPATH']}\n")
        yield started


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def agents(manager: UserManager) -> list[str]:
    return [line for line in manager.processes() if "acphost.demo.agent" in line]


def send(manager: UserManager, *words: str) -> str:
    return manager.acphost("send", "--agent", "demo", *words).stdout


def test_from_nothing_to_an_answer_and_back(manager: UserManager) -> None:
    """One command installs it; the demo agent answers; one command leaves the state folder only."""
    before = tree(manager.home)
    installed = manager.acphost("service", "install")
    assert "answers on" in installed.stdout
    assert manager.shown("ActiveState") == "active"
    assert manager.shown("StatusText").startswith("serving ")
    assert send(manager, "hello")
    again = manager.acphost("service", "install")
    assert "nothing to change" in again.stdout

    status = json.loads(manager.acphost("service", "status", "--json").stdout)
    assert (status["state"], status["socketState"], status["restarts"]) == ("active", "active", 0)

    manager.acphost("service", "uninstall")
    left = tree(manager.home) - before
    assert {path.split("/acphost")[0] for path in left if "/acphost" in path} == {".local/state"}
    assert not [path for path in left if ".config" in path]
    assert not list(manager.runtime.glob("acphost*"))
    assert not [line for line in manager.processes() if "acphost" in line]
    assert "was not installed" in manager.acphost("service", "uninstall").stdout


def test_whoever_connects_starts_it(manager: UserManager) -> None:
    """Stopped, it is gone with its agents; the socket stays, and the next command wakes it."""
    manager.acphost("service", "install")
    send(manager, "hello")
    assert agents(manager)
    manager.systemctl("stop", "acphost.service")
    assert manager.shown("Result") == "success"
    assert not [line for line in manager.processes() if "acphost" in line]
    assert (manager.runtime / "acphost" / "acphost.sock").is_socket()
    assert manager.acphost("service", "status").returncode == 0

    assert len(json.loads(manager.acphost("ls", "--json").stdout)["items"]) == 1
    assert manager.shown("ActiveState") == "active"


def test_a_daemon_that_hangs_is_started_again(manager: UserManager) -> None:
    """Stopped by a signal it sends no signs of life: systemd ends it, and starts a new one."""
    manager.acphost("service", "install")
    drop_in = manager.units / "acphost.service.d" / "quick.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nWatchdogSec=2\nRestartSec=100ms\n")
    manager.systemctl("daemon-reload")
    manager.systemctl("restart", "acphost.service")
    send(manager, "hello")
    manager.systemctl("kill", "--kill-whom", "main", "--signal", "STOP", "acphost.service")
    manager.until("NRestarts", "1")
    manager.until("ActiveState", "active")
    assert len(json.loads(manager.acphost("ls", "--json").stdout)["items"]) == 1


def test_a_killed_daemon_takes_its_agents_along(manager: UserManager) -> None:
    """kill -9: what was in its control group goes, and the next daemon goes on."""
    manager.acphost("service", "install")
    send(manager, "hello")
    assert agents(manager)
    manager.systemctl("kill", "--kill-whom", "main", "--signal", "KILL", "acphost.service")
    manager.until("NRestarts", "1")
    manager.until("ActiveState", "active")
    assert agents(manager) == []
    assert send(manager, "hello again")


def test_what_a_restart_cannot_cure_is_not_restarted(manager: UserManager) -> None:
    """A store that is refused: the service fails once, says why, and `status` exits with 1."""
    manager.acphost("service", "install")
    manager.systemctl("stop", "acphost.socket", "acphost.service")
    store = manager.home / ".local" / "state" / "acphost" / "journal.db"
    store.write_text("no store")
    manager.systemctl("start", "acphost.service", check=False)
    manager.until("ActiveState", "failed")
    assert manager.shown("NRestarts") == "0"
    assert manager.shown("ExecMainStatus") == "78"
    status = manager.acphost("service", "status", check=False)
    assert status.returncode == 1
    assert "exit code 78" in status.stdout


def test_a_daemon_that_runs_by_hand_is_not_robbed_of_its_socket(manager: UserManager) -> None:
    """systemd would simply take the path: the installation is refused instead."""
    program = Path(shutil.which("setsid") or "/usr/bin/setsid")
    manager.run("sh", "-c", f"{program} {_acphost()} serve >/dev/null 2>&1 & sleep 0")
    socket = manager.runtime / "acphost" / "acphost.sock"
    _wait(socket)
    refused = manager.acphost("service", "install", check=False)
    assert refused.returncode == 3
    assert "acphost stop" in refused.stderr
    assert not manager.units.exists()
    manager.acphost("stop")
    manager.acphost("service", "install")


def test_the_configuration_is_read_again_on_reload(manager: UserManager) -> None:
    manager.acphost("service", "install")
    config = manager.home / ".config" / "acphost" / "config.toml"
    pid = manager.shown("MainPID")
    config.write_text("nonsense = 1\n")
    manager.systemctl("reload", "acphost.service")
    assert manager.shown("MainPID") == pid
    assert "nonsense" in _wait_for_status(manager, "nonsense")


def test_the_units_hold_before_the_judge_of_units(short_dir: Path) -> None:
    """systemd-analyze complains on stderr only about what it does not know: there is nothing."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there")
    environ = {
        "PATH": f'/usr/bin:{short_dir}/with space:{short_dir}/100% $HOME "quoted" back\\slash',
        "HOME": str(short_dir),
        "XDG_CONFIG_HOME": f"{short_dir}/con fig",
        "ACPHOST_STATE_DIR": f"{short_dir}/100% $HOME state",
    }
    plan = plan_service({}, environ, [_acphost()])
    files = []
    for name, text in units(plan).items():
        files.append(short_dir / name)
        files[-1].write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", *map(str, files)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(short_dir)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_manager_the_cure_is_told(short_dir: Path) -> None:
    environ = {**os.environ, "HOME": str(short_dir), "XDG_RUNTIME_DIR": str(short_dir)}
    done = subprocess.run(
        [_acphost(), "service", "install"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "enable-linger" in done.stderr


def _acphost() -> str:
    return str(Path(sys.executable).parent / "acphost")


def _wait(path: Path) -> None:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def _wait_for_status(manager: UserManager, word: str) -> str:
    end = time.monotonic() + 20
    while word not in (seen := manager.acphost("status").stdout):
        assert time.monotonic() < end, seen
        time.sleep(0.1)
    return seen
