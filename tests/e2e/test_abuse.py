"""Clients that do harm to the socket: they are cut short, and nobody else notices."""

import json
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from statistics import median

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskStatus

from tests.support.daemon import Daemon, eventually, running_daemon
from tests.support.patience import NEVER, PATIENCE
from tests.support.steps import chunks
from tests.support.wire import Frame, Wire

GATED = 'ON prompt "wait"\n    GATE ${DIR}/go\n    MSG "done"\n'
#: What a good client waits for an answer while others do harm: a tenth of a second, or so many
#: times as long as when nobody does, for the machine may have other things to do.
PROMPT_ANSWER, TIMES = 0.1, 20


@asynccontextmanager
async def unharmed(daemon: Daemon) -> AsyncGenerator[None]:
    """A turn runs and a good client asks all the time; both end well, and no file stays open."""
    session = await daemon.session()
    run = await daemon.send(session, "wait")
    await daemon.hears("session/prompt")
    files = daemon.descriptors()
    before: list[float] = []
    meanwhile: list[float] = []

    async def ping(good: Wire, waits: list[float]) -> None:
        asked = anyio.current_time()
        await good.result("host/ping")
        waits.append(anyio.current_time() - asked)

    async def ask(*, task_status: TaskStatus[None]) -> None:
        async with daemon.wire() as good:
            for _ in range(20):
                await ping(good, before)
            task_status.started()
            while True:
                await ping(good, meanwhile)
                await anyio.sleep(0.01)

    async with anyio.create_task_group() as tasks:
        await tasks.start(ask)
        yield
        tasks.cancel_scope.cancel()
    assert median(meanwhile) < max(PROMPT_ANSWER, TIMES * median(before))
    # No stall in between either: nearly all come in time, and the last of them soon after.
    late = [wait for wait in meanwhile if wait > max(PROMPT_ANSWER, TIMES * max(before))]
    assert len(late) <= len(meanwhile) // 50 + 1, late
    assert max(meanwhile) < max(2.0, TIMES * max(before))
    daemon.open("go")
    assert (await daemon.wait(run)).status == "completed"
    assert await daemon.text(run) == "done"
    # The readers of the store may have come in between.
    await eventually(lambda: daemon.descriptors() <= files + 2)


async def test_nobody_may_stay_without_a_word() -> None:
    """Silence, and half a line, end with the time for a handshake; the reason is told."""
    async with (
        running_daemon(GATED, host={"limits": {"handshake_timeout": 1.5}}) as daemon,
        unharmed(daemon),
        daemon.wire(greet=False) as silent,
        daemon.wire(greet=False) as halting,
    ):
        await halting.send_bytes(b"{")
        for client in (silent, halting):
            error = (await client.read())["error"]
            assert error["message"] == "no `initialize` within 1.5 s"
            assert error["data"]["code"] == "overloaded"
            assert error["data"]["retryable"]
            assert error["data"]["retryAfterMs"] > 0
            await client.closed()


@pytest.mark.anew
async def test_a_line_without_an_end_costs_the_limit_and_no_more() -> None:
    """32 MB from strangers and from friends: refused at the limit, memory stays where it was."""
    limits = {"client_line_bytes": 2 << 20}
    async with running_daemon(GATED, host={"limits": limits}) as daemon, unharmed(daemon):
        before = daemon.memory()
        for greet, limit in ((False, 1 << 20), (True, 2 << 20)):
            async with daemon.wire(greet=greet) as bad:
                for _ in range(32):
                    await bad.send_bytes(b"x" * (1 << 20))
                error = (await bad.read())["error"]["data"]
                assert (error["code"], error["limit"]) == ("too_large", limit)
                await bad.send_bytes(b"\n")
                answer = await bad.call("host/ping")
                assert ("result" in answer) == greet
        assert daemon.memory() - before < 24 << 20


