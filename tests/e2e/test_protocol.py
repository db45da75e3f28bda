"""The socket's language: the handshake, every method's params, errors that programs can match."""

import os
from typing import Any

import anyio

from tests.support.daemon import Daemon, running_daemon
from tests.support.patience import PATIENCE

#: Every method with params that are right in shape.
METHODS: dict[str, dict[str, Any]] = {
    "host/ping": {},
    "host/stats": {},
    "agent/list": {"profile": "default"},
    "session/create": {"agentId": "fake", "cwd": "/tmp"},
    "session/list": {"limit": 1},
    "session/get": {"sessionId": "S"},
    "session/activeRun": {"sessionId": "S", "workspaceId": "w"},
    "session/configure": {"sessionId": "S", "configOption": {}},
    "run/create": {"requestId": "x", "sessionId": "S", "text": "hi"},
    "run/get": {"hostRunId": "R", "include": ["envelope"]},
    "run/list": {"sessionId": "S", "status": "completed"},
    "run/events": {"hostRunId": "R", "afterSeq": "0"},
    "run/wait": {"hostRunId": "R", "timeoutMs": 1},
    "run/cancel": {"hostRunId": "R"},
    "queue/list": {"sessionId": "S"},
    "queue/hold": {"sessionId": "S"},
    "queue/release": {"sessionId": "S"},
    "events/subscribe": {"scope": {"sessionId": "S"}, "maxLatencyMs": 5, "view": "events"},
    "permission/list": {"sessionId": "S", "status": "all"},
    "runtime/status": {"sessionId": "S"},
}
NEEDED = {
    "session/create": "agentId",
    "session/get": "sessionId",
    "session/activeRun": "sessionId",
    "session/configure": "sessionId",
    "session/rename": "sessionId",
    "session/pin": "sessionId",
    "session/delete": "sessionId",
    "session/fork": "sessionId",
    "session/discover": "agentId",
    "session/adopt": "agentId",
    "run/create": "requestId",
    "run/get": "hostRunId",
    "run/events": "hostRunId",
    "run/wait": "hostRunId",
    "run/cancel": "hostRunId",
    "run/dismiss": "hostRunId",
    "queue/list": "sessionId",
    "queue/hold": "sessionId",
    "queue/release": "sessionId",
    "events/subscribe": "scope",
    "events/unsubscribe": "subscriptionId",
    "permission/respond": "permissionId",
    "agent/authenticate": "agentId",
    "agent/logout": "agentId",
    "elicitation/respond": "elicitationId",
}


def filled(params: Any, session: str, run: str) -> Any:  # noqa: ANN401  it is JSON
    """The params with real ids."""
    if isinstance(params, dict):
        return {name: filled(value, session, run) for name, value in params.items()}
    return {"S": session, "R": run}.get(params, params) if isinstance(params, str) else params


async def test_every_method_takes_its_params_and_meta_and_nothing_else() -> None:
    """`_meta` is accepted everywhere, an unknown member is refused by its name."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        session = await daemon.session()
        run = (await daemon.ask(session, "first")).host_run_id
        for method, given in METHODS.items():
            params = filled(given, session, run)
            await wire.result(method, {**params, "_meta": {"any": [1]}})
            error = await wire.error(method, {**params, "surprise": 1})
            assert error["code"] == -32602, (method, error)
            assert "surprise" in error["message"], (method, error)
            assert error["data"] == {"code": "invalid_params", "retryable": False}


async def test_what_is_needed_and_missing_is_named() -> None:
    """Every method that needs something says what, and refuses another type, null and lists."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        for method, name in NEEDED.items():
            error = await wire.error(method, {})
            assert error["code"] == -32602
            assert name in error["message"], (method, error)
            wrongs: list[object] = [5, None, [], {}]
            for wrong in wrongs:
                error = await wire.error(method, {name: wrong})
                assert error["code"] == -32602, (method, wrong)
            error = await wire.error(method, [1])
            assert error["code"] == -32602, method


