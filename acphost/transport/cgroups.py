"""A control group for each launch (Linux): whatever is started in it cannot leave it by itself.

Group, session, environment and parent can all be shed by a process that means to; this one only by
who may write to another group. Groups are made below the daemon's own, if that is ours to divide:
in a service with delegation, in a container, as root. Elsewhere the other means have to do.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from acphost.transport import process_table

_PREFIX = "acphost."
#: Seconds after which an empty group is nobody's any more.
_LEFT_BEHIND = 60.0


@cache
def home() -> Path | None:
    """The group this process is in, if groups can be made in it; None where that is not so."""
    own = _own_group() if sys.platform == "linux" else None
    return own if own is not None and _can_divide(own) else None


def group_for(launch_id: str) -> str | None:
    """Where the group of a launch is to be; None where there can be none."""
    parent = home()
    return None if parent is None else str(parent / f"{_PREFIX}{launch_id}")


def is_of(group: str, launch_id: str) -> bool:
    """Whether that is the group of that launch, and not any other folder."""
    mount = _mount()
    path = Path(group)
    return (
        mount is not None
        and path.name == f"{_PREFIX}{launch_id}"
        and path.is_relative_to(mount[0])
        and ".." not in path.parts
    )


def make(group: str) -> int | None:
    """Make a group; gives the descriptor by which a process enters it. None if that fails."""
    try:
        Path(group).mkdir(exist_ok=True)
        return os.open(f"{group}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return None


def enter(descriptor: int) -> None:
    """Move the calling process into the group. Runs between fork and exec: a write, no more."""
    with suppress(OSError):  # who cannot enter is followed by the other means
        os.write(descriptor, b"0")


def pids(group: str) -> set[int]:
    """Who is in a group or in one that was made below it."""
    found: set[int] = set()
    for folder in _tree(group):
        with suppress(OSError):
            found.update(map(int, (folder / "cgroup.procs").read_text().split()))
    return found


def kill(group: str) -> None:
    """SIGKILL to all in it at once, which no fork can slip through; older kernels cannot."""
    with suppress(OSError):
        (Path(group) / "cgroup.kill").write_text("1")


def remove(group: str) -> None:
    """Take away a group that nobody is left in, and those below it."""
    for folder in reversed(list(_tree(group))):
        with suppress(OSError):  # somebody is left: it is tried again at the next start
            folder.rmdir()


def tidy(age: float = _LEFT_BEHIND) -> int:
    """Remove empty groups beside ours, older than `age` seconds; returns how many. Blocks.

    Their daemon was killed and never started again with its ledger, so that no sweep finds them.
    """
    parent = home()
    if parent is None:
        return 0
    removed = 0
    for group in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else was quicker, or moved in
            # One that is just being made, by another daemon, is empty too.
            if time.time() - group.stat().st_mtime >= age and not pids(str(group)):
                remove(str(group))
                removed += not group.exists()
    return removed


def _tree(group: str) -> Iterator[Path]:
    """The group and all below it, each before those below."""
    top = Path(group)
    if not top.is_dir():
        return
    for folder, names, _ in os.walk(top):
        yield Path(folder)
        names.sort()


@cache
def _mount() -> tuple[Path, str] | None:
    """Where the unified hierarchy is mounted, and which part of it."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        place, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            _, _, _, root, point, *_ = place.split(" ")
            return Path(point.encode().decode("unicode_escape")), root
    return None


def _own_group() -> Path | None:
    mount = _mount()
    if mount is None:
        return None
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    path = next((line[3:] for line in lines if line.startswith("0::")), "")
    point, root = mount
    if not path.startswith("/") or ".." in path.split("/"):
        return None  # of another namespace
    with suppress(ValueError):
        return point / Path(path).relative_to(root)
    return None


def _can_divide(own: Path) -> bool:
    """Try it: the modes of the folder do not tell of a read-only mount or a limit."""
    if not os.access(own / "cgroup.procs", os.W_OK):
        return False
    trial = own / f"{_PREFIX}{process_table.boot_id()[:8]}-{os.getpid()}"
    try:
        trial.mkdir(exist_ok=True)
        kind = (trial / "cgroup.type").read_text().strip()
        trial.rmdir()
    except OSError:
        return False
    return kind == "domain"
