"""Which processes belong to a test: those with its folder in their environment or arguments."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path


def processes_of(folder: Path) -> dict[int, str]:
    """Pid and command of every live process that mentions `folder`, the caller aside."""
    found = (
        _from_proc(str(folder)) if Path("/proc/self/environ").exists() else _from_ps(str(folder))
    )
    found.pop(os.getpid(), None)
    return found


def _from_proc(mark: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it ended meanwhile, or is not ours
            command = (entry / "cmdline").read_bytes()
            if mark.encode() in command + (entry / "environ").read_bytes():
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def _from_ps(mark: str) -> dict[int, str]:
    listing = subprocess.run(
        ["ps", "-axEww", "-o", "pid=,command="], capture_output=True, text=True, check=True
    )
    pairs = (line.split(maxsplit=1) for line in listing.stdout.splitlines() if mark in line)
    return {int(pid): command for pid, command in pairs}
