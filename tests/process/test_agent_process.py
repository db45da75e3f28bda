"""Real agent processes: greeted, asked for sessions, heard in wire order, ended without a trace."""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
import pytest

from acphost.errors import (
    AgentNotFoundError,
    AgentUnavailableError,
    AuthRequiredError,
    ShuttingDownError,
)
from acphost.ids import AcpSessionId, Clock, epoch_ms
from acphost.provider.connection import AgentConnection, AgentGoneError
from acphost.provider.launch import LaunchPlan
from acphost.provider.pool import AgentPool
from acphost.provider.process import AgentProcess
from acphost.provider.switchboard import AgentRequest
from acphost.rpc.pending import Answer
from acphost.settings.model import AgentSettings, Settings
from acphost.transport.child import Child
from acphost.transport.processes import Process
from acphost.wire.jsonrpc import RequestId
from tests.support.config import AGENT
from tests.support.daemon import eventually, is_alive
from tests.support.patience import PATIENCE

PARAMS: dict[str, object] = {"cwd": "/", "mcpServers": []}


@dataclass
class Ledger:
    """What was written down of launches."""

    lines: list[str] = field(default_factory=list)

    async def on_launching(self, plan: LaunchPlan, session_id: str | None) -> None:
        self.lines.append("launching")

    def on_spawned(self, plan: LaunchPlan, child: Child) -> None:
        self.lines.append("spawned")

    def on_ended(self, plan: LaunchPlan, child: Child, survivors: list[Process]) -> None:
        self.lines.append("ended" if not survivors else "survived")

    def on_failed(self, plan: LaunchPlan) -> None:
        self.lines.append("failed")


@dataclass
class Ear:
    """A conversation that only listens: everything it hears, in order."""

    heard: list[str] = field(default_factory=list)
    asked: list[AgentRequest] = field(default_factory=list)
    strays: list[tuple[str, object]] = field(default_factory=list)
    gone: anyio.Event = field(default_factory=anyio.Event)
    awaits_people: bool = False

    def on_withdrawn(self, connection: AgentConnection, request_id: RequestId) -> bool:
        self.heard.append(f"withdrawn {request_id!r}")
        return True

    def on_updates(
        self, updates: Sequence[msgspec.Raw], at: int, exact: list[bytes] | None = None
    ) -> None:
        for update in updates:
            content = msgspec.json.decode(update).get("content", {"text": "?"})
            self.heard.append(content["text"])

    def on_extension(self, method: str, params: msgspec.Raw, at: int) -> None:
        self.heard.append(method)

    def on_stray(self, what: str, payload: bytes, at: int) -> None:
        self.strays.append((what, msgspec.json.decode(payload)))

    def on_request(self, asked: AgentRequest, at: int) -> None:
        self.heard.append(asked.method)
        self.asked.append(asked)

    def on_gone(self, gone: AgentGoneError) -> None:
        self.heard.append("gone")
        self.gone.set()


@dataclass
class Stand:
    """A pool with one agent, its ledger, and a folder for gates."""

    pool: AgentPool
    ledger: Ledger
    folder: Path

    async def start(self, session: str = "sess") -> AgentProcess:
        return await self.pool.acquire("fake", session_id=session, cwd=str(self.folder))


@asynccontextmanager
async def pool(
    folder: Path, script: str, clock: Clock = epoch_ms, **agent: object
) -> AsyncGenerator[Stand]:
    """Agents that play `script`; afterwards none of them is left."""
    file = folder / "script"
    file.write_text(script)
    given = {
        "command": [sys.executable, "-m", "acphost.demo.agent", str(file)],
        "env": {"DIR": str(folder)},
        **AGENT,
        **agent,
    }
    settings = Settings(
        agents={"fake": AgentSettings(**given)},
        folder=str(folder),
        read_from=[],
    )
    ledger = Ledger()

    async def room() -> None:
        await anyio.lowlevel.checkpoint()

    agents = AgentPool(
        lambda: settings, os.environ, ledger=ledger, now=clock, room=room, version="0"
    )
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            await tasks.start(agents.run)
            yield Stand(agents, ledger, folder)
            await agents.close()
            tasks.cancel_scope.cancel()
    assert agents.processes == set()
    assert ledger.lines.count("launching") == (
        ledger.lines.count("ended") + ledger.lines.count("failed")
    )


