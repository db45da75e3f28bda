"""What a run has changed: `mnote.ai_run_receipt.v1` (contract section 9)."""

from typing import Literal

from acphost.wire.base import HostRecord

RECEIPT_SCHEMA = "mnote.ai_run_receipt.v1"


class ChangedFile(HostRecord, frozen=True):
    """One file; `before` and `after` are `sha256:` and the digest, null where it is not known."""

    path: str
    change: Literal["created", "modified", "deleted"]
    #: What changed it, as far as the host can tell; `agent`: while the run was at work.
    by: Literal["tool", "fs", "terminal", "agent"]
    before: str | None
    after: str | None
    #: Whether the run is known to have left it so. What only changed while it was at work may be a
    #: person's doing, or that of a program which somebody else runs.
    certain: bool = False


class Refresh(HostRecord, frozen=True):
    """What an editor has to look at again."""

    touches_current_file: bool
    should_refresh_editor: bool
    affected_parents: list[str]


class Receipt(HostRecord, frozen=True):
    """All that a run has changed, as far as it was seen."""

    host_run_id: str
    changed_files: list[ChangedFile]
    conflict: Literal["none", "external-change-conflict"]
    refresh: Refresh
    #: Why there may be more; null: there is not.
    incomplete: str | None
    schema: str = RECEIPT_SCHEMA
