"""What a check of a store found, for people and for programs."""

from dataclasses import dataclass, field

import msgspec

#: Of one sort of trouble so much is told in full; the rest is counted.
MAX_ALIKE = 20


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that must not be: what, where, and what to do about it."""

    check: str
    where: str
    what: str
    cure: str


#: There is no way to mend a journal by hand that could be trusted.
RESTORE = "restore a backup made before it (`acphost restore FILE`), and report the store"
REPORT = "the history is readable; keep a copy of the store and report it"


@dataclass(slots=True)
class Report:
    """All that was looked at, and what is wrong with it."""

    path: str
    store_id: str | None = None
    schema_version: int | None = None
    daemon_pid: int | None = None
    #: How many of each were looked at.
    checked: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    #: What the next start of the daemon puts right by itself.
    notes: list[Finding] = field(default_factory=list)
    _told: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def count(self, what: str, number: int = 1) -> None:
        """So many more of these were looked at."""
        self.checked[what] = self.checked.get(what, 0) + number

    def find(self, check: str, where: str, what: str, cure: str = REPORT) -> None:
        """Something is wrong."""
        # A store that lost an index or a page has the same to say of every row.
        alike = self._told[check, cure] = self._told.get((check, cure), 0) + 1
        if alike <= MAX_ALIKE:
            self.findings.append(Finding(check=check, where=where, what=what, cure=cure))

    def note(self, check: str, where: str, what: str, cure: str) -> None:
        """Something is open that the next start closes."""
        self.notes.append(Finding(check=check, where=where, what=what, cure=cure))

    @property
    def untold(self) -> int:
        """How many findings were only counted."""
        return sum(max(0, number - MAX_ALIKE) for number in self._told.values())
