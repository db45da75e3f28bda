"""What the doctor says: what was looked at, how it is, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from acphost.settings.load import Loaded
from acphost.wire.agents import Severity


class Diagnosis(Struct, frozen=True, rename="camel"):
    """One thing that was looked at."""

    area: str
    severity: Severity
    message: str
    cure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is looked at: a configuration and the places it leads to."""

    flags: Mapping[str, object]
    environ: Mapping[str, str]
    loaded: Loaded
    config: Path
    state_dir: Path
    socket: Path


def fine(area: str, message: str) -> Diagnosis:
    """All is well there."""
    return Diagnosis(area, Severity.OK, message)


def warning(area: str, message: str, cure: str) -> Diagnosis:
    """It works, and something may still surprise."""
    return Diagnosis(area, Severity.WARNING, message, cure)


def problem(area: str, message: str, cure: str) -> Diagnosis:
    """It does not work."""
    return Diagnosis(area, Severity.PROBLEM, message, cure)
