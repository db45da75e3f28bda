"""Cursors over the journal: every scope, every place to begin, no gap and no repeat."""

import os
import signal
import sys

import anyio
import pytest

from acphost.errors import (
    CursorForeignError,
    CursorFutureError,
    CursorMalformedError,
    InvalidParamsError,
)
from acphost.wire.event import Event
from tests.support.daemon import Daemon, running_daemon, started
from tests.support.patience import PATIENCE

TALKS = 'ON prompt\n    REPEAT 20\n        MSG "${PROMPT} ${I} "\n'


async def read(daemon: Daemon, **scope: object) -> list[Event]:
    """All there is in a scope, to where history ends."""
    found: list[Event] = []
    with anyio.fail_after(PATIENCE):
        async with daemon.client.subscribe(**scope) as events:  # type: ignore[arg-type]
            while not events.caught_up:
                found += (await events.next_batch()).events
    return found


async def test_the_scopes() -> None:
    """A session, a run, a workspace, everything: each event where it belongs, in order."""
    async with running_daemon(TALKS) as daemon:
        one = await daemon.session(workspaceId="w1")
        two = await daemon.session(workspaceId="w2")
        first = await daemon.ask(one, "a")
        second = await daemon.ask(one, "b")
        await daemon.ask(two, "c")

        everything = await read(daemon)
        assert [event.offset for event in everything] == sorted(e.offset for e in everything)
        assert everything[0].kind == "host.started"
        of_one = [event for event in everything if event.session_id == one]
        assert await read(daemon, session_id=one) == of_one
        assert [event.seq for event in of_one] == [f"{n:018d}" for n in range(1, len(of_one) + 1)]
        for run in (first, second):
            of_run = [event for event in of_one if event.host_run_id == run.host_run_id]
            assert await read(daemon, run_id=run.host_run_id) == of_run
        assert await read(daemon, workspace_id="w1") == of_one


async def test_the_places_to_begin() -> None:
    """After a seq, after an offset also within a session, after now, from the start."""
    async with running_daemon(TALKS) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "a")
        whole = await read(daemon, session_id=session)
        everything = await read(daemon)
        at = whole[9]

        assert await read(daemon, session_id=session, after=at.seq) == whole[10:]
        assert await read(daemon, session_id=session, after=10) == whole[10:]
        assert await read(daemon, run_id=run.host_run_id, after=at.seq) == [
            event for event in whole[10:] if event.host_run_id == run.host_run_id
        ]
        later = [event for event in everything if event.offset > at.offset]
        assert await read(daemon, after=at.offset) == later
        assert await read(daemon, session_id=session, after="now") == []
        async with daemon.wire() as wire:
            await wire.result(
                "events/subscribe",
                {"scope": {"sessionId": session}, "afterOffset": int(at.offset)},
            )
            got = (await wire.read())["params"]["events"]
            assert [event["seq"] for event in got] == [event.seq for event in whole[10:]]


