"""Ended runs are packed, and old sessions go, while clients read and write as ever."""

import json
import random
import sys
from typing import Any

import anyio
import pytest

from acphost.errors import SessionNotFoundError
from acphost.wire.event import Event
from tests.support.config import Table
from tests.support.daemon import Daemon, payload, running_daemon
from tests.support.patience import NEVER, PATIENCE
from tests.support.terminal import acphost

AT_ONCE: Table = {"journal": {"seal_after": 0}}

TALKING = """
ON prompt ~"^flood (\\d+)"
    CALL c1 in_progress
    FLOOD ${1}
    UPD c1 completed
ON prompt
    MSG "a short answer"
"""

#: Each update tells all lines so far, as agents do that watch a command.
REPEATING = """
import json, sys

def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")

def tell(kind, **fields):
    update = {"sessionUpdate": kind, "toolCallId": "c1", **fields}
    say({"method": "session/update", "params": {"sessionId": "S1", "update": update}})

for line in sys.stdin:
    asked = json.loads(line)
    result = {"protocolVersion": 1, "sessionId": "S1", "stopReason": "end_turn"}
    if asked["method"] == "session/prompt":
        tell("tool_call", title="watch", status="in_progress")
        text = ""
        for number in range(2000):
            text += "%049d\\n" % number
            content = {"type": "text", "text": text}
            tell("tool_call_update", content=[{"type": "content", "content": content}])
        tell("tool_call_update", status="completed")
    if "id" in asked:
        say({"id": asked["id"], "result": result})
        sys.stdout.flush()
"""


async def figures(daemon: Daemon) -> dict[str, int]:
    found: Any = (await daemon.client.stats())["journal"]
    return dict(found)


async def sealed(daemon: Daemon, least: int) -> dict[str, int]:
    """Wait until so many events are sealed."""
    with anyio.fail_after(PATIENCE):
        while True:
            seen = await figures(daemon)
            if seen["sealedEvents"] >= least:
                return seen
            await anyio.sleep(0.02)


async def test_a_sealed_conversation_reads_and_goes_on_as_before() -> None:
    """The same events by every way to read them, before and after, and after a restart."""
    async with running_daemon(TALKING, host={"journal": {"seal_after": NEVER}}) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "flood 3000")
        before = await daemon.events(run), await daemon.history(session)
        assert (await figures(daemon))["sealedEvents"] == 0

        daemon.configure(**AT_ONCE)
        await daemon.client.reload()
        await daemon.ask(await daemon.session(), "what ends has it look again")
        seen = await sealed(daemon, 3000)
        assert seen["sealedBytes"] < 0.15 * seen["sealedRawBytes"]
        assert (await daemon.events(run), await daemon.history(session)) == before
        middle = before[1][1500]
        later = await daemon.client.run_events(run.host_run_id, after_seq=int(middle.seq or 0))
        assert later.events[0] == before[1][1501]

        await daemon.restart()
        again = await daemon.ask(session, "and now?")
        assert again.status == "completed"
        assert await daemon.events(run) == before[0]
        history = await daemon.history(session)
        assert history[: len(before[1])] == before[1]
        assert [int(event.seq or 0) for event in history] == list(range(1, len(history) + 1))
        assert (await daemon.run(run)).status == "completed"


async def test_sealing_while_another_session_is_at_work_harms_nobody() -> None:
    async with running_daemon(TALKING, host=AT_ONCE) as daemon:
        one, other = await daemon.session(), await daemon.session()
        for number in range(6):
            await daemon.ask(one, f"flood {500 + number}")
            await daemon.ask(other, f"flood {300 + number}")
        await sealed(daemon, 4800)

        for session in (one, other):
            history = await daemon.history(session)
            assert [int(event.seq or 0) for event in history] == list(range(1, len(history) + 1))
        offsets = [int(event.offset) for event in daemon.seen]
        assert offsets == sorted(set(offsets))