async def prompt(process: AgentProcess, session: str, ear: Ear) -> None:
    """Send a prompt; the answer is heard as `answered`, in its place among the updates."""
    answered = anyio.Event()

    def on_answer(answer: Answer) -> None:
        ear.heard.append("answered" if isinstance(answer, msgspec.Raw) else type(answer).__name__)
        answered.set()

    blocks = [{"type": "text", "text": "hi"}]
    params = {"sessionId": session, "prompt": blocks}
    process.connection.request("session/prompt", params, on_answer)
    await answered.wait()


async def test_what_is_said_is_heard_in_wire_order(short_dir: Path) -> None:
    """Updates, a question, the answer, and what comes after it."""
    script = """
ON prompt
    BATCH
        MSG "a"
        NOTIFY x/y {"sessionId": "${SESSION}"}
        PERM c a:allow_once nowait
        MSG "b"
        END
        MSG "c"
"""
    async with pool(short_dir, script) as stand:
        process, ear = await stand.start(), Ear()
        session, _ = await process.new_session(ear, PARAMS)
        await prompt(process, session, ear)
        await eventually(lambda: len(ear.heard) == 6)

        assert ear.heard == ["a", "x/y", "session/request_permission", "b", "answered", "c"]


async def test_updates_ahead_of_the_session_are_heard_first(short_dir: Path) -> None:
    """They wait for the answer that names the session."""
    script = """
ON new
    MSG "early" session=S1
    MSG "nobody's" session=S9
    NEW S1
"""
    async with pool(short_dir, script) as stand:
        process, ear = await stand.start(), Ear()
        session, _ = await process.new_session(ear, PARAMS)

        assert (session, ear.heard) == ("S1", ["early"])


async def test_a_flood_of_early_updates_is_bounded(short_dir: Path) -> None:
    """Beyond the limit they are counted and dropped."""
    script = """
ON init
    REPEAT 1200
        MSG "x" session=S9
"""
    async with pool(short_dir, script) as stand:
        process = await stand.start()
        ear = Ear()
        await process.new_session(ear, PARAMS)

        assert process.connection.anomalies == 200
        assert ear.heard == []


async def test_sessions_that_never_come_take_no_more_than_their_share(short_dir: Path) -> None:
    """Early updates are bounded by bytes and by sessions; the oldest unknown one goes first."""
    script = """
ON new
    BIG 800K x session=S1
    BIG 800K x session=S1
    REPEAT 8
        MSG "${I}" session=U${I}
    MSG "mine" session=S2
    NEW S2
"""
    async with pool(short_dir, script) as stand:
        process, ear = await stand.start(), Ear()
        await process.new_session(ear, PARAMS)

        # Of S1 the second was too much, and the first went when the ninth session was named.
        assert process.connection.anomalies == 3
        assert ear.heard == ["mine"]


async def test_one_session_id_for_two_conversations_is_refused(short_dir: Path) -> None:
    """The first keeps its session and hears on; the other is told what is wrong and the cure."""
    script = """
ON new
    NEW S1
ON prompt
    MSG "for the first"
"""
    async with pool(short_dir, script) as stand:
        process, ear, other = await stand.start(), Ear(), Ear()
        session, _ = await process.new_session(ear, PARAMS)
        with pytest.raises(AgentUnavailableError, match="per_session"):
            await process.new_session(other, PARAMS)
        with pytest.raises(AgentUnavailableError, match="another conversation"):
            await process.reopen("session/load", session, other, PARAMS)
        await prompt(process, session, ear)

        assert ear.heard == ["for the first", "answered"]
        assert other.heard == []


