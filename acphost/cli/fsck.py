"""`acphost fsck`: check the store, or a backup, without changing it."""

from pathlib import Path

from acphost.archive.fsck import check_store
from acphost.archive.report import Finding, Report
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import STORE_NAME, state_dir_of
from acphost.cli.progress import Progress
from acphost.cli.screen import Pen, err, out
from acphost.errors import StoreRefusedError
from acphost.transport.lock import lock_holder


def run(options: Options) -> int:
    """Run the command: 0 clean, 1 with findings, 78 if it is no store."""
    path = Path(options.file).absolute() if options.file else state_dir_of(options) / STORE_NAME
    report = examine(path)
    if options.json:
        print_json(as_json(report))
    else:
        show(report)
    return Exit.OK if report.is_clean else Exit.FAILURE


def examine(path: Path, *, here: bool | None = None) -> Report:
    """Check the store at `path`; its processes only where its state directory is (or `here`)."""
    if not path.exists():
        raise CommandError(f"there is no store at {path}", StoreRefusedError.exit_code)
    is_home = path.name == STORE_NAME if here is None else here
    holder = lock_holder(path.parent) if is_home else None
    progress = Progress(err(), "checking")
    try:
        return check_store(path, daemon_pid=holder, here=is_home, progress=progress)
    finally:
        progress.clear()


def show(report: Report) -> None:
    """The report for a person."""
    pen = out()
    pen.line(report.path, "bold")
    served = "no daemon runs" if report.daemon_pid is None else f"served by pid {report.daemon_pid}"
    pen.line(f"store {report.store_id}, schema {report.schema_version}; {served}")
    counts = ", ".join(f"{number} {what}" for what, number in report.checked.items())
    pen.line(f"checked: {counts}")
    for each in report.notes:
        _show(pen, "open", each, "yellow")
    for each in report.findings:
        _show(pen, "FOUND", each, "red")
    if report.untold:
        pen.line(f"and {report.untold} more of the same sorts", "red")
    if not report.findings:
        what = "clean" if not report.notes else "clean; what is open is closed at the next start"
        pen.line(what, "green")
    else:
        pen.line(f"{len(report.findings) + report.untold} findings", "red")


def _show(pen: Pen, word: str, finding: Finding, colour: str) -> None:
    pen.line(f"{pen.paint(word, colour)} {finding.check}: {pen.safe(finding.where)}: "
             f"{pen.safe(finding.what)}")  # fmt: skip
    pen.line(f"      {finding.cure}", "dim")


def as_json(report: Report) -> dict[str, object]:
    """The report for a program."""
    return {
        "path": report.path,
        "storeId": report.store_id,
        "schemaVersion": report.schema_version,
        "daemonPid": report.daemon_pid,
        "clean": report.is_clean,
        "checked": report.checked,
        "findings": report.findings,
        "moreFindings": report.untold,
        "notes": report.notes,
    }
