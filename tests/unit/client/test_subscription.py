"""Subscriptions against a scripted daemon: cursors, reconnects, slow consumers."""

import anyio
import pytest

from acphost.client.client import Client
from acphost.client.connecting import connect
from acphost.client.subscription import Subscription
from acphost.errors import (
    ConnectionLostError,
    CursorForeignError,
    DaemonUnreachableError,
    SessionNotFoundError,
)
from acphost.wire.host import Cursor
from tests.support.scripted_host import Peer, position, scripted_host

PONG = {"now": "2026-01-01T00:00:00.000Z", "uptimeMs": 5}


async def take(events: Subscription, count: int) -> list[int]:
    return [int((await anext(events)).offset) for _ in range(count)]


async def test_events_come_in_order_and_the_cursor_follows_the_consumer() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        assert await peer.subscribed("sub_1") == {"scope": {"sessionId": "sess_1"}, "afterSeq": 0}
        await peer.events("sub_1", 1, 2, 3)
        await peer.events("sub_1", 4, caught_up=True)
        await peer.closed()

    async with (
        scripted_host(script) as path,
        connect(path) as client,
        client.subscribe(session_id="sess_1", after=0) as events,
    ):
        assert events.cursor is None
        assert await take(events, 2) == [1, 2]
        assert events.cursor == Cursor(offset=position(2), seq=position(2))
        assert not events.caught_up
        assert await take(events, 2) == [3, 4]
        assert events.caught_up
        assert events.store_id == "store_1"


async def test_leaving_the_block_ends_the_daemons_side() -> None:
    seen: list[object] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        seen.append((await peer.expect("events/unsubscribe"))["params"])
        await peer.reply(await peer.expect("host/ping"), PONG)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        async with client.subscribe():
            pass
        await client.ping()
    assert seen == [{"subscriptionId": "sub_1"}]


async def test_a_refusal_is_raised_before_the_block() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.fail(await peer.expect("events/subscribe"), -32002, "session_not_found")
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        with pytest.raises(SessionNotFoundError):
            async with client.subscribe(session_id="none"):
                pass


async def test_a_lost_connection_is_bridged_without_gap_or_repeat() -> None:
    asked: list[object] = []

    async def first(peer: Peer) -> None:
        await peer.greet()
        asked.append(await peer.subscribed("sub_1"))
        await peer.events("sub_1", 1, 2)

    async def second(peer: Peer) -> None:
        await peer.greet()
        asked.append(await peer.subscribed("sub_9"))
        await peer.events("sub_1", 2)  # of another time: nobody listens to that id
        await peer.events("sub_9", 3, 4)
        await peer.closed()

    async with (
        scripted_host(first, second) as path,
        connect(path) as client,
        client.subscribe(session_id="sess_1") as events,
    ):
        assert await take(events, 4) == [1, 2, 3, 4]
    assert asked == [
        {"scope": {"sessionId": "sess_1"}},
        {"scope": {"sessionId": "sess_1"}, "afterSeq": position(2), "storeId": "store_1"},
    ]


async def test_now_is_the_moment_of_the_first_connection() -> None:
    asked: list[object] = []

    async def first(peer: Peer) -> None:
        await peer.greet()
        asked.append(await peer.subscribed("sub_1", head=41))

    async def second(peer: Peer) -> None:
        await peer.greet()
        asked.append(await peer.subscribed("sub_2", head=50))
        await peer.events("sub_2", 42)
        await peer.closed()

    async with (
        scripted_host(first, second) as path,
        connect(path) as client,
        client.subscribe(after="now") as events,
    ):
        assert await take(events, 1) == [42]
    assert asked == [
        {"scope": {"all": True}, "after": "now"},
        {"scope": {"all": True}, "afterOffset": position(41), "storeId": "store_1"},
    ]


async def test_another_journal_ends_the_iteration_after_what_is_still_there() -> None:
    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        await peer.events("sub_1", 1, 2)

    async def second(peer: Peer) -> None:
        await peer.greet(store="store_2")
        await peer.fail(await peer.expect("events/subscribe"), -32050, "cursor_foreign")
        await peer.closed()

    async with (
        scripted_host(first, second) as path,
        connect(path) as client,
        client.subscribe() as events,
    ):
        assert await take(events, 2) == [1, 2]
        with pytest.raises(CursorForeignError):
            await anext(events)


async def test_a_daemon_that_stays_away_ends_the_iteration() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        await peer.events("sub_1", 1)

    async with scripted_host(script) as path, connect(path, patience=0.01) as client:
        async with client.subscribe() as events:
            await anyio.Path(path).unlink()
            assert await take(events, 1) == [1]
            with pytest.raises(DaemonUnreachableError):
                await anext(events)
        with pytest.raises(DaemonUnreachableError):
            async with client.subscribe():
                pass


