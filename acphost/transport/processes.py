"""Which processes are ours, told by birth and launch mark, and how they are ended."""

import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

import anyio
import anyio.to_thread

from acphost.transport import cgroups, exits, process_table
from acphost.transport.process_table import boot_id

__all__ = [
    "LAUNCH_VARIABLE",
    "Launch",
    "Process",
    "birth",
    "boot_id",
    "cgroup_of",
    "contained",
    "containment",
    "end_all",
    "end_launch",
    "group_members",
    "is_alive",
    "marked",
    "reap_adopted",
    "send",
    "set_subreaper",
    "wait_gone",
]

#: In the environment of every agent, and so of what it starts, wherever that goes.
LAUNCH_VARIABLE = "ACPHOST_LAUNCH"

#: SIGKILL works at once, but for a process in the middle of a system call that cannot be broken.
KILL_GRACE = 2.0
_POLL = 0.02
_PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    """A process that no later user of the same pid can be mistaken for."""

    pid: int
    birth: str


class Launch(NamedTuple):
    """What is remembered of a launch when the daemon that made it is gone."""

    launch_id: str
    pid: int
    birth: str
    pgid: int
    boot_id: str
    cgroup: str = ""
    #: What was seen to come of it.
    descendants: tuple[Process, ...] = ()


def birth(pid: int) -> str | None:
    """When `pid` started, as text to compare; None if there is no such process."""
    found = process_table.entry(pid)
    return None if found is None else found.birth


def is_alive(process: Process) -> bool:
    """Whether that very process still runs; one that waits to be collected does not."""
    found = process_table.entry(process.pid)
    return found is not None and found.birth == process.birth and not found.is_dead


def group_members(pgid: int) -> list[Process]:
    """Living processes in a process group."""
    return [
        Process(found.pid, found.birth)
        for found in process_table.entries()
        if found.group == pgid and not found.is_dead
    ]


def marked(launch_id: str) -> list[Process]:
    """Living processes of our user that were started in the environment of that launch."""
    pids = process_table.started_with(f"{LAUNCH_VARIABLE}={launch_id}") - {os.getpid()}
    found = (process_table.entry(pid) for pid in pids)
    return [
        Process(each.pid, each.birth)
        for each in found
        if each is not None and each.uid == os.geteuid() and not each.is_dead
    ]


def contained(cgroup: str | None) -> list[Process]:
    """Living processes in a control group."""
    found = (process_table.entry(pid) for pid in (cgroups.pids(cgroup) if cgroup else ()))
    return [
        Process(each.pid, each.birth) for each in found if each is not None and not each.is_dead
    ]


def containment() -> str:
    """What keeps track of all that agents start: the strongest means there is here."""
    if cgroups.home() is not None:
        return "cgroup"
    return "subreaper" if _adopts else "mark"


def send(process: Process, number: signal.Signals) -> bool:
    """Signal exactly that process; False if it is gone or out of reach."""
    descriptor = _pidfd(process.pid)
    try:
        # With the descriptor open first, what is found now is what gets the signal.
        if not is_alive(process):
            return False
        if sys.platform == "linux" and descriptor is not None:
            signal.pidfd_send_signal(descriptor, number)
        else:
            os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


async def wait_gone(processes: Iterable[Process], patience: float) -> None:
    """Returns when all of them have ended, or after `patience` seconds."""
    with anyio.move_on_after(patience):
        for process in processes:
            await _gone(process)


async def _gone(process: Process) -> None:
    descriptor = exits.ending(process.pid)
    try:
        if descriptor is not None and is_alive(process):
            await anyio.wait_readable(descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)
    while is_alive(process):  # noqa: ASYNC110 - without a descriptor nothing can be waited for
        await anyio.sleep(_POLL)


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # gone, an old kernel, or no descriptor left
        return None


