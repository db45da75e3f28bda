"""Which kinds of agents can be configured: one for each file of traits, shipped or the user's."""

import re
from pathlib import Path

#: The agent that keeps to the protocol; it needs no file.
PLAIN = "acp"
#: Where users put files of their own, beside their configuration.
RUNTIMES_FOLDER = "runtimes"
#: Kept apart from other modules by a loader; nothing in it can lead out of the folder.
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_SHIPPED = Path(__file__).resolve().parent.parent / "provider" / "agents"


def runtime_file(runtime: str, folder: str) -> Path | None:
    """The file of a runtime, of the user's configuration `folder` first; None: there is none."""
    if not _NAME.match(runtime):
        return None
    candidates = (Path(folder, RUNTIMES_FOLDER, f"{runtime}.py"), _SHIPPED / f"{runtime}.py")
    return next((path for path in candidates if path.is_file()), None)


def is_runtime(word: str, folder: str) -> bool:
    """Whether agents can be of this kind."""
    return word == PLAIN or runtime_file(word, folder) is not None


def known_runtimes(folder: str) -> list[str]:
    """The words that `runtime` may be, in order."""
    own = [path.stem for path in own_runtime_files(Path(folder))]
    return sorted({PLAIN, *own, *(path.stem for path in _files(_SHIPPED))})


def own_runtime_files(folder: Path) -> list[Path]:
    """The user's own files of traits."""
    return sorted(_files(folder / RUNTIMES_FOLDER))


def _files(place: Path) -> list[Path]:
    try:
        return [each for each in place.iterdir() if each.suffix == ".py" and _NAME.match(each.stem)]
    except OSError:
        return []
