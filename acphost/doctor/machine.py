"""What the system grants: open files, watches on the configuration."""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from acphost.doctor.finding import Diagnosis, Patient, fine, warning
from acphost.transport.inotify import Inotify

#: Agents take about ten each, clients one, the store a few.
FEW_FILES = 1024
_INOTIFY = Path("/proc/sys/fs/inotify")
FEW_INSTANCES = 64


def look_at_machine(_: Patient) -> Iterator[Diagnosis]:
    """The limits for processes of this user."""
    yield _files()
    if sys.platform == "linux":
        yield from _watches()


def _files() -> Diagnosis:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FEW_FILES:
        cure = "raise it: LimitNOFILE= in a drop-in of the service, or /etc/security/limits.conf"
        return warning("files", f"at most {hard} files may be open", cure)
    return fine("files", f"{'any number of' if hard < 0 else hard} files may be open")


def _watches() -> Iterator[Diagnosis]:
    raise_it = (
        "sysctl fs.inotify.max_user_instances=512 (until then changes are noticed by looking)"
    )
    try:
        Inotify().close()
    except OSError as exc:
        yield warning("inotify", f"changes of the configuration: {exc.strerror}", raise_it)
        return
    try:
        granted = int((_INOTIFY / "max_user_instances").read_text())
        watches = int((_INOTIFY / "max_user_watches").read_text())
    except (OSError, ValueError):
        return
    if granted < FEW_INSTANCES:
        yield warning("inotify", f"{granted} instances for all programs of yours", raise_it)
    else:
        yield fine("inotify", f"{granted} instances, {watches} watches")