async def test_things_that_do_not_exist() -> None:
    """Each has its own word."""
    cases = {
        "session/get": ({"sessionId": "x"}, "session_not_found"),
        "session/activeRun": ({"sessionId": "x"}, "session_not_found"),
        "queue/list": ({"sessionId": "x"}, "session_not_found"),
        "queue/hold": ({"sessionId": "x"}, "session_not_found"),
        "runtime/status": ({"sessionId": "x"}, "session_not_found"),
        "run/get": ({"hostRunId": "x"}, "run_not_found"),
        "run/events": ({"hostRunId": "x"}, "run_not_found"),
        "run/wait": ({"hostRunId": "x"}, "run_not_found"),
        "run/cancel": ({"hostRunId": "x"}, "run_not_found"),
        "run/dismiss": ({"hostRunId": "x"}, "run_not_found"),
        "permission/respond": ({"permissionId": "x", "optionId": "y"}, "permission_not_found"),
        "elicitation/respond": ({"elicitationId": "x", "action": "cancel"}, "permission_not_found"),
        "session/configure": ({"sessionId": "x"}, "session_not_found"),
        "session/create": ({"agentId": "x", "cwd": "/tmp"}, "agent_not_found"),
    }
    async with running_daemon("") as daemon, daemon.wire() as wire:
        for method, (params, word) in cases.items():
            error = await wire.error(method, params)
            assert (error["code"], error["data"]["code"]) == (-32002, word), method
        error = await wire.error("events/subscribe", {"scope": {"hostRunId": "x"}})
        assert error["data"]["code"] == "run_not_found"
        error = await wire.error("no/such", {})
        assert error["code"] == -32601


async def test_the_handshake() -> None:
    """Before it nothing is answered; it ignores what it does not know; versions are negotiated."""
    async with running_daemon("") as daemon:
        async with daemon.wire(greet=False) as wire:
            error = await wire.error("host/ping")
            assert error["data"]["code"] == "not_initialized"
            error = await wire.error("no/such")
            assert error["data"]["code"] == "not_initialized"
            for versions in ({"protocolVersion": 99}, {"protocolVersions": [7, 8]}, {}):
                error = await wire.error("initialize", versions)
                assert error["data"]["code"] == "unsupported_version"
                assert error["data"]["supported"] == [1]
            result = await wire.result(
                "initialize",
                {
                    "protocolVersions": [3, 1],
                    "clientInfo": {"name": "me", "version": "1", "more": 1},
                    "unknown": {},
                },
            )
            assert result["protocolVersion"] == 1
            assert result["actorId"] == f"uid:{os.getuid()}"
            assert result["hostInfo"]["pid"] == daemon.pid
            assert result["storeId"].startswith("store_")
            assert result["limits"]["maxInFlight"] == 256
        async with daemon.wire(greet=False) as wire:
            hello = {"protocolVersion": 1, "clientId": result["clientId"], "actorId": "anna"}
            again = await wire.result("initialize", hello)
            assert (again["clientId"], again["actorId"]) == (result["clientId"], "anna")


async def test_who_may_stop_the_host() -> None:
    """With `admins` in the configuration only they may; everybody else may use it."""
    async with running_daemon("", host={"admins": ["anna"]}) as daemon:
        async with daemon.wire(actorId="bert") as bert:
            error = await bert.error("host/shutdown")
            assert error["data"]["code"] == "permission_denied"
            assert (await bert.result("host/ping"))["uptimeMs"] >= 0
        async with daemon.wire(actorId="anna") as anna:
            assert await anna.result("host/shutdown") == {"ok": True}
        assert await daemon.exit_code() == 0


GARBAGE = [
    b"not json\n",
    b"[1,2]\n",
    b'"text"\n',
    b"{}\n",
    b'{"id":1}\n',
    b'{"id":1.5,"method":"host/ping"}\n',
    b'{"id":{},"method":"host/ping"}\n',
    b'{"id":1,"method":"host/ping","params":{"a":"\xff"}}\n',
    b'{"id":1,"method":"host/ping","params":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
]


async def test_garbage_is_answered_and_the_connection_lives() -> None:
    """Bad input gets an error and harms nobody, not even the one who sent it."""
    async with running_daemon("") as daemon:
        for line in GARBAGE:
            async with daemon.wire() as wire:
                await wire.send_bytes(line)
                answer = await wire.read()
                assert answer["error"]["code"] in (-32700, -32600, -32602), (line[:80], answer)
                assert (await wire.result("host/ping"))["now"], line[:80]


