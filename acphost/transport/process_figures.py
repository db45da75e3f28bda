"""What processes are and take, in one look at the system; it reads hundreds of files: it blocks."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from acphost.transport import cgroups, process_table
from acphost.transport.process_table import Entry
from acphost.transport.processes import LAUNCH_VARIABLE, Launch, Process, cgroup_of

_MOST_COMMAND = 300
_MARK = f"{LAUNCH_VARIABLE}=".encode()


class Figures(NamedTuple):
    """A process, its memory that is really there, its age and its command line."""

    process: Process
    group: int
    memory_bytes: int
    age_ms: int
    command: str


class Family(NamedTuple):
    """What there is of a launch: its first process, and all that came of it."""

    leader: Figures | None
    descendants: list[Figures]


def families(launches: Iterable[Launch]) -> dict[str, Family]:
    """What lives of each launch, by launch id; none but ours is counted."""
    wanted = list(launches)
    if not wanted:
        return {}
    ours = {
        each.pid: each
        for each in process_table.entries()
        if each.uid == os.geteuid() and not each.is_dead and each.pid != os.getpid()
    }
    living = {each.identity for each in ours.values()}
    marks = _marks(ours)
    boot = process_table.boot_id()
    found: dict[str, Family] = {}
    for launch in wanted:
        leader = ours.get(launch.pid) if launch.boot_id == boot else None
        if leader is not None and leader.birth != launch.birth:
            leader = None  # its pid was given to somebody else
        members = {pid for pid, mark in marks.items() if mark == launch.launch_id}
        cgroup = cgroup_of(launch) if launch.boot_id == boot else None
        if cgroup is not None:
            members |= cgroups.pids(cgroup) & ours.keys()
            members.discard(launch.pid)
        if launch.boot_id == boot:
            members |= {each.pid for each in launch.descendants if each in living}
        if leader is not None:
            members |= {pid for pid, each in ours.items() if each.group == launch.pgid}
            members |= _below(leader.pid, ours)
            members.discard(leader.pid)
        found[launch.launch_id] = Family(
            None if leader is None else _figures(leader),
            [_figures(ours[pid]) for pid in sorted(members)],
        )
    return found


def _below(pid: int, entries: dict[int, Entry]) -> set[int]:
    """Children, their children, and so on."""
    children: dict[int, list[int]] = {}
    for each in entries.values():
        children.setdefault(each.parent, []).append(each.pid)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _marks(entries: dict[int, Entry]) -> dict[int, str]:
    """Which launch each process carries the mark of."""
    found = {}
    for pid in entries:
        for word in process_table.environment(pid):
            if word.startswith(_MARK):
                found[pid] = os.fsdecode(word.removeprefix(_MARK))
                break
    return found


def _figures(entry: Entry) -> Figures:
    memory, command = _linux(entry.pid) if sys.platform == "linux" else _macos(entry.pid)
    process, age = Process(entry.pid, entry.birth), process_table.age_ms(entry)
    return Figures(process, entry.group, memory, age, command[:_MOST_COMMAND])


def _linux(pid: int) -> tuple[int, str]:
    pages = _read(pid, "statm").split()
    memory = int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 1 else 0
    words = _read(pid, "cmdline").rstrip(b"\0").split(b"\0")
    return memory, " ".join(word.decode("utf-8", "replace") for word in words)


def _macos(pid: int) -> tuple[int, str]:
    told = process_table.ps("-p", str(pid), "-ww", columns=["rss", "command"])
    kilobytes, _, command = told.strip().partition(" ")
    return int(kilobytes) * 1024 if kilobytes.isdigit() else 0, command.strip()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # gone, or not ours
        return b""