async def test_garbage_is_answered_line_by_line() -> None:
    """Bad UTF-8, NULs, arrays, numbers, nesting: an error each, and the connection goes on."""
    lines = [
        b"\xff\xfe", b"\x00", b"nonsense", b"[]", b"17", b'"text"', b"{}", b"{" * 5000,
        b"[" * 100_000, b'{"jsonrpc":"2.0","id":1.5,"method":"host/ping"}', b"\x1b[2J{",
        b'{"jsonrpc":"2.0","id":null,"method":"\xff"}',
    ]  # fmt: skip
    async with running_daemon(GATED) as daemon, unharmed(daemon), daemon.wire() as bad:
        await bad.send_bytes(b"\n".join([*lines, b"", b"  ", b""]))
        for line in lines:
            assert (await bad.read())["error"]["code"] in (-32700, -32600), line
        await bad.result("host/ping")


async def test_more_connections_than_files() -> None:
    """Two thousand under a limit of 64 files: each is told something, and the good are heard."""
    limits = {"handshake_timeout": 0.6}
    async with (
        running_daemon(GATED, host={"limits": limits}, prepare=_with_files(64)) as daemon,
        unharmed(daemon),
    ):
        told: Counter[str] = Counter()
        for _ in range(5):
            told += await anyio.to_thread.run_sync(_storm, daemon.socket, 400)
            async with daemon.wire() as good:
                await good.result("host/ping")
        assert told.keys() <= {"overloaded"}
        assert told["overloaded"] > 1000
        descriptors = (await daemon.client.stats())["descriptors"]
        assert isinstance(descriptors, dict)
        assert descriptors["limit"] == 64
        assert 0 < descriptors["open"] < 64


def _storm(path: Path, count: int) -> Counter[str]:
    """Open so many connections at once, and see what each is told."""
    told: Counter[str] = Counter()
    with ExitStack() as crowd:
        all_of_them = [crowd.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(count)]
        for each in all_of_them:
            each.connect(str(path))
            each.settimeout(PATIENCE)
        for each in all_of_them:
            error = json.loads(each.recv(4096))["error"]["data"]
            assert ("retryAfterMs" in error) == (error["code"] == "overloaded")
            told[error["code"]] += 1
    return told


async def test_the_silent_make_room_for_those_who_speak() -> None:
    """Every place is taken by connections that say nothing: a newcomer is served all the same."""
    limits = {"max_connections": 8, "handshake_timeout": NEVER}
    async with (
        running_daemon(GATED, host={"limits": limits}) as daemon,
        unharmed(daemon),
        anyio.create_task_group() as tasks,
    ):
        over = anyio.Event()

        async def lurk() -> None:
            async with daemon.wire(greet=False):
                await over.wait()

        for _ in range(12):
            tasks.start_soon(lurk)
        with anyio.fail_after(PATIENCE):
            # It comes back when it is told to.
            async with daemon.connect(patience=None) as good:
                await good.ping()
        over.set()


async def test_too_many_requests_at_once_are_put_off() -> None:
    """Above the limit of open requests the answer is `overloaded`, with when to ask again."""
    limits = {"max_in_flight": 4}
    async with running_daemon(GATED, host={"limits": limits}) as daemon:
        run = await daemon.send(await daemon.session(), "wait")
        async with daemon.wire() as busy:
            wait = {"hostRunId": run.host_run_id}
            await busy.send(*(_request(n, "run/wait", wait) for n in range(6)))
            for refused in (4, 5):
                error = (await busy.answer(refused))["error"]
                assert (error["code"], error["data"]["code"]) == (-32050, "overloaded")
                assert error["data"]["retryable"] is True
                assert error["data"]["retryAfterMs"] > 0
            daemon.open("go")
            ended = [await busy.read() for _ in range(4)]
            assert {frame["id"] for frame in ended} == {0, 1, 2, 3}
            assert {frame["result"]["status"] for frame in ended} == {"completed"}
            await busy.result("host/ping")


