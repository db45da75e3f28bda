"""What the figures were measured on, and what the system tells about a process."""

import os
import platform
import sqlite3
import subprocess
import time
from pathlib import Path
from statistics import median

from tests.bench.report import percentile

_SYNCS = 100
_PAGE = b"\0" * 4096


def describe(folder: Path) -> dict[str, str]:
    """The machine, and how fast the disk under `folder` is."""
    return {
        "cpu": f"{_cpu()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
        "disk": f"fsync of 4 KiB {_fsync(folder)} in {folder.parent}",
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except FileNotFoundError:
        told = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return told.stdout.strip() or platform.processor()
    return platform.processor() or platform.machine()


def _fsync(folder: Path) -> str:
    path, times = folder / "sync", []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for place in range(_SYNCS):
            os.pwrite(descriptor, _PAGE, place * len(_PAGE))
            start = time.perf_counter()
            os.fsync(descriptor)
            times.append((time.perf_counter() - start) * 1000)
    finally:
        os.close(descriptor)
        path.unlink()
    return f"p50 {median(times):.2f} ms, p90 {percentile(times, 0.9):.2f} ms"


def memory(pid: int) -> float:
    """Resident memory of a process in MB."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        return int(_field(status, "VmRSS").split()[0]) / 1024
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return int(told.stdout) / 1024


def forget_peak(pid: int) -> None:
    """Let `peak_memory` begin anew, where the system can."""
    path = Path(f"/proc/{pid}/clear_refs")
    if path.exists():
        path.write_text("5")


def peak_memory(pid: int) -> float:
    """The most a process had resident since `forget_peak`, in MB; what it has now, elsewhere."""
    status = Path(f"/proc/{pid}/status")
    return int(_field(status, "VmHWM").split()[0]) / 1024 if status.exists() else memory(pid)


def wake_ups(pid: int) -> int | None:
    """How often the threads of a process have gone to sleep so far, where the system tells."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        return None
    return sum(int(_field(task / "status", "voluntary_ctxt_switches")) for task in tasks.iterdir())


def _field(status: Path, name: str) -> str:
    for line in status.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    raise LookupError(f"{status} has no {name}")
