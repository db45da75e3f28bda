"""What every test may use."""

import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import nursery

# Two shared cores are slow at times; a slow example says nothing about the code.
settings.register_profile(
    "acphost", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("acphost")

#: Folders whose tests need a daemon, rather than the start of one.
_WITH_DAEMONS = {"contract", "e2e"}

# Tests start hundreds of processes; compiling the sources would take each half of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Some shells start what runs in the background deaf to Ctrl-C: every program under test would
    # be, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Daemons of most tests come ready from the nursery; what it is about says which do not."""
    folder = item.path.relative_to(item.config.rootpath / "tests").parts[0]
    is_like_any_other = item.get_closest_marker("anew") is None
    nursery.is_open = folder in _WITH_DAEMONS and is_like_any_other


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