async def test_history_and_live_join_without_a_seam() -> None:
    """Fifty subscriptions opened in the middle of a stream: each sees every seq once."""
    script = """
ON prompt
    REPEAT 3000
        MSG "${I} "
    MARK ${DIR}/half
    REPEAT 3000
        MSG "${I} "
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()

        async def follow(kinds: list[str] | None) -> None:
            async with daemon.client.subscribe(session_id=session, kinds=kinds) as events:
                seen = []
                async for event in events:
                    seen.append(int(event.seq or 0))
                    if event.kind == "run.completed":
                        break
                expected = range(1, len(seen) + 1)
                assert seen == list(expected) if kinds is None else seen == sorted(set(seen))
                if kinds is not None:
                    assert len(seen) == 6001

        run = await daemon.send(session, "go")
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(follow, None)
                tasks.start_soon(follow, ["message.delta", "run.completed"])
        await daemon.wait(run)


async def test_caught_up_is_told_once_and_after_history() -> None:
    """With nothing there, and with everything filtered out, it is told all the same."""
    async with running_daemon(TALKS) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        await daemon.ask(session, "a")
        last = (await daemon.get(session)).last_seq
        subscribed = await wire.result(
            "events/subscribe", {"scope": {"sessionId": session}, "kinds": ["no.such"]}
        )
        frame = await wire.read()

        assert subscribed["headSeq"] == last
        assert frame["params"]["subscriptionId"] == subscribed["subscriptionId"]
        assert frame["params"]["events"] == []
        assert frame["params"]["caughtUp"] is True
        assert frame["params"]["cursor"]["seq"] == last
        assert frame["params"]["cursor"]["offset"] >= subscribed["headOffset"]


async def test_cursors_that_lead_nowhere() -> None:
    """Malformed, of another store, in the future: each has its word, and none starts again."""
    async with running_daemon(TALKS) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "a")
        scope = {"sessionId": session}
        beyond = int((await daemon.get(session)).last_seq) + 1
        cases: list[tuple[dict[str, object], type[Exception]]] = [
            ({"afterSeq": "abc"}, CursorMalformedError),
            ({"afterSeq": -1}, CursorMalformedError),
            ({"afterSeq": "1" * 19}, CursorMalformedError),
            ({"afterSeq": beyond}, CursorFutureError),
            ({"afterOffset": 10**9}, CursorFutureError),
            ({"afterSeq": 1, "storeId": "store_other"}, CursorForeignError),
            ({"storeId": "store_other"}, CursorForeignError),
            ({"afterSeq": 1, "afterOffset": 1}, InvalidParamsError),
            ({"afterSeq": 1.5}, InvalidParamsError),
        ]
        for params, error in cases:
            with pytest.raises(error):
                await daemon.client.request("events/subscribe", {"scope": scope, **params}, dict)
        for wrong in ({}, {"sessionId": session, "all": True}):
            with pytest.raises(InvalidParamsError):
                await daemon.client.request("events/subscribe", {"scope": wrong}, dict)
        with pytest.raises(InvalidParamsError):
            await daemon.client.request(
                "events/subscribe", {"scope": {"all": True}, "afterSeq": 1}, dict
            )
        events = {"hostRunId": run.host_run_id}
        more: list[tuple[dict[str, object], type[Exception]]] = [
            ({"afterSeq": "x"}, CursorMalformedError),
            ({"afterSeq": 10**9}, CursorFutureError),
            ({"storeId": "store_other"}, CursorForeignError),
        ]
        for params, error in more:
            with pytest.raises(error):
                await daemon.client.request("run/events", {**events, **params}, dict)


async def test_events_of_a_run_page_by_page() -> None:
    """Greater seqs only, oldest first; the pages together are the whole, whatever their size."""
    async with running_daemon(TALKS) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "a")
        await daemon.ask(session, "b")
        whole = await daemon.events(run)

        for limit in (1, 7, 100):
            paged: list[Event] = []
            more = True
            while more:
                after = paged[-1].seq if paged else 0
                page = await daemon.client.run_events(
                    run.host_run_id, after_seq=after or 0, limit=limit
                )
                paged += page.events
                more = page.has_more
                assert page.head_seq == int(whole[-1].seq or 0)
            assert paged == whole


async def test_unsubscribe_ends_it() -> None:
    """Nothing more comes under that id; a second time there is nothing to end."""
    async with running_daemon(TALKS) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        subscribed = await wire.result("events/subscribe", {"scope": {"sessionId": session}})
        await wire.read()
        given = {"subscriptionId": subscribed["subscriptionId"]}
        assert await wire.result("events/unsubscribe", given) == {"ok": True}
        await daemon.ask(session, "a")
        error = await wire.error("events/unsubscribe", given)

        assert error["code"] == -32602


async def test_the_answer_comes_before_the_first_event() -> None:
    """A subscription's notifications never overtake the answer that names it."""
    async with running_daemon(TALKS) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        await daemon.ask(session, "a")
        params = {"scope": {"sessionId": session}}
        for n in range(20):
            await wire.send({"id": f"s{n}", "method": "events/subscribe", "params": params})
        known = set()
        answered = 0
        while answered < 20:
            frame = await wire.read()
            if "result" in frame:
                known.add(frame["result"]["subscriptionId"])
                answered += 1
            else:
                assert frame["params"]["subscriptionId"] in known


SLOW = """
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
def say(**m): s.sendall(json.dumps(m).encode() + b"\\n")
say(id=1, method="initialize", params={"protocolVersion": 1})
say(id=2, method="events/subscribe", params={"scope": {"sessionId": sys.argv[2]}})
count = 0
for line in s.makefile("rb"):
    m = json.loads(line)
    if m.get("id") == 2:
        print("subscribed", flush=True)
    for e in m.get("params", {}).get("events", ()):
        count += 1
        assert int(e["seq"]) == count, (e["seq"], count)
        if e["kind"] == "run.completed":
            print(count, flush=True)
            sys.exit()
"""


@pytest.mark.anew
async def test_a_stopped_subscriber_costs_nobody_anything() -> None:
    """SIGSTOP in mid-stream: the others get all of it; SIGCONT: so does it, in order."""
    async with running_daemon("ON prompt\n    FLOOD 100000\n") as daemon:
        session = await daemon.session()
        before = daemon.memory()
        slow = started(sys.executable, "-c", SLOW, str(daemon.socket), session)
        assert slow.stdout is not None
        try:
            assert slow.stdout.readline() == "subscribed\n"
            os.kill(slow.pid, signal.SIGSTOP)
            run = await daemon.ask(session, "go")
            grown = daemon.memory() - before
            os.kill(slow.pid, signal.SIGCONT)
            told = await anyio.to_thread.run_sync(slow.stdout.readline)

            assert run.status == "completed"
            assert int(told) == int((await daemon.get(session)).last_seq)
            assert grown < 80 << 20
        finally:
            slow.kill()
            slow.communicate()


async def test_the_cursor_moves_also_when_a_filter_lets_nothing_through() -> None:
    """Live events of other kinds: the client is told how far the journal was looked through."""
    async with running_daemon(TALKS) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        await wire.result(
            "events/subscribe", {"scope": {"sessionId": session}, "kinds": ["no.such"]}
        )
        caught_up = (await wire.read())["params"]
        assert caught_up["caughtUp"] is True

        await daemon.ask(session, "a")
        last = (await daemon.get(session)).last_seq
        told = caught_up
        while told["cursor"]["seq"] != last:
            told = (await wire.read())["params"]
            assert told["events"] == []
            assert "caughtUp" not in told
