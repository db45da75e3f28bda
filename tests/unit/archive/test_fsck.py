"""fsck: silent over what a real daemon wrote, and loud about every way to spoil it."""

# ruff: noqa: S608 - the statements are put together here, from nothing else

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from acphost.archive.fsck import check_store
from acphost.archive.report import Report
from acphost.errors import StoreRefusedError
from acphost.journal.file import SCHEMA_VERSION
from acphost.journal.seal import read_sealable, read_unsealed
from acphost.journal.segment_cache import SegmentCache
from acphost.transport.processes import birth, boot_id
from tests.support.daemon import running_daemon

SCRIPT = """
ON prompt "ask"
    CALL c1 pending kind=edit
    PERM c1 yes:allow_once no:reject_once
    UPD c1 completed
    MSG "done"
ON prompt "much"
    REPEAT 500
        MSG "word ${I} "
ON prompt "last"
    MARK ${DIR}/begun
    STAY
ON prompt
    CALL t1 in_progress
    MSG "an answer"
    UPD t1 completed
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def good(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a daemon that ran, asked, queued and was stopped in order."""
    kept = tmp_path_factory.mktemp("good") / "journal.db"
    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hello")
        asked = await daemon.send(session, "ask")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "yes")
        await daemon.wait(asked)
        await daemon.ask(session, "much")
        running = await daemon.send(session, "last")
        await daemon.marked("begun")
        await daemon.send(session, "waits")
        await daemon.send(session, "waits too")
        await daemon.cancel(running, hold_queue=True)
        await daemon.wait(running)
        other = await daemon.session()
        await daemon.ask(other, "hello you")
        await daemon.stop()
        shutil.copy(daemon.journal.path, kept)
    return kept


