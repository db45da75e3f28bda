"""Files and folders: configuration, state, store, socket. Nothing is made or changed."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from acphost.doctor.finding import Diagnosis, Patient, fine, problem, warning
from acphost.errors import SocketPathError, StoreRefusedError
from acphost.journal.audit import audit
from acphost.settings.load import mistakes_of
from acphost.transport.dial import check_path

#: Below it a journal that grows fills the disk within a day of work.
LOW_BYTES = 1 << 30
_STORE = "journal.db"


def look_at_places(patient: Patient) -> Iterator[Diagnosis]:
    """What can be told from the outside."""
    yield from _configuration(patient)
    yield from _state(patient.state_dir)
    yield from _disk(patient.state_dir)
    yield from _store(patient.state_dir / _STORE)
    yield from _socket(patient.socket)


def _configuration(patient: Patient) -> Iterator[Diagnosis]:
    trouble = patient.loaded.problem
    if trouble is None:
        read = len(patient.loaded.settings.read_from)
        yield fine("config", f"{patient.config}: {read} files read, no mistake")
        return
    for mistake in mistakes_of(trouble) or [{"file": patient.config, "text": str(trouble)}]:
        place = ":".join(str(mistake[key]) for key in ("file", "line") if mistake.get(key))
        key = f"{mistake['key']}: " if mistake.get("key") else ""
        yield problem(
            "config",
            f"{place}: {key}{mistake.get('text') or trouble}",
            "mend the file; until then it is left out",
        )


def _state(folder: Path) -> Iterator[Diagnosis]:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        yield _future("state", folder)
        return
    except OSError as exc:
        yield problem("state", f"{folder}: {exc.strerror}", "choose another with --state-dir")
        return
    yield _private("state", folder, found)


def _future(area: str, folder: Path) -> Diagnosis:
    """A folder that is made when it is needed, if that can be done."""
    above = next(each for each in folder.parents if each.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return fine(area, f"{folder} will be made at the first start")
    return problem(
        area, f"{folder} cannot be made: nothing can be written in {above}",
        "choose another with --state-dir, ACPHOST_STATE_DIR or `state_dir`",
    )  # fmt: skip


def _private(area: str, folder: Path, found: os.stat_result) -> Diagnosis:
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        return problem(area, f"{folder} is no directory", "move it away, or choose another place")
    if found.st_uid != os.geteuid():
        return problem(area, f"{folder} belongs to uid {found.st_uid}", "choose another place")
    if mode & 0o077:
        return problem(area, f"others can enter {folder}: mode {mode:04o}", f"chmod 700 {folder}")
    return fine(area, f"{folder} is yours alone")


def _disk(folder: Path) -> Iterator[Diagnosis]:
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    told = f"{free / 1e9:.1f} GB free where the state is"
    if free < LOW_BYTES:
        cure = "make room, or have old sessions deleted by [journal.retention]"
        yield warning("disk", told, cure)
    else:
        yield fine("disk", told)


def _store(path: Path) -> Iterator[Diagnosis]:
    if not path.exists():
        yield fine("store", "no store yet")
        return
    try:
        with audit(path) as found:
            size = path.stat().st_size
            version, store_id = found.schema_version(), found.meta().get("storeId")
        yield fine("store", f"{store_id}, schema {version}, {size / 1e6:.1f} MB")
    except StoreRefusedError as exc:
        yield problem("store", str(exc), "`acphost restore BACKUP`, or move it away to begin anew")
    except OSError as exc:
        yield problem("store", f"{path}: {exc.strerror}", f"see who owns it: ls -l {path}")


def _socket(path: Path) -> Iterator[Diagnosis]:
    try:
        check_path(path)
    except SocketPathError as exc:
        yield problem("socket", str(exc), "choose a shorter path")
        return
    try:
        found = path.parent.lstat()
    except OSError:
        yield fine("socket", f"{path} will be made at the start")
        return
    if (judged := _private("socket", path.parent, found)).cure is not None:
        yield judged
        return
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        yield fine("socket", f"nobody listens on {path}")
        return
    if not stat.S_ISSOCK(mode):
        yield problem("socket", f"{path} is no socket", "move it elsewhere")
    else:
        yield fine("socket", str(path))