@pytest.mark.anew
async def test_a_flood_of_requests_that_nobody_reads_the_answers_of() -> None:
    """The daemon stops reading from it: memory is bounded, and the others are served."""
    async with running_daemon(GATED) as daemon, unharmed(daemon):
        before = daemon.memory()
        with socket.socket(socket.AF_UNIX) as bad:
            taken = await anyio.to_thread.run_sync(_pour, bad, daemon.socket)
            assert taken < 100 << 20, "it takes whatever comes"
            assert daemon.memory() - before < 40 << 20


def _pour(bad: socket.socket, path: Path) -> int:
    """Send requests and read nothing until no more are taken; returns how many bytes were."""
    flood = b"".join(
        json.dumps(_request(number, "host/stats", None)).encode() + b"\n" for number in range(2000)
    )
    bad.connect(str(path))
    bad.sendall(json.dumps(_request(0, "initialize", {"protocolVersion": 1})).encode() + b"\n")
    bad.settimeout(1)
    taken = 0
    with suppress(TimeoutError):
        while taken < 100 << 20:
            taken += bad.send(flood)
    return taken


@pytest.mark.anew
async def test_a_subscriber_that_does_not_read() -> None:
    """60 MB of events: the turn takes its normal time; memory stays bounded; none is missing."""
    script = f"ON prompt\n{chunks(15_000, 4_000)}"
    async with running_daemon(script) as daemon, daemon.wire() as stopped:
        session = await daemon.session()
        await stopped.result("events/subscribe", {"scope": {"sessionId": session}})
        before = daemon.memory()
        run = await daemon.ask(session, "q")

        assert run.status == "completed"
        assert daemon.memory() - before < 40 << 20
        seen: list[int] = []
        while not seen or seen[-1] < int(run.terminal_seq or 0):
            frame = await stopped.read()
            seen += [int(event["seq"]) for event in frame["params"]["events"]]
        assert seen == list(range(1, len(seen) + 1))


async def test_they_leave_in_the_middle_of_an_answer() -> None:
    """Megabytes are on their way when the other end is gone: it ends that connection only."""
    script = f'{GATED}ON prompt "much"\n{chunks(20_000, 10)}'
    async with running_daemon(script) as daemon:
        much = await daemon.ask(await daemon.session(), "much")
        async with unharmed(daemon):
            for end in (Wire.reset, Wire.reset, _close_half):
                async with daemon.wire() as bad:
                    asked = {"hostRunId": much.host_run_id, "limit": 2000}
                    await bad.send(*(_request(n, "run/events", asked) for n in range(20)))
                    end(bad)


def _close_half(client: Wire) -> None:
    """Leave by the end of the block, with nothing read."""


def _request(number: int, method: str, params: object) -> Frame:
    frame: Frame = {"jsonrpc": "2.0", "id": number, "method": method}
    return frame if params is None else {**frame, "params": params}


def _with_files(limit: int) -> Callable[[Daemon], None]:
    """Have the daemon start with so many files at most."""
    code = (
        "import os, resource, sys;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )

    def prepare(daemon: Daemon) -> None:
        daemon.wrapper = [sys.executable, "-c", code]

    return prepare


async def test_they_hang_up_half_way_or_for_good_in_mid_turn() -> None:
    """The client that sent the prompt goes away, one way or the other: the turn is not its."""
    async with running_daemon(GATED) as daemon, unharmed(daemon):
        session = await daemon.session()
        for number, goodbye in enumerate(("close", "half", "reset")):
            async with daemon.wire() as wire:
                given = {"requestId": goodbye, "sessionId": session, "text": f"q{number}"}
                run = await wire.result("run/create", given)
                if goodbye == "half":
                    await wire.end_sending()
                elif goodbye == "reset":
                    wire.reset()
            with anyio.fail_after(PATIENCE):
                ended = await daemon.client.wait(run["hostRunId"])
            assert ended.status == "completed"
