"""The conversation that golden frames are made from: every method and every error once.

A method or an error that is new needs its lines here; `tools/protocol.py` then writes its frame.
"""

from typing import Any

import msgspec

from acphost import errors
from acphost.rpc.failures import error_object
from tests.support.daemon import Daemon, running_daemon
from tests.support.frames import Recorder
from tests.support.wire import Frame, Wire

MODES = '{"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "plan"}]}}'
FORM = (
    '{"sessionId": "agent-session-1", "mode": "form", "message": "Which branch?", '
    '"requestedSchema": {"type": "object", "required": ["branch"], '
    '"properties": {"branch": {"type": "string", "title": "Branch"}}}}'
)
LOGINS = '[{"id": "account", "name": "Account"}]'
#: What the agent does, as the demo agent would, but when it is told to and not by the clock.
SCRIPT = f"""
INIT {{"agentCapabilities": {{"auth": {{"logout": {{}}}}}}, "authMethods": {LOGINS}}}
NEW agent-session-1 {MODES}
ON load
    ANSWER {MODES}

ON prompt "permission"
    CALL write-1 pending title="Write notes.md" kind=edit
    PERM write-1 allow_once:allow_once:"Allow once" reject_once:reject_once:Reject
    UPD write-1 completed
    MSG "Done."

ON prompt "form"
    ASK elicitation/create {FORM}
    MSG "Thank you."

ON prompt "wait"
    MSG "Waiting. "
    GATE ${{DIR}}/go
    MSG "Went on."

ON prompt "crash"
    MSG "Goodbye. "
    EXIT 70

ON prompt "read"
    ASK fs/read_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/notes.md"}}
    ASK fs/write_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/notes.md",
        "content": "# Notes\\n"}}

ON prompt "command"
    ASK terminal/create {{"sessionId": "${{SESSION}}", "command": "sleep 300"}}
    GATE ${{DIR}}/stopped

ON prompt
    THOUGHT "A short answer will do."
    PLAN completed:"Answer"
    MSG "Hello!"
"""
BOSS = "anna"
HOST = {
    "admins": [BOSS],
    "queue": {"limit": 2},
    "limits": {"max_in_flight": 4, "client_line_bytes": 1 << 20},
    "drain": {"timeout": 5},
}
CLIENT = {"name": "example", "version": "1.0"}


async def play() -> dict[str, dict[str, Any]]:
    """Play it with a real daemon; the exchanges by name."""
    async with running_daemon(SCRIPT, host=HOST, prepare=_with_programs) as daemon:
        daemon.expected.add("garbage")  # of the probe
        recorder = Recorder(daemon.folder)
        async with daemon.wire(greet=False) as wire:
            await _greeting(recorder, wire)
            players = Play(daemon, recorder, wire)
            await players.host()
            await players.conversation()
            await players.events()
            await players.permission()
            await players.form()
            await players.queue()
            await players.interrupted()
            await players.runtime()
            await players.jobs()
            await players.grants()
            await players.refusals()
            await players.questions()
            await players.kinds()
            await players.shutdown()
    _rare(recorder)
    return dict(sorted(recorder.frames.items()))


def _with_programs(daemon: Daemon) -> None:
    """The machine has these programs, whatever else is on the one that plays it."""
    programs = daemon.folder / "bin"
    programs.mkdir()
    for name in ("sh", "sleep"):
        (programs / name).symlink_to(f"/bin/{name}")
    daemon.environ["PATH"] = str(programs)


async def _greeting(recorder: Recorder, wire: Wire) -> None:
    await recorder.refused(wire, "host/ping")
    await recorder.refused(wire, "initialize", {"protocolVersion": 99})
    hello = {
        "protocolVersion": 1, "clientInfo": CLIENT, "actorId": BOSS,
        "capabilities": {"permissions": True},
    }  # fmt: skip
    await recorder.call(wire, "initialize", hello)


