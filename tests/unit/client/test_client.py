"""The client against a scripted daemon: requests, errors, identity, reconnects, questions."""

from pathlib import Path

import anyio
import msgspec
import pytest

from acphost.client.client import State
from acphost.client.connecting import connect
from acphost.errors import (
    ConnectionLostError,
    DaemonUnreachableError,
    PermissionDeniedError,
    ProtocolError,
    QueueFullError,
    TooLargeError,
    UnsupportedVersionError,
)
from acphost.wire.daemon import Pong
from tests.support.scripted_host import Peer, scripted_host

PONG = {"now": "2026-01-01T00:00:00.000Z", "uptimeMs": 5}


async def test_the_first_request_of_a_connection_is_initialize() -> None:
    hello: list[dict[str, object]] = []

    async def script(peer: Peer) -> None:
        hello.append((await peer.greet())["params"])
        await peer.closed()

    async with (
        scripted_host(script) as path,
        connect(path, name="bot", version="2", client_id="c", actor_id="a") as client,
    ):
        assert client.info.host_info.name == "scripted"
        assert client.store_id == "store_1"
    assert hello == [
        {
            "protocolVersion": 1,
            "clientInfo": {"name": "bot", "version": "2"},
            "clientId": "c",
            "actorId": "a",
        }
    ]


async def test_answers_find_their_requests_in_whatever_order_they_come() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        first, second = await peer.read(), await peer.read()
        await peer.reply(second, {**PONG, "uptimeMs": second["id"]})
        await peer.reply(first, {**PONG, "uptimeMs": first["id"]})
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        answers: list[int] = []

        async def ask() -> None:
            answers.append((await client.ping()).uptime_ms)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
    assert len(set(answers)) == 2


async def test_an_error_is_raised_by_its_word_with_its_details() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.fail(await peer.expect("host/ping"), -32050, "queue_full", limit=3)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        with pytest.raises(QueueFullError) as caught:
            await client.ping()
    assert caught.value.details == {"limit": 3}


async def test_an_error_in_the_block_comes_out_as_itself() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.closed()

    async with scripted_host(script) as path:
        with pytest.raises(ZeroDivisionError):
            async with connect(path):
                _ = 1 // 0


async def test_nobody_listening_is_said_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnreachableError) as caught:
        async with connect(tmp_path / "none"):
            pass
    assert "acphost serve" in str(caught.value)


async def test_a_daemon_of_another_version_is_refused_at_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.fail(await peer.expect("initialize"), -32050, "unsupported_version")

    async with scripted_host(script) as path:
        with pytest.raises(UnsupportedVersionError):
            async with connect(path):
                pass


async def test_a_line_over_the_daemons_limit_is_not_sent() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.reply(await peer.expect("host/ping"), PONG)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        with pytest.raises(TooLargeError):
            await client.create_run("x" * (1 << 20), session_id="s")
        await client.ping()


async def test_a_result_that_cannot_be_read_is_named() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.reply(await peer.expect("host/ping"), {"now": 7})
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        with pytest.raises(ProtocolError) as caught:
            await client.ping()
    assert "host/ping" in str(caught.value)


async def test_a_harmless_request_is_sent_again_when_its_connection_was_lost() -> None:
    hellos: list[object] = []

    async def first(peer: Peer) -> None:
        await peer.greet(client_id="client_7")
        await peer.expect("host/ping")

    async def second(peer: Peer) -> None:
        hellos.append((await peer.greet())["params"].get("clientId"))
        await peer.reply(await peer.expect("host/ping"), PONG)
        await peer.closed()

    states: list[State] = []
    async with (
        scripted_host(first, second) as path,
        connect(path, on_state=states.append) as client,
    ):
        assert (await client.ping()).uptime_ms == 5
    assert hellos == ["client_7"]  # the identity goes on
    assert states == [State.CONNECTED, State.LOST, State.CONNECTED]


