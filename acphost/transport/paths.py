"""Where the daemon keeps its things where nothing else is said."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

_APP = "acphost"
#: Where pam_systemd makes the runtime directory of a user who is logged in.
RUNTIME_FOLDERS = Path("/run/user")


def default_socket_path(environ: Mapping[str, str]) -> Path:
    """The socket, derived alike by daemon and clients.

    Editors, cron and su may lose $XDG_RUNTIME_DIR, so the place where systemd has it is looked at
    too. Else it is in a directory of the user's own under the temporary directory (on macOS that
    of the user, whatever the environment says); that name can be guessed, so its owner and mode are
    checked before it is used.
    """
    runtime = _absolute(environ, "XDG_RUNTIME_DIR") or _runtime_of_systemd()
    if runtime is not None:
        return runtime / _APP / f"{_APP}.sock"
    temporary = _absolute(environ, "TMPDIR")
    if sys.platform == "darwin":
        from acphost.transport import macos  # noqa: PLC0415 - it loads ctypes

        temporary = Path(macos.temporary_folder() or temporary or "/tmp")  # noqa: S108 - checked
    if temporary is None:
        import tempfile  # noqa: PLC0415 - a client that is told where to go need not load it

        temporary = Path(tempfile.gettempdir())
    return temporary / f"{_APP}-{os.getuid()}" / f"{_APP}.sock"


def _runtime_of_systemd() -> Path | None:
    folder = RUNTIME_FOLDERS / str(os.getuid())
    try:
        found = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder if is_ours and not found.st_mode & 0o077 else None


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """Where store, lock and secrets live."""
    state = _absolute(environ, "XDG_STATE_HOME")
    if state is not None:
        return state / _APP
    if sys.platform == "linux":
        return Path.home() / ".local/state" / _APP
    import platformdirs  # noqa: PLC0415 - costs as much as all of our own modules

    return platformdirs.user_state_path(_APP, appauthor=False)


def _absolute(environ: Mapping[str, str], name: str) -> Path | None:
    # Relative values are invalid by the XDG specification. Set on macOS, the user means them.
    value = environ.get(name, "")
    return Path(value) if value.startswith("/") else None
