"""Where to look for changes of a configuration: every directory on the way to each of its files."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from acphost.settings.places import AGENTS_FOLDER, MAIN_FILE, main_and_agent_files
from acphost.settings.runtimes import RUNTIMES_FOLDER, own_runtime_files

#: As the kernel counts them before it calls links a loop.
_MAX_LINKS = 40


def watched_folders(place: Path) -> dict[Path, frozenset[str] | None]:
    """The directories whose entries decide what is configured, with the names that matter there.

    All names matter in agents.d and in runtimes. What does not exist yet is waited for in the
    nearest directory that does; where a name is a symbolic link, both its own directory and that of
    its target count.
    """
    names: dict[Path, set[str]] = {}
    for path in _paths(place):
        for folder, name in _trail(path):
            names.setdefault(folder, set()).add(name)
    found: dict[Path, frozenset[str] | None] = {
        folder: frozenset(wanted) for folder, wanted in names.items()
    }
    for name in (AGENTS_FOLDER, RUNTIMES_FOLDER):
        if (place / name).is_dir():
            found[(place / name).resolve()] = None
    return found


def _paths(place: Path) -> Iterable[Path]:
    if place.is_file():
        return [place]
    try:
        mains, agents = main_and_agent_files(place)
    except OSError:
        mains, agents = [], []
    # Of the place itself its directory tells when it goes: others may be busy around it.
    folders = {place / AGENTS_FOLDER, place / RUNTIMES_FOLDER}
    return {place / MAIN_FILE, *folders, *mains, *agents, *own_runtime_files(place)}


def _trail(path: Path) -> Iterator[tuple[Path, str]]:
    """Each directory entry that leads on to `path` by its being a link, missing, or the last."""
    current, rest, links = Path(path.anchor), list(path.parts[1:]), 0
    while rest:
        name = rest.pop(0)
        if name == os.pardir:
            current = current.parent
            continue
        step = current / name
        if step.is_symlink() and links < _MAX_LINKS:
            yield current, name
            links += 1
            target = step.readlink()
            current = Path(target.anchor) if target.is_absolute() else current
            rest = [*target.parts[1 if target.is_absolute() else 0 :], *rest]
            continue
        if not rest or not step.is_dir():
            yield current, name
            return
        current = step