async def test_a_repeated_run_create_carries_the_same_request_id() -> None:
    sent: list[object] = []

    async def first(peer: Peer) -> None:
        await peer.greet()
        sent.append((await peer.expect("run/create"))["params"])

    async def second(peer: Peer) -> None:
        await peer.greet()
        request = await peer.expect("run/create")
        sent.append(request["params"])
        await peer.fail(request, -32050, "permission_denied")
        await peer.closed()

    async with scripted_host(first, second) as path, connect(path) as client:
        with pytest.raises(PermissionDeniedError):
            await client.create_run("hi", session_id="s")
    assert len(sent) == 2
    assert sent[0] == sent[1]


async def test_a_request_that_could_do_harm_twice_is_not_sent_again() -> None:
    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.expect("session/create")

    async def second(peer: Peer) -> None:
        await peer.greet()
        await peer.reply(await peer.expect("host/ping"), PONG)
        await peer.closed()

    async with scripted_host(first, second) as path, connect(path) as client:
        with pytest.raises(ConnectionLostError):
            await client.create_session("demo", "/tmp")
        await client.ping()


async def test_without_patience_a_lost_connection_is_the_end() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.expect("host/ping")

    async with scripted_host(script) as path, connect(path, patience=0) as client:
        for _ in range(2):
            with pytest.raises(ConnectionLostError):
                await client.ping()


async def test_patience_ends_with_the_cure() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()

    states: list[State] = []
    async with (
        scripted_host(script) as path,
        connect(path, patience=0.01, on_state=states.append) as client,
    ):
        await anyio.Path(path).unlink()
        with pytest.raises(DaemonUnreachableError) as caught:
            await client.ping()
    assert "acphost serve" in str(caught.value)
    assert states[-1] is State.GAVE_UP


async def test_questions_of_the_daemon_are_answered_beside_everything_else() -> None:
    answers: list[dict[str, object]] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send({"id": "q1", "method": "fs/read", "params": {"path": "/a"}})
        await peer.send({"id": "q2", "method": "fs/read", "params": {"path": "/b"}})
        answers.extend([await peer.read(), await peer.read()])
        await peer.closed()

    async def answer(method: str, params: msgspec.Raw) -> object:
        path = msgspec.json.decode(params)["path"]
        if path == "/b":
            raise PermissionDeniedError("not that one", path=path)
        return {"method": method, "content": "text"}

    async with scripted_host(script) as path, connect(path, on_request=answer):
        while len(answers) < 2:
            await anyio.lowlevel.checkpoint()
    by_id = {each["id"]: each for each in answers}
    assert by_id["q1"]["result"] == {"method": "fs/read", "content": "text"}
    assert by_id["q2"]["error"] == {
        "code": -32050,
        "message": "not that one",
        "data": {"code": "permission_denied", "retryable": False, "path": "/b"},
    }


async def test_a_question_nobody_answers_here_is_refused() -> None:
    answers: list[dict[str, object]] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send({"id": 1, "method": "fs/read", "params": {}})
        answers.append(await peer.read())
        await peer.reply(await peer.expect("host/ping"), PONG)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        await client.ping()
    error = answers[0]["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32601


async def test_notifications_wait_for_whoever_wants_them() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send({"method": "host/notice", "params": {"n": 1}})
        await peer.reply(await peer.expect("host/ping"), PONG)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        await client.ping()
        notice = await anext(aiter(client.notifications))
    assert (notice.method, bytes(notice.params)) == ("host/notice", b'{"n": 1}')


async def test_lines_that_are_no_messages_are_passed_over() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        request = await peer.expect("host/ping")
        await peer.send_bytes(b"noise\n[1,2]\n{}\n\n")
        await peer.send({"id": 99, "result": {}})
        await peer.send({"id": str(request["id"]), "result": {}})
        await peer.reply(request, PONG)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        assert await client.request("host/ping", None, Pong) == Pong(
            now="2026-01-01T00:00:00.000Z", uptime_ms=5
        )


async def test_a_cancelled_request_leaves_the_connection_usable() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.expect("run/wait")
        second = await peer.expect("host/ping")
        await peer.reply(first, {"late": True})
        await peer.reply(second, PONG)
        await peer.closed()

    async with scripted_host(script) as path, connect(path) as client:
        with anyio.move_on_after(0.05):
            await client.wait("run_1")
        await client.ping()
