"""The write-ahead log: bounded whatever clients do, and a warning where somebody holds it open."""

import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.support.daemon import Daemon, payload, running_daemon, started
from tests.support.patience import PATIENCE

FLOOD = """
ON prompt "flood"
    REPEAT 500
        BIG 4K x
ON prompt "flood much"
    REPEAT 3000
        BIG 4K x
"""


async def journal_figures(daemon: Daemon) -> dict[str, Any]:
    """What `host/stats` says of the journal."""
    stats: Any = await daemon.client.stats()
    figures: dict[str, Any] = stats["journal"]
    return figures


async def test_a_program_that_holds_a_read_open_is_warned_of() -> None:
    """The warning is an event and a figure; when the reader lets go the log is emptied."""
    async with (
        running_daemon(FLOOD, host={"journal": {"wal_limit": 1_000_000}}) as daemon,
        daemon.client.subscribe(kinds=["storage.warning", "storage.recovered"]) as events,
    ):
        session = await daemon.session()
        with closing(sqlite3.connect(daemon.journal.path, isolation_level=None)) as outside:
            outside.execute("BEGIN").close()
            outside.execute("SELECT count(*) FROM events").fetchone()
            await daemon.ask(session, "flood much")
            with anyio.fail_after(PATIENCE):
                warning = await anext(events)
            assert warning.kind == "storage.warning"
            assert payload(warning)["walBytes"] > payload(warning)["limitBytes"] == 1_000_000
            figures = await journal_figures(daemon)
            assert figures["walOverLimit"] is True
            assert figures["walBytes"] > 1_000_000
            assert (await daemon.ask(session, "hi")).status == "completed"
            outside.execute("ROLLBACK").close()

        with anyio.fail_after(PATIENCE):
            assert (await anext(events)).kind == "storage.recovered"
        figures = await journal_figures(daemon)
        assert figures["walOverLimit"] is False
        assert figures["walBytes"] < 1_000_000


async def test_clients_that_stop_reading_do_not_hold_the_log() -> None:
    """History and pages of it, asked for and never read, while a turn streams."""
    async with running_daemon(FLOOD) as daemon, daemon.wire() as one, daemon.wire() as two:
        session = await daemon.session()
        run = await daemon.ask(session, "flood")
        for number in range(64):
            page = {"hostRunId": run.host_run_id, "afterSeq": 0, "limit": 2000}
            await one.send(
                {"jsonrpc": "2.0", "id": 1000 + number, "method": "run/events", "params": page}
            )
        await two.send(
            {"jsonrpc": "2.0", "id": 1000, "method": "events/subscribe",
             "params": {"scope": {"all": True}}}
        )  # fmt: skip
        for number in range(6):
            assert (await daemon.ask(session, "flood", requestId=str(number))).status == "completed"
            assert (await journal_figures(daemon))["walBytes"] < 32_000_000


@pytest.mark.timeout(90)
async def test_programs_that_are_stopped_in_mid_answer_do_not_hold_the_log(tmp_path: Path) -> None:
    """Histories on their way to who is frozen, and copies of the store, while a turn streams."""
    async with running_daemon(FLOOD) as daemon, daemon.connect() as other:
        session = await daemon.session()
        await daemon.ask(session, "flood much")
        command = [sys.executable, "-m", "acphost", *daemon.flags, "attach", session, "--json"]
        readers = [started(*command) for _ in range(3)]
        try:
            for reader in readers:
                assert reader.stdout is not None
                await anyio.to_thread.run_sync(reader.stdout.readline)
                os.kill(reader.pid, signal.SIGSTOP)
            async with anyio.create_task_group() as tasks:
                for number in range(4):
                    path = str(tmp_path / f"copy-{number}")
                    tasks.start_soon(other.backup, path)
                    run = await daemon.ask(session, "flood", requestId=str(number))
                    assert run.status == "completed"
                    assert (await journal_figures(daemon))["walBytes"] < 32_000_000
            for reader in readers:
                os.kill(reader.pid, signal.SIGCONT)
                assert reader.stdout is not None
                told = await anyio.to_thread.run_sync(reader.stdout.readline)
                assert json.loads(told)["sessionId"] == session
        finally:
            for reader in readers:
                reader.kill()
                reader.communicate()
