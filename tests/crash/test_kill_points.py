"""kill -9 at every named point: of reconciliation, migration, sealing, backup and deletion.

The real daemon process ends itself there; see `lethal.py`.
"""

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acphost.archive.fsck import check_store
from acphost.errors import ConnectionLostError
from acphost.journal.event import STORED_FIELDS, EventRow
from acphost.journal.migrations import MIGRATIONS, migrate
from acphost.journal.packs import PACK, StoredRow, unpacked
from tests.crash.points import Points, SavedState, sound
from tests.support.daemon import Daemon, eventually, marked_processes, running_daemon

LONG = 1800

SCRIPT = """
ON prompt "work"
    CALL c1 in_progress
    PERM c1 yes:allow_once no:reject_once
    MSG "worked"
ON prompt "stuck"
    CALL c2 in_progress
    MSG "stuck "
    STAY
ON cancel
    MARK ${DIR}/cancelled
    STAY
ON prompt ~"^flood (\\d+)"
    CALL c${N} in_progress
    FLOOD ${1}
    UPD c${N} completed
ON prompt
    MSG "an answer to ${PROMPT}"
"""
SLOW = "ON new\n    MARK ${DIR}/new\n    STAY\n"


Record = Callable[[str, object], None]


# -- reconciliation -------------------------------------------------------------------------------


async def busy_until_killed(daemon: Daemon) -> str:
    """Everything that a death can leave open; returns the session with a queue."""
    client = daemon.client
    unresolved = await daemon.session()
    await daemon.is_running(await daemon.send(unresolved, "stuck"))
    await daemon.restart()
    await daemon.ask(await daemon.session("broken"), "hello")
    resting = await daemon.session()
    await client.queue_hold(resting, "lunch")
    await daemon.send(resting, "after lunch")
    queueing = await daemon.session()
    await daemon.send(queueing, "work")
    await daemon.question(queueing)
    for number in range(3):
        await daemon.send(queueing, f"later {number}")
    cancelling = await daemon.session()
    run = await daemon.send(cancelling, "stuck")
    await daemon.is_running(run)
    await daemon.has_event(cancelling, "message.delta")
    await client.cancel(run.host_run_id)
    await daemon.marked("cancelled")
    await daemon.ask(await daemon.session(), "hello")
    starting = await daemon.session("slow")
    await daemon.send(starting, "first")
    await daemon.send(starting, "second")
    await daemon.marked("new")
    await daemon.kill()
    return queueing


def picture(daemon: Daemon) -> dict[str, Any]:
    """The store without what is new in every life: ids, times and offsets."""
    query = daemon.journal.query
    events: dict[str, list[str]] = defaultdict(list)
    for row in daemon.journal.rows():
        if row.session_id is not None:
            events[row.session_id].append(row.kind)
    return {
        "events": events,
        "sessions": query(
            "SELECT session_id, status, status_reason, held_reason, active_run_id,"
            " last_run_status FROM sessions ORDER BY key"
        ),
        "runs": query(
            "SELECT run_id, status, error_code, queue_order, terminal_seq FROM runs ORDER BY key"
        ),
        "decisions": query("SELECT permission_id, status FROM decisions ORDER BY permission_id"),
        "bindings": query("SELECT binding_id, status, reason FROM bindings ORDER BY binding_id"),
        "running": query("SELECT launch_id FROM processes WHERE ended_at IS NULL"),
    }