async def test_ids_are_echoed_as_they_came() -> None:
    """Integers of any length and texts; a notification gets no answer; \\r and blanks are fine."""
    ids: list[object] = [0, -1, 2**63 - 1, 2**64, "", "0", "ä", None]
    async with running_daemon("") as daemon, daemon.wire() as wire:
        for request_id in ids:
            await wire.send({"jsonrpc": "2.0", "id": request_id, "method": "host/ping"})
            assert (await wire.read())["id"] == request_id
        await wire.send({"method": "host/ping"})
        await wire.send_bytes(b'\n  \n{"id":7,"method":"host/ping"}\r\n')
        assert (await wire.read())["id"] == 7


async def test_two_hundred_and_fifty_six_in_flight() -> None:
    """One more is refused at once, with a word and a time to wait; the others get their answers."""
    async with running_daemon("ON prompt\n    GATE ${DIR}/go\n") as daemon, daemon.wire() as wire:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        wait = {"method": "run/wait", "params": {"hostRunId": run.host_run_id}}
        await wire.send(*({"id": n, **wait} for n in range(257)))
        refused = await wire.read()
        assert refused["id"] == 256
        assert refused["error"]["data"]["code"] == "overloaded"
        assert refused["error"]["data"]["retryable"] is True
        assert refused["error"]["data"]["retryAfterMs"] > 0
        daemon.open("go")
        answered = {(await wire.read())["id"] for _ in range(256)}
        assert answered == set(range(256))


async def test_a_line_over_the_limit() -> None:
    """It is refused, also when it never ends; the connection lives."""
    limits = {"limits": {"client_line_bytes": 65536}}
    async with running_daemon("", host=limits) as daemon, daemon.wire() as wire:
        await wire.send_bytes(b"x" * 100_000)
        answer = await wire.read()
        assert answer["error"]["data"]["code"] == "too_large"
        assert answer["error"]["data"]["limit"] == 65536
        await wire.send_bytes(b"x" * 100_000 + b"\n")
        assert (await wire.result("host/ping"))["now"]


async def test_a_client_that_closed_its_half_gets_its_answers() -> None:
    """Requests sent before are answered, subscriptions go on, until it goes altogether."""
    async with running_daemon("ON prompt\n    GATE ${DIR}/go\n") as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        async with daemon.wire() as wire:
            wait = {"hostRunId": run.host_run_id}
            await wire.send({"id": "w", "method": "run/wait", "params": wait})
            await wire.end_sending()
            daemon.open("go")
            assert (await wire.answer("w"))["result"]["status"] == "completed"
            await wire.closed()


async def test_a_client_that_never_says_hello() -> None:
    """It is told and let go after the handshake's time."""
    async with (
        running_daemon("", host={"limits": {"handshake_timeout": 1.5}}) as daemon,
        daemon.wire(greet=False) as wire,
    ):
        await wire.send_bytes(b"{")
        answer = await wire.read()
        assert answer["error"]["data"]["code"] == "overloaded"
        await wire.closed()


async def test_too_many_clients() -> None:
    """The one too many is told to come back; those inside are served."""
    async with running_daemon("", host={"limits": {"max_connections": 3}}) as daemon:
        async with daemon.wire() as one, daemon.wire() as two:
            async with daemon.wire(greet=False) as three:
                answer = await three.read()
                assert answer["error"]["data"]["code"] == "overloaded"
                await three.closed()
            for client in (one, two):
                assert (await client.result("host/ping"))["now"]
        await _connections_are(daemon, 1)
        async with daemon.wire() as again:
            assert (await again.result("host/ping"))["now"]


