"""`acphost doctor` finds what is wrong, names the cure, and changes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import running_daemon


class Home:
    """A user's folders, and the doctor in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: What the doctor is started by.
        self.wrapper: list[str] = []
        self.config = folder / "config" / "acphost"
        self.config.mkdir(parents=True)
        self.state = folder / "state" / "acphost"
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.environ = {name: value for name, value in os.environ.items() if "XDG" not in name} | {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(self.runtime),
        }

    def doctor(self, *words: str) -> tuple[int, list[dict[str, Any]]]:
        done = subprocess.run(
            [*self.wrapper, sys.executable, "-m", "acphost", "doctor", "--json", *words],
            env=self.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        told = json.loads(done.stdout)
        assert told["ok"] is (done.returncode == 0)
        return done.returncode, told["findings"]

    def problem(self, area: str, *words: str) -> dict[str, Any]:
        """The one problem, which is in this area and has a cure."""
        code, found = self.doctor(*words)
        problems = [each for each in found if each["severity"] == "problem"]
        assert code == 1
        assert [each["area"] for each in problems] == [area], problems
        assert problems[0]["cure"]
        return problems[0]


@pytest.fixture
def home(short_dir: Path) -> Home:
    return Home(short_dir)


def tree(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mode for path in folder.rglob("*")}


def test_a_new_user_has_no_problem(home: Home) -> None:
    """Nothing is installed, nothing runs: warnings at most, and nothing was made by looking."""
    before = tree(home.folder)
    code, found = home.doctor()
    assert code == 0, found
    assert {"config", "state", "disk", "store", "socket", "files", "daemon", "service"} <= {
        each["area"] for each in found
    }
    assert tree(home.folder) == before


def test_a_mistake_in_a_file_is_told_with_its_line(home: Home) -> None:
    (home.config / "config.toml").write_text("[drain]\ntimeout = -1\n")
    assert "config.toml:2" in home.problem("config")["message"]


def test_a_state_folder_that_others_can_enter(home: Home) -> None:
    home.state.mkdir(parents=True)
    home.state.chmod(0o755)
    assert home.problem("state")["cure"] == f"chmod 700 {home.state}"


def test_a_store_that_is_none(home: Home) -> None:
    home.state.mkdir(parents=True, mode=0o700)
    (home.state / "journal.db").write_text("no store at all")
    assert "restore" in home.problem("store")["cure"]


def test_a_socket_path_that_no_system_takes(home: Home) -> None:
    home.problem("socket", "--socket", f"/tmp/{'x' * 120}")


def test_an_agent_of_ones_own_that_is_not_there(home: Home) -> None:
    (home.config / "config.toml").write_text('[agents.mine]\ncommand = ["no-such-agent"]\n')
    assert "no-such-agent" in home.problem("agent mine")["message"]


def test_an_agent_that_only_the_shell_finds(home: Home) -> None:
    """The installed service has an older PATH: what it does not find is named, with the cure."""
    program = home.folder / "bin" / "my-agent"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    home.environ["PATH"] += f":{program.parent}"
    (home.config / "config.toml").write_text('[agents.mine]\ncommand = ["my-agent"]\n')
    assert home.doctor()[0] == 0
    units = home.folder / "config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / "acphost.service").write_text('[Service]\nEnvironment="PATH=/usr/bin:/bin"\n')
    found = home.problem("agent mine")
    assert "not by the service" in found["message"]
    assert "service install" in found["cure"]


async def test_a_daemon_that_runs_is_asked() -> None:
    """Its answer, and what its own figures say; a lock without an answer is a problem."""
    async with running_daemon("") as daemon:
        code, found = ask(daemon.flags, daemon.environ)
        assert code == 0, found
        assert f"pid {daemon.pid}, answers" in by_area(found, "daemon")
        assert "control group" in by_area(found, "daemon")
        elsewhere = [*daemon.flags, "--socket", f"{daemon.socket}-not"]
        code, found = ask(elsewhere, daemon.environ)
        assert code == 1
        assert f"pid {daemon.pid} holds" in by_area(found, "daemon")


def test_the_main_job_is_tried_out(home: Home) -> None:
    """Send, permit, kill, recover; nothing is left of it."""
    code, found = home.doctor("--e2e")
    assert code == 0, found
    trial = [each["message"] for each in found if each["area"] == "trial"]
    assert any("asked first" in each for each in trial)
    assert any("kill -9" in each for each in trial)
    assert not home.state.exists()


def ask(flags: list[str], environ: dict[str, str]) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "acphost", "doctor", "--json", *flags],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)["findings"]


def by_area(found: list[dict[str, Any]], area: str) -> str:
    return "; ".join(each["message"] for each in found if each["area"] == area)


def test_a_place_where_nothing_can_be_written(home: Home) -> None:
    """A read-only home is found before the first start fails."""
    steps = 'mount -t tmpfs -o ro tmpfs "$0" && exec "$@"'
    home.wrapper = ["unshare", "-rm", "sh", "-c", steps, str(home.runtime)]
    tried = subprocess.run([*home.wrapper, "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no read-only folder can be mounted here: {tried.stderr!r}")
    told = home.problem("state", "--state-dir", str(home.runtime / "a" / "b"))
    assert told["message"].endswith(f"cannot be made: nothing can be written in {home.runtime}")


def test_a_default_agent_that_nobody_is(home: Home) -> None:
    (home.config / "config.toml").write_text('default_agent = "herrmes"\n')
    told = home.problem("agents")
    assert "herrmes" in told["message"]
    assert "hermes" in told["cure"]


def test_a_switch_is_true_or_false(home: Home) -> None:
    (home.config / "config.toml").write_text('autostart = "x"\n')
    assert "expected true or false" in home.problem("config")["message"]
