"""The demo's throwaway daemon, with agents of a test's own beside the demo agent."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from acphost.demo.throwaway import Throwaway, throwaway


@asynccontextmanager
async def demo_daemon(
    monkeypatch: pytest.MonkeyPatch, agents: str, **scripts: str
) -> AsyncGenerator[Throwaway]:
    """One that runs; `FOLDER` in tables and scripts is its folder, where NAME.script are."""
    for name in [name for name in os.environ if name.startswith("ACPHOST_")]:
        monkeypatch.delenv(name)
    async with throwaway() as started:
        folder = str(started.folder)
        for name, script in scripts.items():
            file = anyio.Path(folder, f"{name}.script")
            await file.write_text(script.replace("FOLDER", folder))
        config = anyio.Path(folder, "config.toml")
        await config.write_text(await config.read_text() + agents.replace("FOLDER", folder))
        await started.start()
        yield started
