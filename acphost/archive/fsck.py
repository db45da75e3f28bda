"""`fsck`: every invariant of the journal, over one moment of a store; nothing is written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from acphost.archive.history import SessionHistory, check_content
from acphost.archive.report import REPORT, RESTORE, Report
from acphost.archive.sealed import sealed_events
from acphost.errors import StorageError
from acphost.journal.audit import Audit, audit
from acphost.journal.audit_selects import AuditedProcess
from acphost.journal.file import SCHEMA_VERSION
from acphost.transport.lineage import remembered
from acphost.transport.processes import Process, boot_id, is_alive, marked

#: Events between two calls that tell how far it is.
_STRIDE = 5000
_MAX_DAMAGE = 100
_START = "start the daemon: it puts this right by itself"


class Progress(Protocol):
    """Hears how far the check is."""

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """So much of it is done; None for a total that nobody knows."""


def _silent(what: str, done: int, total: int | None) -> None:
    pass


def check_store(
    path: Path,
    *,
    daemon_pid: int | None = None,
    here: bool = True,
    progress: Progress = _silent,
) -> Report:
    """Check the store at `path`; `daemon_pid` is who serves it now.

    With `here` the ledger is compared with this machine's processes; a backup's is not.
    Raises StoreRefusedError for what is no store, or one of a newer program.
    """
    report = Report(str(path), daemon_pid=daemon_pid)
    with audit(path) as store:
        _Check(store, report, progress).run()
        if here:
            with _guarded(report, "processes"):
                for row in store.unended_processes():
                    _check_process(row, report)
    return report


@contextmanager
def _guarded(report: Report, check: str) -> Iterator[None]:
    """What cannot be read is a finding, and no reason to look at nothing else."""
    try:
        yield
    except StorageError as exc:
        report.find(check, report.path, f"the check was cut short: {exc}", RESTORE)


class _Check:
    """One run of all checks that need nothing but the store."""

    def __init__(self, store: Audit, report: Report, progress: Progress) -> None:
        self._store = store
        self._report = report
        self._progress = progress
        self._steps = 0
        self._events = 0
        self._total: int | None = None

    def run(self) -> None:
        """All of them; the report has the rest."""
        checks: dict[str, Callable[[], None]] = {
            "identity": self._identity,
            "pages": self._pages,
            "schema": self._schema,
            "references": self._references,
            "keys": self._keys,
            "sequence": self._histories,
            "bindings": self._bindings,
        }
        for name, check in checks.items():
            with _guarded(self._report, name):
                check()

    def _identity(self) -> None:
        report, meta = self._report, self._store.meta()
        store_id = meta.get("storeId")
        report.schema_version = self._store.schema_version()
        if isinstance(store_id, str) and store_id:
            report.store_id = store_id
        else:
            report.find("identity", "meta", "it does not say which store it is (storeId)", RESTORE)
        if not isinstance(meta.get("created"), int):
            report.find("identity", "meta", "it does not say when it was made (created)", RESTORE)
        if report.schema_version < SCHEMA_VERSION:
            report.note(
                "identity", "schema", f"schema {report.schema_version} is older than this program's"
                f" {SCHEMA_VERSION}", "start the daemon: it brings the store up to date",
            )  # fmt: skip

    def _pages(self) -> None:
        def on_step() -> None:
            self._steps += 1
            self._progress("pages", self._steps, None)

        for problem in self._store.damage(_MAX_DAMAGE, on_step):
            self._report.find("pages", self._report.path, problem, RESTORE)
        self._report.count("pages", self._store.pages())

    def _schema(self) -> None:
        for problem in self._store.unlike_schema():
            self._report.find("schema", self._report.path, problem, RESTORE)

    def _references(self) -> None:
        for what, name in self._store.strays():
            self._report.find("references", f"{what} {name}", "names an owner that is not there")
        for table in ("runs", "prompts", "decisions", "bindings", "processes"):
            self._report.count(table, self._store.count(table))

    def _keys(self) -> None:
        for key, runs in self._store.repeated_keys():
            what = f"one idempotency key ({key[:40]}) made several runs"
            self._report.find("keys", f"runs {runs}", what)

    def _histories(self) -> None:
        self._total = self._store.count_events()
        self._progress("events", 0, self._total)
        for session in self._store.sessions():
            self._report.count("sessions")
            history = SessionHistory(session, self._report)
            for sealed in sealed_events(self._store, session, self._report):
                if isinstance(sealed, int):
                    history.skip(sealed)
                else:
                    history.take(sealed)
                    self._step()
            for event in self._store.events(session.key):
                history.take(event)
                self._step()
            runs = self._store.runs(session.key)
            history.compare_runs(runs)
            history.compare_decisions(self._store.decisions(session.key), runs)
        for event in self._store.events(None):
            where = f"host event at offset {event.offset}"
            if event.seq is not None:
                self._report.find("sequence", where, f"has seq {event.seq} and no session")
            check_content(event, where, self._report)
            self._step()
        self._report.count("events", self._events)

    def _step(self) -> None:
        self._events += 1
        if not self._events % _STRIDE:
            self._progress("events", self._events, self._total)

    def _bindings(self) -> None:
        report, seen = self._report, dict[int, str]()
        for each in self._store.live_bindings():
            where = f"binding {each.binding_id}"
            if each.session_key in seen:
                what = f"is live beside {seen[each.session_key]}: a session has one at most"
                report.find("bindings", where, what, _START)
            seen[each.session_key] = each.binding_id
            if each.launch_id is None or not each.is_ledgered:
                report.find("bindings", where, "is live in a process that was never recorded",
                            REPORT)  # fmt: skip
            elif report.daemon_pid is None:
                what = "its process has ended" if each.launch_has_ended else "no daemon runs"
                report.note("bindings", where, f"is live, {what}", _START)


def _check_process(row: AuditedProcess, report: Report) -> None:
    """A launch that was not seen to end, held against the processes of this machine."""
    where = f"launch {row.launch_id} of {row.agent_id} (pid {row.pid})"
    try:
        seen = [each.process for each in remembered(row.descendants)]
    except msgspec.DecodeError as exc:
        report.find("processes", where, f"what it has started cannot be read: {exc}", REPORT)
        seen = []
    if row.boot_id != boot_id():
        report.note("processes", where, "was started before the machine was", _START)
        return
    if report.daemon_pid is not None and row.host_pid == report.daemon_pid:
        return
    is_leader = row.pid is not None and row.birth is not None
    if is_leader and is_alive(Process(row.pid or 0, row.birth or "")):
        report.note("processes", where, "still runs, and the daemon that started it does not",
                    "start the daemon: it ends what is left")  # fmt: skip
    elif left := sorted({*marked(row.launch_id), *filter(is_alive, seen)}):
        pids = ", ".join(str(each.pid) for each in left)
        report.note("processes", where, f"is gone; what it started runs on: pid {pids}",
                    "start the daemon: it ends what is left")  # fmt: skip
    else:
        report.note("processes", where, "is gone, or its pid belongs to a stranger now", _START)