@pytest.mark.timeout(LONG)
async def test_a_start_that_is_killed_half_way_is_made_good_by_the_next(
    record_property: Record,
) -> None:
    """After every write of reconciliation, once and again: the same end as without any kill."""
    others, agent = {"slow": SLOW, "broken": "EXIT 1\n"}, {"cancel_grace": 60}
    async with running_daemon(
        SCRIPT, others=others, agent=agent, check=False, follow=False
    ) as daemon:
        queueing = await busy_until_killed(daemon)
        saved = SavedState(daemon)
        await daemon.start()
        expected = picture(daemon)
        assert [run["status"] for run in expected["runs"]].count("interrupted") == 3
        assert {run["error_code"] for run in expected["runs"]} == {
            None, "host_restarted", "cancel_unconfirmed", "agent_unavailable",
        }  # fmt: skip
        assert {row["held_reason"] for row in expected["sessions"]} == {
            None, "host_restarted", "user: lunch",
        }  # fmt: skip
        await daemon.kill()
        assert marked_processes(daemon.launch_ids()) == []

        points = Points(daemon, r"^sql (BEGIN IMMEDIATE|INSERT|UPDATE|DELETE)")
        async for number in points.lives(20, saved.put_back):
            sound(daemon)
            # From what that left it is killed once more, at the same distance from its start.
            points.arm(number)
            if not await daemon.comes_up() or points.was_reached:
                await daemon.exit_code()
                points.count()
            else:
                await daemon.kill()
            points.disarm()
            await daemon.start()
            assert picture(daemon) == expected, points.kills[-2:]
            await daemon.kill()
            sound(daemon)

        points.disarm()
        await daemon.start()
        await daemon.client.queue_release(queueing)
        for item in await daemon.queue(queueing):
            ended = await daemon.client.wait(item.run_id)
            assert ended.status == "completed"
        assert daemon.prompts() == [
            "stuck", "work", "stuck", "hello", "later 0", "later 1", "later 2",
        ]  # fmt: skip
        assert daemon.prompts("slow") == []
        for agent_id in ("slow", "broken"):
            daemon.rewrite("", agent_id)
        await daemon.client.reload()
        for row in expected["sessions"]:
            await daemon.client.queue_release(row["session_id"])
            last = await daemon.ask(row["session_id"], "and on")
            assert last.status == "completed", (row, last)
        await daemon.stop()
        sound(daemon)
        assert daemon.left_behind() == []
    record_property("told", points.report("reconciliation"))


# -- making and migrating the store ---------------------------------------------------------------


@pytest.mark.timeout(LONG)
async def test_a_store_that_is_being_made_is_there_whole_or_not_at_all(
    record_property: Record,
) -> None:
    """Killed at each statement and file of the first start; the next one begins again."""
    async with running_daemon(SCRIPT, check=False, follow=False) as daemon:
        await daemon.stop()
        points = Points(daemon, r"^file create \S+journal\.db\.new")

        def begin() -> None:
            for path in daemon.state.glob("*journal.db*"):
                path.unlink()

        async for _ in points.lives(30, begin):
            points.disarm()
            await daemon.start(is_followed=False)
            assert not list(daemon.state.glob("*.new*"))
            await daemon.stop()
            sound(daemon)
    record_property("told", points.report("the making of a store"))


def as_first_schema(path: Path) -> None:
    """Turn a store back into what the first release would have written."""
    old = path.with_name("old.db")
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        migrate(connection, at=1, migrations=MIGRATIONS[:1])
        connection.execute("ATTACH ? AS new", (str(path),))
        (application,) = connection.execute("PRAGMA new.application_id").fetchone()
        connection.execute(f"PRAGMA application_id = {application}")
        tables = connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
        for (table,) in tables.fetchall():
            if table != "migrations":
                names = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
                columns = ", ".join(name for (name,) in names)
                connection.execute(
                    f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"  # noqa: S608
                )
        # A row of that schema is one event.
        packs = connection.execute("SELECT * FROM new.events WHERE codec = ?", (PACK,)).fetchall()
        connection.execute("DELETE FROM main.events WHERE codec = ?", (PACK,))
        for *last, events in packs:
            connection.executemany(
                f"INSERT INTO main.events VALUES ({', '.join('?' * STORED_FIELDS)})",  # noqa: S608
                [row[:STORED_FIELDS] for row in unpacked(StoredRow(EventRow(*last), events))],
            )
        connection.execute("DETACH new")
        connection.execute("PRAGMA journal_mode = WAL").close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    old.replace(path)


@pytest.mark.timeout(LONG)
async def test_a_migration_is_done_whole_or_not_at_all(
    record_property: Record,
) -> None:
    """Killed at each of its statements: nothing of the old store is gone, and the next start does
    it.
    """
    async with running_daemon(SCRIPT, check=False, follow=False) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hello")
        await daemon.ask(session, "flood 500")
        await daemon.stop()
        before = daemon.journal.rows()
        as_first_schema(daemon.journal.path)
        saved = SavedState(daemon)
        points = Points(daemon, r"^sql BEGIN IMMEDIATE")
        async for _ in points.lives(14, saved.put_back):
            with closing(sqlite3.connect(daemon.journal.path)) as connection:
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                (recorded,) = connection.execute("SELECT max(number) FROM migrations").fetchone()
            assert version == recorded, points.kills[-1]
            points.disarm()
            await daemon.start()
            await daemon.stop()
            sound(daemon)
            assert daemon.journal.rows()[: len(before)] == before, points.kills[-1]
    record_property("told", points.report("migration"))


