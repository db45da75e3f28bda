"""The daemon that runs, if one does: who it is, and how it says it fares."""

from collections.abc import AsyncIterator
from typing import Any

from acphost.client.connecting import connect
from acphost.doctor.finding import Diagnosis, Patient, fine, problem, warning
from acphost.errors import AcpHostError, DaemonUnreachableError, SocketPathError
from acphost.transport.lock import lock_holder
from acphost.version import VERSION

#: The share of descriptors from which on it becomes tight.
_TIGHT = 0.8


async def look_at_daemon(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Lock, answer, and what it tells of itself."""
    holder = lock_holder(patient.state_dir)
    try:
        async with connect(patient.socket, name="acphost doctor", patience=0) as client:
            host, stats = client.info.host_info, await client.stats()
            yield fine("daemon", f"{host.version}, pid {host.pid}, answers")
            if host.version != VERSION:
                told = f"it is version {host.version}, this program is {VERSION}"
                yield warning("daemon", told, "start it again: `acphost stop`, then any command")
            # Another state folder may be served behind the same socket.
            holder = lock_holder(patient.state_dir)
            if holder not in {host.pid, None}:
                yield problem(
                    "daemon",
                    f"pid {host.pid} answers, pid {holder} holds {patient.state_dir}",
                    "two daemons run: `acphost stop` with the right --socket and --state-dir",
                )
            for each in _figures(stats):
                yield each
    except SocketPathError:
        return  # told of the path already
    except DaemonUnreachableError as exc:
        if holder is None:
            yield fine("daemon", "none runs; `acphost serve`, or `acphost service install`")
        else:
            yield problem(
                "daemon",
                f"pid {holder} holds {patient.state_dir}, and does not answer: {exc}",
                "it may listen elsewhere (--socket), be starting, or hang: `acphost logs`",
            )
    except (AcpHostError, TimeoutError) as exc:
        yield problem("daemon", f"it does not answer as it should: {exc}", "`acphost logs`")


def _figures(stats: dict[str, Any]) -> list[Diagnosis]:
    found = []
    storage = stats.get("storage") or {}
    if storage.get("state") not in {None, "ok"}:
        told = f"the store cannot be written: {storage.get('reason')}"
        found.append(problem("daemon", told, "make room on the disk; it goes on by itself"))
    problem_now = (stats.get("config") or {}).get("problem")
    if problem_now:
        told = f"the last good configuration counts: {problem_now}"
        found.append(warning("daemon", told, "mend the file; the daemon notices"))
    journal = stats.get("journal") or {}
    if journal.get("walOverLimit"):
        told = f"the write-ahead log has {journal.get('walBytes')} bytes"
        cure = "end the program that keeps the store open for reading: `fuser journal.db-wal`"
        found.append(warning("daemon", told, cure))
    if stats.get("containment") == "cgroup":
        found.append(fine("daemon", "each agent and all it starts are in a control group"))
    elif stats.get("containment"):
        told = "no control groups here: agents' processes are found by group, parent and mark"
        found.append(fine("daemon", told))
    files = stats.get("descriptors") or {}
    if files.get("limit") and files.get("open", 0) > _TIGHT * files["limit"]:
        told = f"{files['open']} of {files['limit']} files are open"
        found.append(warning("daemon", told, "raise LimitNOFILE, or end idle sessions' agents"))
    return found
