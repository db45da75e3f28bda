"""The client against a real daemon: its promises hold across kills, floods and slow consumers."""

import sys
from collections.abc import AsyncGenerator

import anyio
import pytest

from acphost.client.client import Client
from acphost.client.connecting import connect
from acphost.client.subscription import Subscription
from acphost.demo.throwaway import Throwaway
from acphost.errors import (
    AlreadyResolvedError,
    ConflictError,
    CursorForeignError,
    CursorFutureError,
    InvalidParamsError,
    PermissionNotFoundError,
    RunNotFoundError,
    SessionNotFoundError,
)
from acphost.wire.event import TERMINAL_KINDS, Event, Kind
from acphost.wire.host import RunStatus
from acphost.wire.params import SessionListParams
from tests.support.demo_daemon import demo_daemon

AGENTS = """
[agents.flood]
command = ["{python}", "-m", "acphost.demo.agent", "FOLDER/flood.script"]
"""

FLOOD = """\
INIT
ON prompt
    REPEAT 3000
        MSG "chunk ${I} of a flood that is long enough to fill buffers"
"""


@pytest.fixture
async def daemon(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Throwaway]:
    async with demo_daemon(monkeypatch, AGENTS, flood=FLOOD) as started:
        yield started


@pytest.fixture
async def client(daemon: Throwaway) -> AsyncGenerator[Client]:
    async with connect(daemon.socket, name="test", capabilities={"permissions": True}) as connected:
        yield connected


def seqs(events: list[Event]) -> list[int]:
    return [int(event.seq or 0) for event in events]


async def until_end(subscription: Subscription) -> list[Event]:
    """Every event up to the first that ends a run."""
    events: list[Event] = []
    async for event in subscription:
        events.append(event)
        if event.kind in TERMINAL_KINDS:
            return events
    raise AssertionError("a subscription has no end of its own")


async def test_a_conversation_by_typed_calls(client: Client, daemon: Throwaway) -> None:
    agents = {each.agent_id: each for each in (await client.agents()).agents}
    assert agents["demo"].health.installed
    session = await client.create_session("demo", str(daemon.work), title="a test")
    assert (await client.session(session.session_id)).title == "a test"
    run = await client.create_run("hello", session_id=session.session_id)
    ended = await client.wait(run.host_run_id)
    assert ended.status == RunStatus.COMPLETED
    assert await client.run(run.host_run_id) == ended
    assert [each.host_run_id for each in (await client.list_runs()).items] == [run.host_run_id]
    listed = await client.list_sessions(SessionListParams(agent_id="demo"))
    assert [each.session_id for each in listed.items] == [session.session_id]
    assert (await client.active_run(session.session_id)).run is None
    assert (await client.queue_list(session.session_id)).items == []
    assert (await client.status(session.session_id)).mnote_session_id == session.session_id
    assert len(await client.statuses()) == 1
    assert (await client.ping()).uptime_ms >= 0
    assert (await client.stats())["connections"] == 1


async def test_run_events_are_paged(client: Client, daemon: Throwaway) -> None:
    run = await client.create_run("hello", agent_id="demo", cwd=str(daemon.work))
    await client.wait(run.host_run_id)
    collected: list[Event] = []
    while True:
        after = seqs(collected)[-1] if collected else 0
        page = await client.run_events(run.host_run_id, after_seq=after, limit=4)
        collected += page.events
        if not page.has_more:
            break
    async with client.subscribe(run_id=run.host_run_id) as events:
        assert await until_end(events) == collected


async def test_the_same_request_id_never_makes_two_runs(client: Client, daemon: Throwaway) -> None:
    session = await client.create_session("demo", str(daemon.work))
    first, second = [
        await client.create_run("hello", session_id=session.session_id, request_id="r1")
        for _ in range(2)
    ]
    assert first.host_run_id == second.host_run_id
    with pytest.raises(ConflictError):
        await client.create_run("other", session_id=session.session_id, request_id="r1")


