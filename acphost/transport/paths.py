"""Where the daemon keeps its things where nothing else is said."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_APP = "acphost"


def default_socket_path(environ: Mapping[str, str]) -> Path:
    """The socket, derived alike by daemon and clients.

    Without $XDG_RUNTIME_DIR it is in a directory of the user's own under the temporary directory;
    that name can be guessed, so its owner and mode are checked before it is used.
    """
    runtime = _absolute(environ, "XDG_RUNTIME_DIR")
    if runtime is not None:
        return runtime / _APP / f"{_APP}.sock"
    temporary = _absolute(environ, "TMPDIR")
    if temporary is None:
        import tempfile  # noqa: PLC0415 - a client that is told where to go need not load it

        temporary = Path(tempfile.gettempdir())
    return temporary / f"{_APP}-{os.getuid()}" / f"{_APP}.sock"


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