def spoilt(good: Path, folder: Path, spoil: str) -> Path:
    """A copy of the store with something done to it."""
    path = folder / "copy.db"
    shutil.copy(good, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(spoil)
    return path


def found(report: Report) -> set[str]:
    return {finding.check for finding in report.findings}


def test_a_good_store_is_clean(good: Path) -> None:
    """Nothing is found, nothing is open, and everything was looked at."""
    report = check_store(good)

    assert (report.findings, report.notes) == ([], [])
    assert report.checked["sessions"] == 2
    assert report.checked["runs"] == report.checked["prompts"] == 7
    assert report.checked["decisions"] == 1
    assert report.checked["waiting runs"] == 2
    assert report.checked["events"] > 540
    assert report.schema_version == SCHEMA_VERSION


#: An ended run of the store, and one that waits.
_ENDED = "(SELECT key FROM runs WHERE status = 'completed' ORDER BY key LIMIT 1)"
_END = f"(run_key = {_ENDED} AND kind = 'run.completed')"
_WAITING = "(SELECT min(key) FROM runs WHERE status = 'pending')"
#: The first of the rows that hold several events.
_PACK = "offset = (SELECT min(offset) FROM events WHERE codec = 2)"
_AFTER = "(SELECT max(offset) FROM events)"
_SEQ = "(SELECT max(seq) FROM events WHERE session_key = 1)"


def event(kind: str, run: str, *, host: str = "NULL", flags: int = 0, payload: str = "{}") -> str:
    """One more event at the end of the first session."""
    return f"""
        INSERT INTO events (offset, session_key, seq, run_key, kind, source, flags, payload, host,
        at) VALUES ({_AFTER} + 1, 1, {_SEQ} + 1, {run}, '{kind}', 'mnote', {flags},
        CAST('{payload}' AS BLOB), CAST({host} AS BLOB), 1)
    """


SPOILT: dict[str, tuple[str, str, str]] = {
    "an event is missing": (
        "DELETE FROM events WHERE session_key = 1 AND seq = 9", "sequence", "seq 9 missing"),
    "an event is there twice": (
        """DROP INDEX events_by_session;
        INSERT INTO events SELECT (SELECT max(offset) + 1 FROM events), session_key, seq, run_key,
        kind, source, codec, flags, payload, host, origin, at, events FROM events
        WHERE session_key = 1 AND seq = 5""", "sequence", "seq 5 stands where 6 was due"),
    "two events changed places": (
        """UPDATE events SET seq = -1 WHERE session_key = 1 AND seq = 5;
        UPDATE events SET seq = 5 WHERE session_key = 1 AND seq = 4;
        UPDATE events SET seq = 4 WHERE session_key = 1 AND seq = -1""",
        "sequence", "is not behind"),
    "a host event has a seq": (
        """UPDATE events SET seq = 7 WHERE offset =
        (SELECT min(offset) FROM events WHERE session_key IS NULL)""", "sequence", "no session"),
    "a terminal event is missing": (
        f"""UPDATE events SET kind = 'error' WHERE {_END}""", "runs", "no terminal event"),
    "a run has ended twice": (
        event("run.failed", _ENDED, host="""'{"late":true}'"""), "runs", "2 terminal events"),
    "an open run has an end": (event("run.cancelled", _WAITING), "runs", "is open, yet"),
    "a run ended otherwise": (
        f"UPDATE events SET kind = 'run.failed' WHERE {_END}", "runs", "ended as failed"),
    "the end of a run is somewhere else": (
        f"UPDATE runs SET terminal_seq = terminal_seq - 1 WHERE key = {_ENDED}", "runs",
        "its row says"),
    "a run was created twice": (
        event("run.created", _WAITING), "runs", "2 events run.created"),
    "a run begins somewhere else": (
        f"UPDATE runs SET first_seq = 1 WHERE key = {_ENDED}", "runs", "begins at seq"),
    "an event came too late": (
        event("message.delta", _ENDED), "runs", "not marked late"),
    "a prompt is missing": (
        f"DELETE FROM prompts WHERE run_key = {_WAITING}", "prompts", "its prompt is missing"),
    "two runs have one place": (
        "UPDATE runs SET queue_order = 9 WHERE status = 'pending'", "queue", "both have place 9"),
    "a run has no place": (
        f"UPDATE runs SET queue_order = 0 WHERE key = {_WAITING}", "queue", "is none"),
    "a session names a run that does not run": (
        "UPDATE sessions SET active_run_id = 'run_x' WHERE key = 1", "queue", "run_x"),
    "two prompts run at a time": (
        "UPDATE runs SET status = 'running' WHERE status = 'pending'", "queue", "2 prompts"),
    "a question is open that was answered": (
        "UPDATE decisions SET status = 'pending'", "decisions", "is open"),
    "nobody heard of an answer": (
        "UPDATE events SET kind = 'error' WHERE kind = 'permission.resolved'", "decisions",
        "no event tells that it was resolved"),
    "a question has no row": ("DELETE FROM decisions", "decisions", "no row"),
    "a session has two bindings": (
        """UPDATE bindings SET status = 'live' WHERE session_key = 1;
        INSERT INTO bindings (binding_id, session_key, launch_id, mode, status, created_at)
        SELECT 'bind_x', session_key, launch_id, mode, 'live', created_at + 1 FROM bindings
        WHERE session_key = 1 LIMIT 1""", "bindings", "is live beside"),
    "a binding has no process": (
        "UPDATE bindings SET status = 'live', launch_id = 'launch_x' WHERE session_key = 1",
        "bindings", "never recorded"),
    "a tool call is open for ever": (
        "UPDATE events SET kind = 'tool.updated' WHERE kind = 'tool.completed'", "tools", "'t1'"),
    "a payload is no JSON": (
        "UPDATE events SET payload = CAST('{\"a' AS BLOB) WHERE kind = 'message.delta'",
        "payloads", "is no JSON"),
    "a payload is not UTF-8 and not marked": (
        "UPDATE events SET payload = x'22ff22' WHERE kind = 'message.delta'", "payloads",
        "not marked lossy"),
    "what the host knows is no JSON": (
        "UPDATE events SET host = x'00' WHERE kind = 'message.delta'", "payloads", "its host"),
    "the store has no name": ("DELETE FROM meta WHERE name = 'storeId'", "identity", "storeId"),
    "a key made two runs": (
        """CREATE TABLE other AS SELECT * FROM runs; DROP TABLE runs;
        ALTER TABLE other RENAME TO runs; UPDATE runs SET idempotency_key = 'same'""",
        "keys", "made several runs"),
    "an index is missing": ("DROP INDEX runs_live", "schema", "index runs_live is missing"),
    "a session is gone": ("DELETE FROM sessions WHERE key = 2", "references", "not there"),
    "a run is gone": (f"DELETE FROM runs WHERE key = {_ENDED}", "references", "not there"),
    "an event is packed in an unknown way": (
        "UPDATE events SET codec = 77 WHERE kind = 'message.delta' AND session_key = 1",
        "sequence", "codec 77"),
    "a pack was cut": (
        f"UPDATE events SET payload = substr(payload, 1, length(payload) - 1) WHERE {_PACK}",
        "sequence", "cannot unpack"),
    "a pack counts otherwise": (
        f"UPDATE events SET events = events + 1 WHERE {_PACK}", "sequence", "cannot unpack"),
    "an event in a pack is no JSON": (
        f"""UPDATE events SET payload = CAST(substr(payload, 1, length(payload) - 1) || '"' AS BLOB)
        WHERE {_PACK}""", "payloads", "is no JSON"),
    "a pack is missing": (f"DELETE FROM events WHERE {_PACK}", "sequence", "missing"),
    "one event says it is several": (
        f"UPDATE events SET events = 3 WHERE {_END}", "sequence", "says it is 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
def test_each_corruption_is_found(name: str, good: Path, tmp_path: Path) -> None:
    """What was done to a copy of a good store is told, with what it is and where."""
    spoil, check, words = SPOILT[name]
    report = check_store(spoilt(good, tmp_path, spoil))

    told = [each.what for each in report.findings if each.check == check]
    assert any(words in what for what in told), report.findings
    assert all(each.where and each.what and each.cure for each in report.findings)


def test_what_comes_late_and_says_so_is_no_finding(good: Path, tmp_path: Path) -> None:
    """A run may still receive what its agent says too late."""
    spoil = event("message.delta", _ENDED, host="""'{"late":true}'""")

    assert check_store(spoilt(good, tmp_path, spoil)).is_clean


def test_a_damaged_page_is_found(good: Path, tmp_path: Path) -> None:
    """Bytes overwritten in the file itself, where the events are."""
    path = spoilt(good, tmp_path, "VACUUM")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 8192)

    report = check_store(path)

    assert "pages" in found(report)
    assert not report.is_clean


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"SQLite format 2\0", "not a database"), (b"# notes\n", "not a database")],
)
def test_what_is_no_store_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    """An empty file, another format, a text."""
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(StoreRefusedError, match=words):
        check_store(path)


