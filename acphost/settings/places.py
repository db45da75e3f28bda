"""Where configuration files are: the shipped ones, and the user's."""

import sys
from collections.abc import Mapping
from pathlib import Path

from acphost.errors import ConfigError

MAIN_FILE = "config.toml"
AGENTS_FOLDER = "agents.d"


def shipped_folder() -> Path:
    """The defaults: inside the installed package, or `config/` of a source checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "defaults"
    return installed if installed.is_dir() else package.parent / "config"


def user_folder(environ: Mapping[str, str]) -> Path:
    """The user's configuration folder where nothing else is said; it need not exist."""
    configured = environ.get("XDG_CONFIG_HOME", "")
    # Relative paths are invalid by the XDG specification. Set on macOS, the user means it.
    if configured.startswith("/"):
        return Path(configured, "acphost")
    if sys.platform == "linux":
        return Path.home() / ".config/acphost"
    import platformdirs  # noqa: PLC0415 - costs as much as all of our own modules

    return platformdirs.user_config_path("acphost", appauthor=False)


def chosen_place(named: Path | None, environ: Mapping[str, str]) -> Path:
    """The folder or file that a flag or `ACPHOST_CONFIG` names, else the user's folder.

    Raises ConfigError where something is named that is not there or not ours to see.
    """
    if named is None:
        return user_folder(environ)
    try:
        named.stat()
    except OSError as exc:
        raise ConfigError(f"{named}: cannot be read: {exc.strerror}", file=str(named)) from exc
    return named


def main_and_agent_files(place: Path) -> tuple[list[Path], list[Path]]:
    """The main file and the files of agents.d under `place`, those that exist, in reading order.

    A place that is a file is a main file and stands alone.
    """
    if place.is_file():
        return [place], []
    main = place / MAIN_FILE
    # A symbolic link that leads nowhere is not a missing file: reading it says what is wrong.
    mains = [main] if main.exists() or main.is_symlink() else []
    folder = place / AGENTS_FOLDER
    # Names with a leading dot are what editors leave behind while they save.
    found = [] if not folder.is_dir() else [f for f in folder.iterdir() if f.suffix == ".toml"]
    return mains, sorted(path for path in found if not path.name.startswith("."))
