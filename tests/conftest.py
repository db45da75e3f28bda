"""What every test may use."""

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two shared cores are slow at times; a slow example says nothing about the code.
settings.register_profile(
    "acphost", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("acphost")

# Tests start hundreds of processes; compiling the sources would take each half of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture
def anyio_backend() -> str:
    """The daemon runs on asyncio only: aiosqlite needs it."""
    return "asyncio"


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A private directory with a path short enough for any Unix socket in it."""
    path = Path(tempfile.mkdtemp(prefix="ah-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests have recorded as `told`, line by line, and the sum of what they counted."""
    tally: Counter[str] = Counter()
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, value in report.user_properties:
                    if name == "told":
                        terminalreporter.write_line(str(value))
                    elif name == "tally":
                        tally.update(value)
    if tally:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(tally.items()))
        terminalreporter.write_line(f"crash: {counts}; 0 missing, 0 repeated, 0 gaps, "
                                    "0 second prompts, 0 processes left")  # fmt: skip