def test_another_program_and_a_newer_one_are_refused(good: Path, tmp_path: Path) -> None:
    """Both by what they say of themselves; the file is left alone."""
    path = spoilt(good, tmp_path, "PRAGMA application_id = 1")
    with pytest.raises(StoreRefusedError, match="another program"):
        check_store(path)
    path = spoilt(good, tmp_path, "PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(StoreRefusedError, match=r"schema 999, .* up to"):
        check_store(path)
    assert path.read_bytes() == before


def test_a_check_writes_nothing(good: Path, tmp_path: Path) -> None:
    """Also not into a store with findings."""
    path = spoilt(good, tmp_path, "DELETE FROM events WHERE seq = 3")
    before = path.read_bytes()

    check_store(path)

    assert path.read_bytes() == before


def ledger(boot: str, pid: int, born: str) -> str:
    return (
        "UPDATE processes SET ended_at = NULL;"
        f"UPDATE processes SET boot_id = '{boot}', pid = {pid}, birth = '{born}'"
    )


@pytest.mark.parametrize(
    ("boot", "born", "words"),
    [("other", "1", "before the machine"), ("", "1", "stranger"), ("", "", "still runs")],
)
def test_the_ledger_is_compared_with_the_system(
    boot: str, born: str, words: str, good: Path, tmp_path: Path
) -> None:
    """Launches that nobody saw end: of another boot, with a reused pid, and one that lives."""
    parent = 1
    spoil = ledger(boot or boot_id(), parent, born or birth(parent) or "")
    report = check_store(spoilt(good, tmp_path, spoil))

    assert report.is_clean
    assert words in report.notes[0].what


def test_what_a_launch_has_started_is_looked_up_in_the_system(good: Path, tmp_path: Path) -> None:
    """By pid and birth: of two only one is still the same. What is no list of them is a finding."""
    parent = os.getppid()
    gone = ledger(boot_id(), parent, "1") + ";UPDATE processes SET descendants = "
    told = f'[[{os.getpid()},"1",1],[{parent},"{birth(parent)}",1]]'
    report = check_store(spoilt(good, tmp_path, f"{gone}'{told}'"))

    assert report.is_clean
    assert report.notes[0].what == f"is gone; what it started runs on: pid {parent}"

    report = check_store(spoilt(good, tmp_path, f"{gone}'[[1]]'"))
    assert [found.check for found in report.findings][:1] == ["processes"]


def test_what_a_dead_daemon_left_is_no_finding(good: Path, tmp_path: Path) -> None:
    """A live binding without a daemon is told; the next start closes it."""
    spoil = "UPDATE bindings SET status = 'live' WHERE session_key = 2"
    report = check_store(spoilt(good, tmp_path, spoil))

    assert report.is_clean
    assert [note.check for note in report.notes] == ["bindings"]


def test_much_of_the_same_is_told_in_part(good: Path, tmp_path: Path) -> None:
    """Every event without its index entry is not worth a line of its own."""
    report = check_store(spoilt(good, tmp_path, "UPDATE events SET host = x'00'"))

    assert len(report.findings) == 20
    assert report.untold > 20


# -- segments -------------------------------------------------------------------------------------


@pytest.fixture
def sealed(good: Path, tmp_path: Path) -> Path:
    """The same store with the events of its ended runs in segments."""
    path = tmp_path / "sealed.db"
    shutil.copy(good, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for ended in read_unsealed(connection):
            while found := read_sealable(
                connection, SegmentCache(), ended.session_key, ended.upto_seq
            ):
                for sql, parameters in found.statements():
                    connection.execute(sql, parameters)
    return path


def test_a_sealed_store_is_clean(good: Path, sealed: Path) -> None:
    """As many events as before, some of them in segments."""
    plain, report = check_store(good), check_store(sealed)

    assert (report.findings, report.notes) == ([], [])
    assert report.checked["segments"] >= 2
    assert report.checked["events"] == plain.checked["events"]


SPOILT_SEGMENTS = {
    "its content is gone": ("DELETE FROM segment_contents", "segments", "content is missing"),
    "its content is damaged": (
        "UPDATE segment_contents SET facts = x'789c00'", "segments", "cannot be read"),
    "its payloads are damaged": (
        "UPDATE segment_contents SET payloads = substr(payloads, 1, length(payloads) - 8)",
        "segments", "cannot be read"),
    "its index counts otherwise": (
        "UPDATE segments SET events = events + 1", "segments", "its index says"),
    "its index measures otherwise": (
        "UPDATE segments SET raw_bytes = raw_bytes - 1", "segments", "its index says"),
    "its index ends otherwise": (
        "UPDATE segments SET last_seq = last_seq + 1", "segments", "do not agree"),
    "its runs end otherwise": (
        "UPDATE sealed_runs SET terminal_seq = NULL", "segments", "other ends"),
    "its runs are not named": ("DELETE FROM sealed_runs", "segments", "other runs"),
    "it is gone": ("DELETE FROM segments", "sequence", "missing"),
    "it names a run that is not there": (
        "UPDATE sealed_runs SET run_key = 99 WHERE run_key = 1", "references", "not there"),
    "it is packed in an unknown way": ("UPDATE segments SET codec = 99", "segments", "codec 99"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT_SEGMENTS)
def test_each_corruption_of_a_segment_is_found(name: str, sealed: Path, tmp_path: Path) -> None:
    """Segments decode, follow each other, and say what their index says of them."""
    spoil, check, words = SPOILT_SEGMENTS[name]
    report = check_store(spoilt(sealed, tmp_path, spoil))

    told = [each.what for each in report.findings if each.check == check]
    assert any(words in what for what in told), report.findings