class Play:
    """Its acts; each begins where the last has ended."""

    def __init__(self, daemon: Daemon, recorder: Recorder, wire: Wire) -> None:
        self._daemon = daemon
        self._recorder = recorder
        self._wire = wire
        self._session = ""
        self._run: Frame = {}

    async def _call(self, method: str, params: Frame | None = None) -> Any:  # noqa: ANN401
        return await self._recorder.call(self._wire, method, params)

    async def _refused(self, word: str, method: str, params: Frame | None = None) -> None:
        assert await self._recorder.refused(self._wire, method, params) == word

    async def _send(self, text: str, request_id: str) -> Frame:
        params = {"requestId": request_id, "sessionId": self._session, "text": text}
        run: Frame = await self._call("run/create", params)
        return run

    async def _speaks(self, run: Frame) -> None:
        """Wait until the agent has said something: what comes after it has its place then."""
        async with self._daemon.client.subscribe(
            run_id=run["hostRunId"], kinds=["message.delta"]
        ) as events:
            async for _ in events:
                return

    async def _ended(self, run: Frame) -> Frame:
        ended: Frame = await self._call("run/wait", {"hostRunId": run["hostRunId"]})
        return ended

    async def host(self) -> None:
        """The area host, but for its end."""
        await self._call("host/ping")
        await self._call("host/stats")
        await self._call("host/schema")
        await self._call("host/reload")
        await self._call("host/retention", {"dryRun": True})
        await self._call("host/backup", {"path": str(self._daemon.folder / "backup.db")})
        await self._call("agent/list")
        await self._call("agent/authenticate", {"agentId": "fake", "methodId": "account"})
        await self._call("agent/logout", {"agentId": "fake"})
        await self._call("agent/get", {"agentId": "fake"})
        await self._call("agent/check", {"agentId": "fake"})
        await self._call("agent/probe", {"agentId": "fake", "prompts": False})

    async def conversation(self) -> None:
        """A session with a run."""
        created = await self._call(
            "session/create", {"agentId": "fake", "cwd": str(self._daemon.work), "title": "Notes"}
        )
        self._session = created["sessionId"]
        self._run = await self._ended(await self._send("hello", "r-1"))
        run = {"hostRunId": self._run["hostRunId"]}
        await self._call("run/get", {**run, "include": ["envelope"]})
        await self._call("run/list", {"sessionId": self._session})
        await self._call("run/events", {**run, "afterSeq": 0})
        await self._call("session/list", {"limit": 10})
        await self._call("session/get", {"sessionId": self._session})
        await self._call("session/activeRun", {"sessionId": self._session})
        await self._call("session/configure", {"sessionId": self._session, "mode": "plan"})
        await self._call("session/rename", {"sessionId": self._session, "title": "My notes"})
        await self._call("session/pin", {"sessionId": self._session})
        folder = str(self._daemon.work)
        await self._call("session/discover", {"agentId": "fake", "cwd": folder})
        other = await self._call("session/fork", {"sessionId": self._session})
        theirs = {"agentId": "fake", "acpSessionId": "agent-session-0"}
        await self._call("session/adopt", {**theirs, "cwd": folder})
        gone = {"sessionId": other["sessionId"], "deleteExternalProviderSession": True}
        await self._refused("confirmation_required", "session/delete", gone)
        await self._call("session/delete", {"sessionId": other["sessionId"]})

    async def events(self) -> None:
        """A subscription, and what comes by it."""
        subscribed = await self._call(
            "events/subscribe",
            {
                "scope": {"sessionId": self._session},
                "afterSeq": self._run["firstSeq"],
                "kinds": ["message.delta", "run.completed"],
            },
        )
        batch = await self._wire.read()
        caught_up = await self._wire.read()
        self._recorder.keep("events", notification=batch, caughtUp=caught_up)
        subscription = {"subscriptionId": subscribed["subscriptionId"]}
        await self._call("events/unsubscribe", subscription)

    async def permission(self) -> None:
        """A question, its answer, and a second answer that comes too late."""
        run = await self._send("permission please", "r-2")
        await self._daemon.has_event(self._session, "permission.requested")
        (decision,) = (await self._call("permission/list", {"sessionId": self._session}))["items"]
        answer = {"permissionId": decision["permissionId"], "optionId": "allow_once"}
        await self._call("permission/respond", answer)
        await self._refused("already_resolved", "permission/respond", answer)
        await self._ended(run)

    async def form(self) -> None:
        """A form, filled in."""
        run = await self._send("form please", "r-2b")
        await self._daemon.has_event(self._session, "elicitation.requested")
        (decision,) = (await self._call("permission/list", {"sessionId": self._session}))["items"]
        content = {"branch": "main"}
        answer = {"elicitationId": decision["permissionId"], "action": "accept", "content": content}
        await self._call("elicitation/respond", answer)
        await self._ended(run)

    async def queue(self) -> None:
        """Runs that wait behind one that does."""
        first = await self._send("wait", "r-3")
        await self._speaks(first)
        waiting = await self._send("then this", "r-4")
        last = await self._send("and this", "r-5")
        await self._call("queue/list", {"sessionId": self._session})
        seen = {"hostRunId": last["hostRunId"], "expectedRev": 1}
        await self._call("queue/edit", {**seen, "text": "and this instead"})
        await self._call("queue/move", {**seen, "expectedRev": 2, "position": 1})
        request = {"sessionId": self._session, "text": "one too many", "requestId": "r-6"}
        await self._refused("queue_full", "run/create", request)
        await self._call(
            "queue/hold", {"sessionId": self._session, "reason": "let me read this first"}
        )
        await self._call("run/cancel", {"hostRunId": waiting["hostRunId"]})
        await self._call("queue/release", {"sessionId": self._session})
        self._daemon.open("go")
        await self._ended(first)

    async def interrupted(self) -> None:
        """A run whose agent died: once more, and never again."""
        run = await self._ended(await self._send("crash", "r-7"))
        again = await self._call(
            "run/resume", {"hostRunId": run["hostRunId"], "resumeRequestId": "again-1"}
        )
        await self._ended(again)
        await self._call("run/dismiss", {"hostRunId": again["hostRunId"]})

    async def runtime(self) -> None:
        """What serves a session, and its end."""
        await self._ended(await self._send("hello again", "r-8"))
        await self._call("runtime/status", {"sessionId": self._session})
        await self._call("runtime/processes", {"sessionId": self._session})
        await self._call("runtime/logs", {"sessionId": self._session, "limit": 10})
        await self._call("runtime/health")
        await self._call("usage/get", {"sessionId": self._session})
        await self._call("runtime/start", {"sessionId": self._session})
        await self._call("runtime/reset", {"sessionId": self._session, "next": "continue"})

    async def jobs(self) -> None:
        """A command that an agent runs, ended by a person."""
        run = await self._send("command", "r-20")
        await self._daemon.is_status(self._session, "waiting")
        (decision,) = await self._daemon.questions(self._session)
        await self._daemon.client.respond(decision.permission_id, "allow_once")
        await self._daemon.has_event(self._session, "job.started")
        (job,) = (await self._call("job/list", {"sessionId": self._session}))["items"]
        await self._call("job/stop", {"jobId": job["jobId"]})
        await self._call("job/stopAll")
        self._daemon.open("stopped")
        await self._ended(run)

    async def grants(self) -> None:
        """A folder granted and taken back."""
        added = await self._call("grant/add", {"path": str(self._daemon.folder), "access": "read"})
        await self._call("grant/list")
        await self._call("grant/remove", {"grantId": added["grantId"]})

    async def refusals(self) -> None:
        """Whatever is wrong with a request."""
        run = {"hostRunId": self._run["hostRunId"]}
        session = {"sessionId": self._session}
        await self._refused("method_not_found", "session/unknown")
        await self._refused("invalid_params", "session/get", {"sessionId": 5})
        await self._refused("session_not_found", "session/get", {"sessionId": "sess_none"})
        await self._refused("run_not_found", "run/get", {"hostRunId": "run_none"})
        await self._refused("agent_not_found", "session/create", {"agentId": "nobody", "cwd": "/"})
        await self._refused(
            "permission_not_found",
            "permission/respond",
            {"permissionId": "perm_none", "optionId": "allow_once"},
        )
        await self._refused(
            "conflict", "run/create", {**session, "requestId": "r-1", "text": "another text"}
        )
        await self._refused("cursor_malformed", "run/events", {**run, "afterSeq": "last"})
        await self._refused("cursor_future", "run/events", {**run, "afterSeq": 10**9})
        await self._refused("cursor_foreign", "run/events", {**run, "storeId": "another"})
        await self._garbage()
        async with self._daemon.wire(actorId="bert") as other:
            await self._recorder.refused(other, "host/reload")
            await self._overload(other)

    async def _garbage(self) -> None:
        """Lines that are no requests: the answer has no id."""
        for line in ("not JSON", '{"jsonrpc":"2.0"}', "-" * (1 << 20) + "-"):
            await self._wire.send_bytes(line.encode() + b"\n")
            error = (await self._wire.answer(None))["error"]
            shown = line if len(line) < 100 else "(more than 1048576 bytes)"
            self._recorder.keep_error(error, request_id=None, line=shown)

    async def _overload(self, other: Wire) -> None:
        """More requests than a connection may have open."""
        self._daemon.path("go").unlink()
        run = await self._send("wait", "r-10")
        wait = {"jsonrpc": "2.0", "method": "run/wait", "params": {"hostRunId": run["hostRunId"]}}
        await other.send(*({**wait, "id": number} for number in range(101, 106)))
        refused = await other.answer(105)
        self._recorder.keep_error(refused["error"], request={**wait, "id": 1})
        self._daemon.open("go")
        await self._ended(run)

    async def questions(self) -> None:
        """What the daemon asks a client."""
        offer = {"fs": {"readTextFile": True, "writeTextFile": True}}
        async with self._daemon.wire(capabilities=offer) as editor:
            scope = {"scope": {"sessionId": self._session}, "after": "now"}
            await editor.result("events/subscribe", scope)
            run = await self._send("read", "r-13")
            await self._asked(editor, "fs/read_text_file", {"content": "# Notes, not saved\n"})
            await self._daemon.is_status(self._session, "waiting")
            (decision,) = await self._daemon.questions(self._session)
            await self._daemon.client.respond(decision.permission_id, "allow_once")
            await self._asked(editor, "fs/write_text_file", {})
            await self._ended(run)

    async def _asked(self, editor: Wire, method: str, result: Frame) -> None:
        """Answer a question of the daemon."""
        asked = await editor.read()
        while asked.get("method") != method:
            asked = await editor.read()
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        await editor.send(answer)
        self._recorder.keep(method.replace("/", "."), request=asked, answer=answer)

    async def kinds(self) -> None:
        """One event of each kind that the session has seen."""
        async with self._daemon.wire() as other:
            await other.result("events/subscribe", {"scope": {"sessionId": self._session}})
            while True:
                params = (await other.read())["params"]
                for event in params["events"]:
                    self._recorder.keep(f"event.{event['kind']}", event=event)
                if params.get("caughtUp"):
                    return

    async def shutdown(self) -> None:
        """Its end, while a turn is running, and what it says to new work."""
        self._daemon.path("go").unlink()
        run = await self._send("wait", "r-11")
        await self._speaks(run)
        await self._call("host/shutdown")
        new = {"requestId": "r-12", "agentId": "fake", "cwd": str(self._daemon.work), "text": "no"}
        await self._refused("shutting_down", "run/create", new)
        self._daemon.open("go")
        assert await self._daemon.exit_code() == 0


def _rare(recorder: Recorder) -> None:
    """Errors that need a broken machine, as the daemon would put them."""
    for error in (
        errors.StorageFullError("the disk is full: nothing can be accepted until there is room"),
        errors.StorageError("the store cannot be written: disk I/O error"),
        errors.AgentUnavailableError(
            "agent fake: cannot be started", command=["fake"], exitCode=1, signal=None, stderr=[]
        ),
        errors.AgentRefusedError(
            "the agent refused: no such mode",
            agentError={"code": -32602, "message": "no such mode"},
        ),
        errors.UnsupportedContentError("the agent takes no images - at `$.prompt[0]`"),
        errors.PathNotGrantedError(
            "/etc/hosts is outside of the session's folders", path="/etc/hosts", roots=["/home/me"]
        ),
        errors.AuthRequiredError("the agent wants a login first", methods=[]),
    ):
        recorder.keep_error(msgspec.json.decode(msgspec.json.encode(error_object(error))))
    internal = {"code": "internal", "retryable": False, "logId": "err_" + "0" * 27}
    recorder.keep_error({"code": -32603, "message": "internal error", "data": internal})