async def test_a_kill_in_the_middle_of_sealing_loses_and_repeats_nothing() -> None:
    """kill -9 while segments are written, several times over; what was told is what is read."""
    async with running_daemon(TALKING, host=AT_ONCE) as daemon:
        session = await daemon.session()
        for number in range(4):
            sealed_before = (await figures(daemon))["sealedEvents"]
            await daemon.client.wait(
                (await daemon.send(session, f"flood {8000 + number}")).host_run_id
            )
            await sealed(daemon, sealed_before + 1)
            await daemon.restart()

        history = await daemon.history(session)
        assert [int(event.seq or 0) for event in history] == list(range(1, len(history) + 1))
        told = {event.offset: event for event in daemon.seen}
        assert all(told.get(event.offset, event) == event for event in history)
        assert sum(event.kind == "message.delta" for event in history) == 4 * 8000 + 6


async def test_output_told_again_with_every_update_does_not_fill_the_disk() -> None:
    """2,000 updates of up to 100 KB: under 2 MB in the file, and every line is there."""
    agent: Table = {"command": [sys.executable, "-c", REPEATING]}
    async with running_daemon(agent=agent, host=AT_ONCE) as daemon:
        session = await daemon.session()
        run = await daemon.client.wait((await daemon.send(session, "watch")).host_run_id)
        seen = await sealed(daemon, 2000)

        assert run.status == "completed"
        assert seen["sealedRawBytes"] > 100_000_000
        assert seen["bytes"] < 2_000_000
        begin = await daemon.client.run_events(run.host_run_id, limit=10)
        (started,) = [event for event in begin.events if event.kind == "tool.started"]
        for number in (1, 1000, 2000):
            page = await daemon.client.run_events(
                run.host_run_id, after_seq=int(started.seq or 0) + number - 1, limit=1
            )
            (update,) = page.events
            text = payload(update)["content"][0]["content"]["text"]
            assert text == "".join(f"{line:049d}\n" for line in range(number))


def deleted(daemon: Daemon) -> list[Event]:
    return [event for event in daemon.seen if event.kind == "session.deleted"]


async def test_retention_shows_what_would_go_and_then_deletes_it() -> None:
    """Whole sessions that rest, with their secrets; those with a live agent stay."""
    rules: Table = {"journal": {"seal_after": 0}, "journal.retention": {"max_bytes": 1 << 20}}
    server = {"name": "m", "command": "/bin/true", "args": [], "env": [{"name": "K", "value": "s"}]}
    async with running_daemon(TALKING, host=rules) as daemon:
        old = await daemon.session(mcpServers=[server])
        assert len(await files(daemon)) == 1
        assert (await daemon.ask(old, "flood 10")).status == "completed"
        # Nothing of this is repeated, so that sealing does not make it small.
        assert (await daemon.client.retention(dry_run=True)).sessions == []
        await anyio.Path(daemon.journal.path.parent, "secrets", "sess_gone.json").write_text("[]")
        await daemon.restart()
        assert await files(daemon) == [f"{old}.json"]
        await fill(daemon)

        done = await acphost(daemon.socket, "retention", "--dry-run", "--json", cwd=daemon.work)
        told = json.loads(done.out)
        assert [each["sessionId"] for each in told["sessions"]] == [old]
        assert (told["dryRun"], told["sessions"][0]["cause"]) == (True, "size")
        assert (await daemon.get(old)).session_id == old
        assert deleted(daemon) == []

        done = await acphost(daemon.socket, "retention", cwd=daemon.work)
        assert done.code == 0
        assert "1 session deleted" in done.err

        with pytest.raises(SessionNotFoundError):
            await daemon.get(old)
        assert await files(daemon) == []
        (event,) = deleted(daemon)
        assert (event.session_id, event.seq) == (None, None)
        assert payload(event)["sessionId"] == old
        # What clients were told of it is on purpose no longer there.
        daemon.seen[:] = [event for event in daemon.seen if event.session_id != old]


async def fill(daemon: Daemon) -> None:
    """A session with a live agent, that takes more than the rules allow."""
    session = await daemon.session()
    for _ in range(3):
        noise = random.randbytes(300_000).hex()
        assert (await daemon.ask(session, noise)).status == "completed"


async def files(daemon: Daemon) -> list[str]:
    folder = anyio.Path(daemon.journal.path.parent, "secrets")
    return [path.name async for path in folder.glob("*.json")]
