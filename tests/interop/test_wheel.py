"""What a user installs: the wheel alone, in a virtual environment of its own."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.user_manager import ROOT, user_manager, why_not

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a virtual environment with the wheel; what it needs is lent by ours."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*built, str(ROOT)], check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    subprocess.run([*pip, "--python", str(venv), "install", "--no-deps", str(wheel)], check=True)
    (lib,) = venv.glob("lib/python*/site-packages")
    (lib / "lent.pth").write_text(_lent() + "\n")
    return venv


def _lent() -> str:
    """A folder with the packages that acphost needs, and not with acphost."""
    return sysconfig.get_paths()["purelib"]


def test_it_brings_units_man_page_and_completion(installed: Path) -> None:
    """Without the checkout: templates, the page in its place, scripts for shells."""
    page = installed / "share" / "man" / "man1" / "acphost.1"
    assert ".SS \\fBservice\\fR" in page.read_text()
    program = str(installed / "bin" / "acphost")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(installed)}
    for words, wanted in (
        (["service", "install", "--print"], f'ExecStart="{program}" "serve"'),
        (["completion", "bash"], "complete -o filenames -F _acphost acphost"),
    ):
        done = subprocess.run(
            [program, *words], env=environ, cwd="/", capture_output=True, text=True, check=True
        )
        assert wanted in done.stdout


def test_from_the_wheel_to_a_first_answer(installed: Path, short_dir: Path) -> None:
    """In an empty home: one command installs the service, the next one is answered."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with user_manager(short_dir) as manager:
        manager.program = installed / "bin" / "acphost"
        del manager.environ["PYTHONPATH"]
        manager.acphost("service", "install")
        assert manager.acphost("send", "--agent", "demo", "hello").stdout
        assert str(installed) in manager.shown("ExecStart")
        manager.acphost("service", "uninstall")
        assert [path.name for path in manager.home.iterdir() if path.name != ".config"] == [
            ".local"
        ]