@pytest.mark.parametrize(
    "answer",
    [
        'ANSWER {"sessionId": ""}',
        "ANSWER {}",
        'ANSWER {"sessionId": "${LONG}"}',
        r"""RAW '{"jsonrpc":"2.0","id":${ID},"result":{"sessionId":"\\ud83d"}}\n'
    NOANSWER""",
    ],
    ids=["empty", "missing", "too long", "lone surrogate"],
)
async def test_a_session_id_that_cannot_be_said_again_is_refused(
    short_dir: Path, answer: str
) -> None:
    """It stands in every line about the session, so it has to be short and whole."""
    script = f"SET LONG {'x' * 5000}\nON new\n    {answer}\n"
    async with pool(short_dir, script) as stand:
        process, ear = await stand.start(), Ear()
        with pytest.raises(AgentUnavailableError, match="session id") as refused:
            await process.new_session(ear, PARAMS)
        assert len(str(refused.value)) < 300
        assert process.sinks == {}


async def test_words_for_nobody_are_kept_within_bounds(short_dir: Path) -> None:
    """Lines that are no protocol and stray answers reach the session as evidence, up to a limit."""
    script = """
RAW "banner\\n"
ON prompt
    SEND {"jsonrpc": "2.0", "id": 999, "result": {"big": "${BIG}"}}
    RAW "more\\n" times=200
"""
    async with pool(short_dir, f"SET BIG {'y' * 20000}\n{script}") as stand:
        process, ear = await stand.start(), Ear()
        session, _ = await process.new_session(ear, PARAMS)
        await prompt(process, session, ear)

        assert ear.strays[0] == ("stdout_noise", {"text": "banner"})
        what, cut = ear.strays[1]
        assert what == "stray_answer"
        assert isinstance(cut, dict)
        assert cut["bytes"] > 20000
        assert len(cut["text"]) <= 4096
        assert len(ear.strays) == 100
        assert process.connection.anomalies == 202


async def test_a_death_is_told_to_everybody_who_waits(short_dir: Path) -> None:
    """The open prompt first, then the sessions; both with exit code and last words."""
    script = 'ON prompt\n    ERR "panic\\n"\n    EXIT 3\n'
    async with pool(short_dir, script) as stand:
        process, ear, other = await stand.start(), Ear(), Ear()
        session, _ = await process.new_session(ear, PARAMS)
        await process.new_session(other, PARAMS)
        await prompt(process, session, ear)
        await other.gone.wait()

        assert ear.heard == ["AgentGoneError", "gone"]
        assert other.heard == ["gone"]
        gone = process.connection.gone
        assert gone is not None
        assert gone.exit is not None
        assert (gone.exit.code, gone.stderr) == (3, "panic")
        await process.ended.wait()
        assert stand.ledger.lines == ["launching", "spawned", "ended"]


async def test_stopping_fails_what_is_open(short_dir: Path) -> None:
    """A request that the agent never answers does not outlive the process."""
    async with pool(short_dir, "ON load\n    MARK ${DIR}/asked\n    STAY\n") as stand:
        process = await stand.start()
        failed = anyio.Event()

        async def load() -> None:
            with pytest.raises(AgentGoneError):
                await process.reopen("session/load", AcpSessionId("S1"), Ear(), PARAMS)
            failed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load)
            await eventually((short_dir / "asked").exists)
            process.stop()
            await failed.wait()


async def test_stopping_does_not_wait_for_a_greeting(short_dir: Path) -> None:
    """An agent that never answers `initialize` is ended at once when the pool closes."""
    script = "ON init\n    MARK ${DIR}/asked\n    STAY\n"
    async with pool(short_dir, script) as stand:
        refused = anyio.Event()

        async def start() -> None:
            with pytest.raises(AgentUnavailableError):
                await stand.start()
            refused.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await eventually((short_dir / "asked").exists)
            with anyio.fail_after(PATIENCE):
                await stand.pool.close()
                await refused.wait()
        with pytest.raises(ShuttingDownError):
            await stand.start()


