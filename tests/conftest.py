"""What every test may use."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two shared cores are slow at times; a slow example says nothing about the code.
settings.register_profile(
    "acphost", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("acphost")


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