async def test_clients_that_behave_badly_harm_nobody() -> None:
    """Half a line, a reset in mid-answer, floods, garbage; the turn completes, files are closed."""
    async with running_daemon("ON prompt\n    GATE ${DIR}/go\n") as daemon, daemon.wire() as good:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        await daemon.is_running(run)
        before = daemon.descriptors()

        async def misbehave(what: bytes) -> None:
            async with daemon.wire() as bad:
                await bad.send_bytes(what)
                bad.reset()

        flood = b'{"id":1,"method":"session/list"}\n' * 2000
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                for what in (b"{", b"\xff\xfe\n", b"x" * 200_000, flood):
                    tasks.start_soon(misbehave, what)
        for _ in range(20):
            with anyio.fail_after(PATIENCE):
                assert (await good.result("host/ping"))["now"]
        daemon.open("go")

        assert (await daemon.wait(run)).status == "completed"
        await _connections_are(daemon, 2)
        assert daemon.descriptors() <= before


async def _connections_are(daemon: Daemon, number: int) -> None:
    """Wait until the daemon has noticed that others have gone."""
    with anyio.fail_after(PATIENCE):
        while (await daemon.client.stats())["connections"] != number:
            pass


async def test_lists_page_and_filter() -> None:
    """Sessions: active first, then the latest; pages join; filters and wrong cursors."""
    script = 'ON prompt "wait"\n    GATE ${DIR}/go\n'
    async with running_daemon(script) as daemon, daemon.wire() as wire:
        sessions = [await daemon.session(title=f"t{n}", workspaceId=f"w{n % 2}") for n in range(5)]
        run = await daemon.send(sessions[1], "wait")
        await daemon.is_running(run)

        items: list[Any] = []
        cursor = None
        while True:
            page = await wire.result("session/list", {"limit": 2, "cursor": cursor})
            items += page["items"]
            cursor = page["nextCursor"]
            if cursor is None:
                break
        assert items[0]["sessionId"] == sessions[1]
        assert {item["sessionId"] for item in items} == set(sessions)
        assert len(items) == 5
        assert items[0]["activePinned"] is True
        page = await wire.result("session/list", {"workspaceId": "w1"})
        assert {item["sessionId"] for item in page["items"]} == {sessions[1], sessions[3]}
        page = await wire.result("session/list", {"status": "active"})
        assert [item["sessionId"] for item in page["items"]] == [sessions[1]]
        error = await wire.error("session/list", {"cursor": "nonsense"})
        assert error["data"]["code"] == "cursor_malformed"
        daemon.open("go")
        await daemon.wait(run)
        for n in range(4):
            await daemon.ask(sessions[0], f"q{n}")
        first = await wire.result("run/list", {"sessionId": sessions[0], "limit": 3})
        rest = await wire.result(
            "run/list", {"sessionId": sessions[0], "cursor": first["nextCursor"]}
        )
        assert len(first["items"]) == 3
        assert len(rest["items"]) == 1
        created = [item["createdAt"] for item in first["items"] + rest["items"]]
        assert created == sorted(created, reverse=True)


async def test_wait_with_a_timeout_returns_the_run_as_it_is() -> None:
    """`timeoutMs`: no error, the run so far."""
    async with running_daemon("ON prompt\n    GATE ${DIR}/go\n") as daemon:
        run = await daemon.send(await daemon.session(), "hi")
        await daemon.is_running(run)
        seen = await daemon.client.wait(run.host_run_id, timeout_ms=50)

        assert seen.status == "running"
        daemon.open("go")
        await daemon.wait(run)