# -- sealing and deleting -------------------------------------------------------------------------


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize(
    ("pattern", "most"), [(r"^sql INSERT INTO segments", 12), (r"^sql PRAGMA incremental_vac", 4)]
)
async def test_killed_while_sealing_no_event_is_gone_or_there_twice(
    pattern: str, most: int, record_property: Record
) -> None:
    """Before each statement that seals, and where the file is shortened: readers cannot tell."""
    host = {"journal": {"seal_after": 3600}}
    async with running_daemon(SCRIPT, host=host, check=False, follow=False) as daemon:
        session = await daemon.session()
        for _ in range(2):
            await daemon.ask(session, "flood 3000", requestId=str(time.monotonic_ns()))
        await daemon.kill()
        daemon.configure(journal={"seal_after": 0})
        saved, before = SavedState(daemon), daemon.journal.rows()
        points = Points(daemon, pattern)
        # Behind those come the same statements once more, or none any more.
        async for _ in points.lives(most, saved.put_back, all_there=True):
            sound(daemon)
            assert daemon.journal.rows()[: len(before)] == before, points.kills[-1]
        points.disarm()
        await daemon.start()
        await daemon.stop()
        sound(daemon)
        assert daemon.journal.rows()[: len(before)] == before
        assert daemon.left_behind() == []
    record_property("told", points.report("sealing"))


@pytest.mark.timeout(LONG)
async def test_killed_while_deleting_a_session_is_there_whole_or_gone_whole(
    record_property: Record,
) -> None:
    """Before each statement that deletes a session by its age; asked again, it is all gone."""
    host = {"journal": {"seal_after": 0}}
    async with running_daemon(SCRIPT, host=host, check=False, follow=False) as daemon:
        old, new = await daemon.session(), await daemon.session()
        for session in (old, new):
            await daemon.ask(session, "flood 300")
        await daemon.stop()
        with closing(sqlite3.connect(daemon.journal.path)) as connection, connection:
            connection.execute("UPDATE sessions SET updated_at = 1 WHERE session_id = ?", (old,))
        daemon.configure(**{"journal.retention": {"max_age_days": 1}})
        saved = SavedState(daemon)
        points = Points(daemon, r"^sql INSERT INTO meta .*lastOffset")
        # Behind those it is deleted.
        async for _ in points.lives(
            13, saved.put_back, all_there=True, spur=daemon.client.retention
        ):
            sound(daemon)
            points.disarm()
            await daemon.start()
            await daemon.client.retention()
            await eventually(lambda: sessions_of(daemon) == [new])
            await daemon.stop()
            sound(daemon)
            rows = daemon.journal.rows()
            assert len({row.offset for row in rows}) == len(rows)
            assert {row.session_id for row in rows} == {None, new}
    record_property("told", points.report("the deletion of a session"))


def sessions_of(daemon: Daemon) -> list[str]:
    return [row["session_id"] for row in daemon.journal.query("SELECT session_id FROM sessions")]


# -- backup ---------------------------------------------------------------------------------------


@pytest.mark.timeout(LONG)
async def test_a_backup_that_is_killed_leaves_no_half_and_harms_nothing(
    record_property: Record,
) -> None:
    """In each of its steps, while a turn streams: what it left is removed by the next one."""
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "flood 9000")
        target = daemon.folder / "backup.db"
        await daemon.kill()
        points = Points(daemon, r"^file create \S+part_")
        is_over = False
        for number in points.numbers(12):
            target.unlink(missing_ok=True)
            points.arm(number)
            await daemon.start()
            run = await daemon.send(session, f"flood {400 + number}")
            await daemon.is_running(run)
            try:
                await daemon.client.backup(str(target), force=True)
                is_over = True
            except ConnectionLostError:
                await daemon.exit_code()
                points.count()
                # Without its last name it is nobody's backup; with it it is a whole one.
                assert not target.exists() or check_store(target, here=False).is_clean
            else:
                await daemon.kill()
            if is_over:
                break
        points.disarm()
        await daemon.start()
        await daemon.client.backup(str(target), force=True)
        assert check_store(target, here=False).is_clean
        assert [path.name for path in daemon.folder.glob(".*part_*")] == []
    record_property("told", points.report("backup"))