async def test_errors_come_by_their_words(client: Client) -> None:
    with pytest.raises(SessionNotFoundError):
        await client.session("sess_none")
    with pytest.raises(RunNotFoundError):
        await client.run("run_none")
    with pytest.raises(PermissionNotFoundError):
        await client.respond("perm_none", "a")
    with pytest.raises(InvalidParamsError):
        await client.request("session/get", {"sessionId": 7}, dict)
    with pytest.raises(SessionNotFoundError):
        async with client.subscribe(session_id="sess_none"):
            pass
    with pytest.raises(CursorFutureError):
        async with client.subscribe(after=10**9):
            pass
    with pytest.raises(CursorForeignError):
        async with client.subscribe(after=0, store_id="store_of_somebody_else"):
            pass


async def test_the_first_answer_to_a_question_wins(client: Client, daemon: Throwaway) -> None:
    run = await client.create_run("permission", agent_id="demo", cwd=str(daemon.work))
    async with (
        client.subscribe(run_id=run.host_run_id) as events,
        connect(daemon.socket, name="other") as other,
    ):
        async for event in events:
            if event.kind == Kind.PERMISSION_REQUESTED:
                break
        (pending,) = (await other.list_decisions()).items
        resolved = await other.respond(pending.permission_id, "reject_once")
        assert resolved.option_id == "reject_once"
        with pytest.raises(AlreadyResolvedError) as caught:
            await client.respond(pending.permission_id, "allow_once")
        assert caught.value.details["optionId"] == "reject_once"
        await until_end(events)


async def test_a_subscription_survives_kills_without_gap_or_repeat(
    client: Client, daemon: Throwaway
) -> None:
    seen: list[Event] = []
    session = await client.create_session("flood", str(daemon.work))
    async with client.subscribe(session_id=session.session_id) as events:
        for turn in range(3):
            run = await client.create_run(f"flood {turn}", session_id=session.session_id)
            async for event in events:
                seen.append(event)
                if event.host_run_id == run.host_run_id and event.kind == Kind.MESSAGE_DELTA:
                    break
            await daemon.kill()
            await daemon.start()
            async for event in events:
                seen.append(event)
                if event.host_run_id == run.host_run_id and event.kind in TERMINAL_KINDS:
                    break
        last = await client.session(session.session_id)
        async for event in events:
            seen.append(event)
            if event.seq == last.last_seq:
                break
    assert seqs(seen) == list(range(1, len(seen) + 1))
    async with client.subscribe(session_id=session.session_id) as again:
        stored = [await anext(again) for _ in seen]
    assert stored == seen
    ends = [event.host_run_id for event in seen if event.kind in TERMINAL_KINDS]
    assert len(ends) == len(set(ends)) == 3


async def test_a_slow_consumer_gets_everything_and_disturbs_nobody(
    client: Client, daemon: Throwaway
) -> None:
    run = await client.create_run("flood", agent_id="flood", cwd=str(daemon.work))
    async with (
        client.subscribe(run_id=run.host_run_id, buffer_bytes=20_000) as slow,
        client.subscribe(run_id=run.host_run_id) as quick,
    ):
        wanted = await until_end(quick)
        # All of it has come to this connection by now, and it still answers.
        await client.ping()
        assert await until_end(slow) == wanted
    assert sum(event.kind == Kind.MESSAGE_DELTA for event in wanted) == 3000


async def test_everything_is_seen_in_the_widest_scope_in_the_order_of_the_journal(
    client: Client, daemon: Throwaway
) -> None:
    runs = [
        await client.create_run("hello", agent_id="demo", cwd=str(daemon.work)) for _ in range(2)
    ]
    ended: set[str | None] = set()
    offsets: list[str] = []
    async with client.subscribe() as events:
        async for event in events:
            offsets.append(event.offset)
            if event.kind in TERMINAL_KINDS:
                ended.add(event.host_run_id)
            if ended == {run.host_run_id for run in runs}:
                break
    assert offsets == sorted(set(offsets))


async def test_the_client_imports_neither_log_nor_settings_nor_database() -> None:
    """The front door starts once for every editor window; what it does not need costs each time."""
    heavy = ("structlog", "aiosqlite", "sqlite3", "watchfiles", "acphost.settings", "subprocess")
    check = (
        "import sys, acphost.client.connecting;"
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    done = await anyio.run_process([sys.executable, "-c", check])
    assert done.stdout.decode().split() == []