async def test_a_shared_process_is_started_once_and_ends_with_its_last_session(
    short_dir: Path,
) -> None:
    """Two sessions at once; retired, it takes no new ones and lives until both are done."""
    async with pool(short_dir, "") as stand:
        found: list[AgentProcess] = []

        async def start() -> None:
            found.append(await stand.start())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            tasks.start_soon(start)
        process = found[0]
        assert found == [process, process]
        one, _ = await process.new_session(Ear(), PARAMS)
        two, _ = await process.new_session(Ear(), PARAMS)
        process.detach(one)
        await stand.pool.retire(process)
        assert process.is_live
        fresh = await stand.start()
        assert fresh is not process
        process.detach(two)
        await process.ended.wait()
        assert fresh.is_live


async def test_a_process_per_session(short_dir: Path) -> None:
    """Where the configuration or the traits say so."""
    async with pool(short_dir, "", process="per_session") as stand:
        assert (await stand.start("a")).pid != (await stand.start("b")).pid


SAYS_WHY = 'ON init\n    ERR "no key\\n"\n    EXIT 1\n'


async def test_it_rests_after_too_many_failures(short_dir: Path) -> None:
    """At the limit nothing is spawned, and it is told why; a reset gives a new chance."""
    restart = {"limit": 2, "window": 60.0}
    settings = msgspec.convert(restart, type(AgentSettings(command=["x"]).restart))
    async with pool(short_dir, SAYS_WHY, restart=settings) as stand:
        for _ in range(2):
            with pytest.raises(AgentUnavailableError) as failed:
                await stand.start()
            assert failed.value.details["exitCode"] == 1
        with pytest.raises(AgentUnavailableError, match=r"rests \(.* code 1 .* no key\)"):
            await stand.start()
        assert stand.pool.is_resting("fake")
        assert stand.ledger.lines.count("spawned") == 2
        stand.pool.reset("fake")
        assert not stand.pool.is_resting("fake")


async def test_setup_errors_keep_their_kind(short_dir: Path) -> None:
    """A login that is missing, a session without an id, an agent that nobody configured."""
    script = """
INIT {"authMethods": [{"id": "login", "name": "Login"}]}
ON new ONCE
    FAIL -32000 "Authentication required"
ON new
    ANSWER {}
"""
    async with pool(short_dir, script) as stand:
        process = await stand.start()
        with pytest.raises(AuthRequiredError) as wanted:
            await process.new_session(Ear(), PARAMS)
        assert wanted.value.details["methods"] == [
            {"id": "login", "name": "Login", "type": "agent"}
        ]
        with pytest.raises(AgentUnavailableError, match="without a session id"):
            await process.new_session(Ear(), PARAMS)
        with pytest.raises(AgentNotFoundError, match="configured: fake"):
            await stand.pool.acquire("nobody", session_id="s", cwd="/")


async def test_killing_needs_no_grace(short_dir: Path) -> None:
    """`kill` in the middle of long graces ends it now."""
    script = "IGNORE TERM\nON eof\n    STAY\n"
    async with pool(short_dir, script) as stand:
        process = await stand.start()
        pid = process.pid
        process.stop()
        assert is_alive(pid)
        stand.pool.kill()
        with anyio.fail_after(PATIENCE):
            await process.ended.wait()
        assert not is_alive(pid)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_is_set_neither_ends_a_wait_nor_makes_one(
    hours: int, short_dir: Path
) -> None:
    """While an agent loads a session, and after one that could not be started."""
    moved = 0
    script = """
ON load
    MARK ${DIR}/asked
    GATE ${DIR}/go
    MSG "as it was"
"""
    async with pool(short_dir, script, lambda: epoch_ms() + moved) as stand:
        process, ear = await stand.start(), Ear()

        async def set_the_clock() -> None:
            nonlocal moved
            await eventually((short_dir / "asked").exists)
            moved = hours * 3_600_000
            (short_dir / "go").touch()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_the_clock)
            await process.reopen("session/load", AcpSessionId("S1"), ear, PARAMS)
        assert ear.heard == ["as it was"]

        moved = 0
        os.kill(process.pid or 0, signal.SIGKILL)
        await process.ended.wait()
        moved = hours * 3_600_000
        with anyio.fail_after(PATIENCE):
            assert (await stand.start("another")).pid
