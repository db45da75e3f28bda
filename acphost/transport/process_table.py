"""What the system knows about processes. Everything here reads files or runs `ps`: it blocks."""

import os
import subprocess  # noqa: TID251 - `ps` is how macOS tells; Linux never gets there
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
#: How `ps` words a moment.
_BIRTH = "%a %b %d %H:%M:%S %Y"


class Entry(NamedTuple):
    """A process. `birth` is a text that no later user of the same pid will have."""

    pid: int
    parent: int
    group: int
    session: int
    uid: int
    is_dead: bool
    birth: str

    @property
    def identity(self) -> tuple[int, str]:
        """What no other process ever has: it equals the `Process` that this is."""
        return self.pid, self.birth


def age_ms(process: Entry) -> int:
    """How long ago it was born; a clock that was set since does not count on Linux."""
    if sys.platform == "linux":
        ticks = int(process.birth)
        born = ticks * 1000 // os.sysconf("SC_CLK_TCK")
        return max(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 - born)
    return age_by_words(process.birth, time.time())


def age_by_words(birth: str, now: float) -> int:
    """The age of who was born at a moment in the words of `ps`; 0 if those cannot be read."""
    try:
        born = datetime.strptime(birth, _BIRTH).replace(tzinfo=UTC)
    except ValueError:
        return 0
    return max(0, int((now - born.timestamp()) * 1000))


def boot_id() -> str:
    """The same text until the machine is started again."""
    if sys.platform == "linux":
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return _output("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid").strip()


def entry(pid: int) -> Entry | None:
    """The process with that pid, dead but not yet collected ones included."""
    if sys.platform == "linux":
        return _linux_entry(str(pid))
    return next(listed("-p", str(pid)), None)


def entries() -> Iterator[Entry]:
    """Every process that can be seen."""
    if sys.platform == "linux":
        found = (_linux_entry(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208
        return (each for each in found if each is not None)
    return listed("-ax")


def started_with(variable: str) -> set[int]:
    """Pids whose environment held the assignment `variable` when they last called exec."""
    wanted = os.fsencode(variable)
    if sys.platform == "linux":
        pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208
    else:
        pids = [each.pid for each in entries() if each.uid == os.geteuid()]
    return {pid for pid in pids if wanted in environment(pid)}


def environment(pid: int) -> list[bytes]:
    """The assignments a process was started with; empty if that cannot be seen."""
    if sys.platform != "linux":
        from acphost.transport import macos  # noqa: PLC0415 - it loads ctypes

        return macos.environment(pid)
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - hundreds per scan
            return file.read().split(b"\0")
    except OSError:  # gone, or not ours
        return []


def _linux_entry(name: str) -> Entry | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - hundreds per scan
            return parse_stat(file.read(), os.fstat(file.fileno()).st_uid)
    except OSError:
        return None


def parse_stat(text: bytes, uid: int) -> Entry:
    """Read the contents of a `/proc/PID/stat`."""
    # The name of the program stands in parentheses and may hold spaces and parentheses.
    end = text.rfind(b")")
    state, parent, group, session, *rest = text[end + 2 :].split()
    return Entry(
        pid=int(text[: text.find(b" ")]),
        parent=int(parent),
        group=int(group),
        session=int(session),
        uid=uid,
        is_dead=state in {b"Z", b"X", b"x"},
        birth=rest[15].decode(),  # field 22: start time in clock ticks since boot
    )


def listed(*selection: str) -> Iterator[Entry]:
    """The processes that `ps` selects, as it describes them."""
    return parse_ps(ps(*selection, columns=["pid", "ppid", "pgid", "uid", "stat", "lstart"]))


def ps(*selection: str, columns: Iterable[str]) -> str:
    """Columns without a heading: each in an option of its own, or some take the rest for that."""
    return _output("/bin/ps", *selection, *(f"-o{name}=" for name in columns))


def parse_ps(lines: str) -> Iterator[Entry]:
    """Read a list of `ps`. It has no session id everywhere; that of the group is near enough."""
    for line in lines.splitlines():
        pid, parent, group, uid, state, *birth = line.split()
        yield Entry(
            pid=int(pid),
            parent=int(parent),
            group=int(group),
            session=int(group),
            uid=int(uid),
            is_dead=state.startswith("Z"),
            birth=" ".join(birth),
        )


def _output(*command: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed commands
        command,
        capture_output=True,
        text=True,
        check=False,
        # A birth is told in words: they must not change with the place where the machine is.
        env={"LC_ALL": "C", "TZ": "UTC0"},
    )
    return done.stdout