async def test_the_runs_envelope_is_for_audit() -> None:
    """`include: ["envelope"]`: roots are the session's own, never what the client claimed."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        session = await daemon.session()
        run = await daemon.ask(
            session, "hi", allowedRoots=["/"], editorTarget={"path": "a.md"}, contextRefs=["x"]
        )
        params = {"hostRunId": run.host_run_id, "include": ["envelope"]}
        envelope = (await wire.result("run/get", params))["envelope"]

        assert envelope["schema"] == "mnote.agent_run_envelope.v1"
        assert envelope["allowedRoots"] == [str(daemon.work)]
        assert envelope["editorTarget"] == {"path": "a.md"}
        assert envelope["contextRefs"] == ["x"]
        assert "envelope" not in await wire.result("run/get", {"hostRunId": run.host_run_id})
        (heard,) = daemon.heard("session/prompt")
        assert heard["params"]["prompt"] == [{"type": "text", "text": "hi"}]


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("session/list", {"limit": -1}, "$.limit"),
    ("session/list", {"limit": 10**9}, "$.limit"),
    ("session/list", {"limit": 0}, "$.limit"),
    ("session/list", {"status": "dreaming"}, "$.status"),
    ("run/list", {"status": "dreaming"}, "$.status"),
    ("run/list", {"limit": -5}, "$.limit"),
    ("run/events", {"hostRunId": "R", "limit": -1}, "$.limit"),
    ("run/wait", {"hostRunId": "R", "timeoutMs": -1}, "$.timeoutMs"),
    ("run/wait", {"hostRunId": "R", "timeoutMs": 2**40}, "$.timeoutMs"),
    ("permission/list", {"limit": 0}, "$.limit"),
    ("events/subscribe", {"scope": {"all": True}, "maxLatencyMs": -1}, "$.maxLatencyMs"),
    ("session/create", {"agentId": "fake", "cwd": "/tmp", "title": "t" * 2000}, "$.title"),
    ("run/create", {"requestId": "r" * 2000, "sessionId": "S", "text": "x"}, "$.requestId"),
    ("run/create", {"requestId": "b1", "sessionId": "S", "text": " \n\t"}, "$.text"),
    ("run/create", {"requestId": "b2", "sessionId": "S", "prompt": []}, "$.prompt"),
    ("run/create", {"requestId": "b3", "sessionId": "S",
                    "prompt": [{"type": "text", "text": ""}]}, "$.prompt[0].text"),
    ("run/create", {"requestId": "b4", "sessionId": "S",
                    "prompt": [{"type": "image", "data": "", "mimeType": "image/png"},
                               {"type": "text", "text": "  "}]}, "$.prompt[1].text"),
    ("run/create", {"requestId": "b5", "sessionId": "S", "prompt": [{"type": 5}]}, "$.prompt[0]"),
]  # fmt: skip


async def test_values_out_of_bounds_are_refused_with_their_path() -> None:
    """Nothing of it is recorded, and nothing is silently made to fit."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        session = await daemon.session()
        run = (await daemon.ask(session, "first")).host_run_id
        for method, given, path in BAD:
            error = await wire.error(method, filled(given, session, run))
            assert error["code"] == -32602, (method, error)
            assert path in error["message"], (method, error)
        runs = await wire.result("run/list", {"sessionId": session})
        assert [each["hostRunId"] for each in runs["items"]] == [run]


async def test_content_that_no_agent_could_read_is_not_queued() -> None:
    """A kind that ACP does not know has its own word, and the kinds there are in the message."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        session = await daemon.session()
        error = await wire.error(
            "run/create",
            {"requestId": "x", "sessionId": session, "prompt": [{"type": "hologram" * 1000}]},
        )
        assert error["data"]["code"] == "unsupported_content"
        assert "$.prompt[0].type" in error["message"]
        assert "resource_link" in error["message"]
        assert len(error["message"]) < 500
        assert (await wire.result("run/list", {"sessionId": session}))["items"] == []


async def test_what_a_client_sent_is_not_sent_back_whole() -> None:
    """A message quotes the beginning and the end of what it is about."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        for method, params in {
            "session/get": {"sessionId": "x" * 5_000_000},
            "run/get": {"hostRunId": "x" * 5_000_000},
            "run/events": {"hostRunId": "R", "afterSeq": "9" * 1_000_000},
            "session/create": {"agentId": "fake", "cwd": "/" + "x" * 1_000_000},
            "x" * 1_000_000: {},
        }.items():
            error = await wire.error(method, params)
            assert len(error["message"]) < 3000
        assert "$.cwd" in (await wire.error(
            "session/create", {"agentId": "fake", "cwd": "/" + "x" * 1_000_000}
        ))["message"]  # fmt: skip


async def test_a_client_is_introduced_once() -> None:
    """A second `initialize` is refused and changes nothing."""
    async with running_daemon("") as daemon, daemon.wire() as wire:
        error = await wire.error("initialize", {"protocolVersion": 1, "actorId": "somebody else"})
        assert error["code"] == -32600
        assert "once" in error["message"]
        assert (await wire.result("host/ping"))["now"]