def send_each(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal each of them."""
    for process in processes:
        send(process, number)


async def end_all(
    find: Callable[[], list[Process]],
    *,
    known: Iterable[Process] = (),
    term_grace: float,
    strike: Callable[[list[Process], signal.Signals], None] = send_each,
) -> list[Process]:
    """TERM what `find` finds, wait, KILL until it finds nothing more; returns who survived that.

    Whoever was found once stays on the list, `known` ones too: a child whose parent has just been
    ended is nobody's child any more, and nothing else may tell that it was ours.
    """
    seen = set(known)

    def look() -> list[Process]:
        seen.update(with_descendants(find()))
        return sorted(process for process in seen if is_alive(process))

    found = await in_thread(look)
    if found and term_grace > 0:
        strike(found, signal.SIGTERM)
        await wait_gone(found, term_grace)
        found = await in_thread(look)
    with anyio.move_on_after(KILL_GRACE):
        while found:
            strike(found, signal.SIGKILL)
            await wait_gone(found, KILL_GRACE)
            # Again, since one may have started another before it was hit.
            found = await in_thread(look)
    return await in_thread(look) if found else []


async def in_thread(find: Callable[[], list[Process]]) -> list[Process]:
    """Run `find` beside the loop: it reads hundreds of files."""
    return await anyio.to_thread.run_sync(find)


def with_descendants(ancestors: Iterable[Process]) -> list[Process]:
    """Living processes and all they have started, told by their parents, in whatever group."""
    children: dict[int, list[process_table.Entry]] = {}
    for found in process_table.entries():
        if not found.is_dead:
            children.setdefault(found.parent, []).append(found)
    family = {process for process in ancestors if is_alive(process)}
    pending = list(family)
    while pending:
        parent = pending.pop()
        for child in children.get(parent.pid, ()):
            process = Process(child.pid, child.birth)
            if process not in family:
                family.add(process)
                pending.append(process)
    return sorted(family)


async def end_launch(launch: Launch, *, term_grace: float = 2.0) -> list[Process]:
    """End what is left of a launch of an earlier daemon, never a stranger; returns survivors.

    Ours are: the leader by pid and birth, its group while that leader lives, whoever carries the
    mark, who is in its control group, who was seen to come of it by pid and birth, and the
    descendants of all these. A pid that was given to somebody else in the meantime fits none.
    """
    if launch.boot_id != boot_id():
        return []
    cgroup = cgroup_of(launch)

    def strike(found: list[Process], number: signal.Signals) -> None:
        if number == signal.SIGKILL and cgroup is not None:
            cgroups.kill(cgroup)
        send_each(found, number)

    left = await end_all(lambda: _left_of(launch), term_grace=term_grace, strike=strike)
    if cgroup is not None:
        cgroups.remove(cgroup)
    return left


def cgroup_of(launch: Launch) -> str | None:
    """The control group of a launch, if it had one, and what is written down can be believed."""
    is_its = launch.cgroup and cgroups.is_of(launch.cgroup, launch.launch_id)
    return launch.cgroup if is_its else None


def _left_of(launch: Launch) -> list[Process]:
    leader = Process(launch.pid, launch.birth)
    found = {*marked(launch.launch_id), *contained(cgroup_of(launch))}
    found |= set(filter(is_alive, launch.descendants))
    if is_alive(leader):
        members = group_members(launch.pgid)
        if is_alive(leader):  # all the while, so the group was his all the while
            found |= {leader, *members}
    return sorted(found)


# -- orphans that come to us -----------------------------------------------------------------------

#: Children of our own, whose exit status somebody waits for.
_awaited: set[int] = set()
_adopts = False


def set_subreaper() -> bool:
    """Have orphans among our descendants handed to us instead of to init (Linux)."""
    global _adopts  # noqa: PLW0603 - it is a property of the whole process
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - costs 10 ms that only a daemon has to spend

        prctl = ctypes.CDLL(None).prctl
        _adopts = bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return _adopts


def expect(pid: int) -> None:
    """A direct child: `reap_adopted` leaves it alone until `forget`."""
    _awaited.add(pid)


def forget(pid: int) -> None:
    """That child was collected."""
    _awaited.discard(pid)


async def reap_adopted() -> int:
    """Collect dead orphans that were handed to us; returns how many. Call from the loop's thread.

    Children of our own making are either awaited by `Child` or live in our session: both are left
    alone, so that nobody's exit status is taken away.
    """
    if not _adopts:
        return 0
    dead = await anyio.to_thread.run_sync(_dead_children)
    # Who is awaited is known in this thread only, and the dead keep their pids meanwhile.
    return sum(_collect(pid) for pid in dead if pid not in _awaited)


def _dead_children() -> list[int]:
    ours, session = os.getpid(), os.getsid(0)
    return [
        found.pid
        for found in process_table.entries()
        if found.is_dead and found.parent == ours and found.session != session
    ]


def _collect(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False
