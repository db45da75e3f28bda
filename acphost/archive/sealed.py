"""The segments of a session: whether they decode, and say what the index says of them."""

from collections.abc import Iterator

from acphost.archive.report import RESTORE, Report
from acphost.errors import StorageError
from acphost.journal.audit import Audit
from acphost.journal.audit_selects import AuditedEvent, AuditedSegment, AuditedSession
from acphost.journal.segments import SealedRun, Segment
from acphost.wire.event import TERMINAL_KINDS


def sealed_events(
    store: Audit, session: AuditedSession, report: Report
) -> Iterator[AuditedEvent | int]:
    """The sealed events of a session in their order; a seq stands for a part that is unreadable,
    which ends there.
    """
    for kept in store.segments(session.key):
        report.count("segments")
        head = kept.head
        where = f"session {session.session_id}, segment of seq {head.first_seq} to {head.last_seq}"
        try:
            yield from _events(store, kept, where, report)
        except (StorageError, ValueError, IndexError, OverflowError) as exc:
            report.find("segments", where, f"cannot be read: {exc}", RESTORE)
            yield head.last_seq


def _events(
    store: Audit, kept: AuditedSegment, where: str, report: Report
) -> Iterator[AuditedEvent]:
    if kept.facts is None or kept.payloads is None:
        raise StorageError("its content is missing")
    segment = Segment(kept.head, kept.facts, kept.payloads)
    runs: dict[int, SealedRun] = {}
    size = 0
    for place in range(len(segment)):
        row = segment.row(place, None, _nameless)
        size += len(row.payload)
        if row.run_key is not None:
            known = runs.get(row.run_key)
            terminal = row.seq if row.kind in TERMINAL_KINDS else known and known.terminal_seq
            runs[row.run_key] = SealedRun(row.run_key, row.seq or 0, terminal)
        yield AuditedEvent(
            row.offset, row.seq, row.run_key, row.kind, 0, row.flags, row.payload, row.host,
            row.origin,
        )  # fmt: skip
    if len(segment) != kept.events or size != kept.raw_bytes:
        report.find(
            "segments", where, f"has {len(segment)} events of {size} bytes, its index says"
            f" {kept.events} of {kept.raw_bytes}", RESTORE,
        )  # fmt: skip
    told = store.sealed_runs(kept.head.first_offset)
    if told != [runs[key] for key in sorted(runs)]:
        report.find("segments", where, "its index names other runs, or other ends, than it has",
                    RESTORE)  # fmt: skip


def _nameless(_: int) -> None:
    return None
