"""A configuration folder of the test's own, and a loader that looks nowhere else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from acphost.errors import ConfigError
from acphost.settings.load import load_settings
from acphost.settings.model import Settings

Write = Callable[[str, str], Path]
Load = Callable[..., Settings]
Refusal = Callable[[], str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's configuration folder, empty."""
    place = tmp_path / "config" / "acphost"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def write(folder: Path) -> Write:
    """Write a file of the configuration folder."""

    def write_file(name: str, text: str) -> Path:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def load(folder: Path) -> Load:
    """Load with an environment that holds only what the test names."""

    def load_with(flags: dict[str, object] | None = None, **environ: str) -> Settings:
        base = {"HOME": "/home/ada", "XDG_CONFIG_HOME": str(folder.parent)}
        return load_settings(flags=flags or {}, environ=base | environ)

    return load_with


@pytest.fixture
def refusal(load: Load, folder: Path) -> Refusal:
    """The message that loading is refused with; the configuration folder is written as `@`."""

    def message() -> str:
        with pytest.raises(ConfigError) as caught:
            load()
        return str(caught.value).replace(str(folder), "@")

    return message