async def test_a_cursor_goes_on_where_another_process_was() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        assert await peer.subscribed("sub_1") == {
            "scope": {"hostRunId": "run_1"},
            "afterOffset": position(7),
            "storeId": "store_1",
        }
        await peer.events("sub_1", 8)
        await peer.closed()

    async with (
        scripted_host(script) as path,
        connect(path) as client,
        client.subscribe(
            run_id="run_1", after=Cursor(offset=position(7)), store_id="store_1"
        ) as events,
    ):
        assert await take(events, 1) == [8]


async def consume_slowly(client: Client, count: int) -> list[int]:
    """Take nothing until a request was answered, then everything."""
    async with client.subscribe(buffer_bytes=3000) as events:
        await client.ping()
        return await take(events, count)


async def test_a_slow_consumer_pauses_its_subscription_and_nothing_else() -> None:
    asked: list[object] = []
    sent = 12

    async def script(peer: Peer) -> None:
        await peer.greet()
        asked.append(await peer.subscribed("sub_1"))
        for offset in range(1, sent + 1):
            await peer.events("sub_1", offset, padding="x" * 1000)
        ping = await peer.expect("host/ping")
        asked.append((await peer.expect("events/unsubscribe"))["params"])
        await peer.reply(ping, PONG)
        again = await peer.expect("events/subscribe")
        asked.append(again["params"])
        await peer.reply(
            again, {"subscriptionId": "sub_2", "headSeq": None, "headOffset": position(sent)}
        )
        for offset in range(int(again["params"]["afterOffset"]) + 1, sent + 1):
            await peer.events("sub_2", offset)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        assert await consume_slowly(client, sent) == list(range(1, sent + 1))
    # Each event is above 1000 bytes: three fit under the limit, the next one is over it.
    assert asked == [
        {"scope": {"all": True}},
        {"subscriptionId": "sub_1"},
        {"scope": {"all": True}, "afterOffset": position(3), "storeId": "store_1"},
    ]


async def test_a_pause_survives_a_lost_connection() -> None:
    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        for offset in range(1, 9):
            await peer.events("sub_1", offset, padding="x" * 1000)
        await peer.expect("session/create")
        await peer.expect("events/unsubscribe")

    async def second(peer: Peer) -> None:
        await peer.greet()
        # Not opened again before the consumer is there: the ping comes first.
        await peer.reply(await peer.expect("host/ping"), PONG)
        again = await peer.subscribed("sub_2")
        assert again["afterOffset"] == position(3)
        await peer.events("sub_2", *range(4, 9))
        await peer.closed()

    async with (
        scripted_host(first, second) as path,
        connect(path) as client,
        client.subscribe(buffer_bytes=3000) as events,
    ):
        with pytest.raises(ConnectionLostError):
            await client.create_session("demo", "/tmp")
        await client.ping()
        assert await take(events, 8) == list(range(1, 9))


async def test_a_batch_without_events_moves_the_cursor() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        await peer.send(
            {
                "method": "events",
                "params": {
                    "subscriptionId": "sub_1",
                    "events": [],
                    "cursor": {"offset": position(6)},
                    "caughtUp": True,
                },
            }
        )
        await peer.closed()

    async with (
        scripted_host(script) as path,
        connect(path) as client,
        client.subscribe(kinds=["run.completed"]) as events,
    ):
        batch = await events.next_batch()
        assert (batch.events, batch.caught_up) == ([], True)
        assert events.cursor == Cursor(offset=position(6))


async def test_two_subscriptions_get_their_own_events() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        await peer.subscribed("sub_2")
        await peer.events("sub_2", 5)
        await peer.events("sub_1", 1)
        await peer.closed()

    async with (
        scripted_host(script) as path,
        connect(path) as client,
        client.subscribe(session_id="a") as first,
        client.subscribe(session_id="b") as second,
    ):
        assert await take(first, 1) == [1]
        assert await take(second, 1) == [5]


async def test_a_closed_client_says_so() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.closed()

    async with scripted_host(script) as path:
        async with connect(path) as client:
            pass
        with pytest.raises(ConnectionLostError):
            await client.ping()


async def test_a_daemon_that_shuts_down_is_waited_for() -> None:
    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.fail(await peer.expect("events/subscribe"), -32050, "shutting_down")

    async def second(peer: Peer) -> None:
        await peer.greet()
        await peer.subscribed("sub_1")
        await peer.events("sub_1", 1)
        await peer.closed()

    async with (
        scripted_host(first, second) as path,
        connect(path) as client,
        client.subscribe() as events,
    ):
        assert await take(events, 1) == [1]
