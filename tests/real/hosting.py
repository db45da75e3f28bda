"""A whole daemon with real agents for the length of a block, and talks through its socket."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec

from acphost.client.client import Client
from acphost.client.connecting import connect
from acphost.errors import ConnectionLostError, DaemonUnreachableError
from acphost.wire.event import TERMINAL_KINDS, Event, Kind
from acphost.wire.host import Run
from tests.real.agents import RealAgent
from tests.real.processes import processes_of
from tests.support.model import Gate, ModelServer

#: Of a whole test, and of one wait in a thread that a cancellation cannot reach.
TEST_SECONDS = 120
WAIT_SECONDS = 30
START_SECONDS = 20
#: Where a socket's path stays under the platform's limit; resolved, for /tmp may be a link.
_SHORT = Path("/tmp").resolve()
TOOLBOX_FILE = Path(__file__).with_name("toolbox.py")
#: An MCP server as `session/create` takes it.
TOOLBOX = {
    "name": "toolbox",
    "command": sys.executable,
    "args": [str(TOOLBOX_FILE)],
    "env": [],
}


def payload(event: Event) -> dict[str, Any]:
    """What an event says, as plain data."""
    value: dict[str, Any] = msgspec.json.decode(event.payload)
    return value


class Turn:
    """A run that is over, with everything that was journaled about it."""

    def __init__(self, run: Run, events: Sequence[Event]) -> None:
        self.run = run
        self.events = events

    def __repr__(self) -> str:
        run = self.run
        return f"<{run.status} {run.stop_reason} {run.error_code} {run.error} {self.kinds}>"

    @property
    def kinds(self) -> list[str]:
        """What happened, in order; repeats in a row count once."""
        kinds = [e.kind for e in self.events]
        return [kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]

    @property
    def answer(self) -> str:
        """The text that the agent said."""
        return self._text(Kind.MESSAGE_DELTA)

    @property
    def thought(self) -> str:
        """The text that the agent thought."""
        return self._text(Kind.THOUGHT_DELTA)

    @property
    def prompts(self) -> list[str]:
        """What the user is shown to have said in this turn."""
        said = [payload(e)["content"] for e in self.of(Kind.MESSAGE_USER)]
        return ["".join(block.get("text", "") for block in blocks) for blocks in said]

    def of(self, kind: str) -> list[Event]:
        """The events of one kind."""
        return [e for e in self.events if e.kind == kind]

    def _text(self, kind: str) -> str:
        return "".join(payload(e)["content"].get("text", "") for e in self.of(kind))


class Talk:
    """One session, as somebody who talks to it sees it."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self.session_id = session_id

    async def begin(self, text: str) -> Run:
        """Send a prompt and go on."""
        return await self._client.create_run(text, session_id=self.session_id)

    async def ask(self, text: str) -> Turn:
        """Send a prompt and wait for its end, however it comes."""
        return await self.end(await self.begin(text))

    async def end(self, run: Run) -> Turn:
        """Wait for the end of a run; a run has one terminal event, and it is the last."""
        over = await self._client.wait(run.host_run_id)
        turn = Turn(over, await self._events(over))
        ends = [e.seq for e in turn.events if e.kind in TERMINAL_KINDS]
        assert ends == [over.terminal_seq], turn
        return turn

    async def _events(self, run: Run) -> list[Event]:
        events: list[Event] = []
        while True:
            after = events[-1].seq if events else None
            page = await self._client.run_events(run.host_run_id, after_seq=after or 0)
            events += page.events
            if not page.has_more:
                return events

    async def until(self, run: Run, kind: str, says: str = "") -> Event:
        """The first event of that kind whose payload holds `says`, as a subscriber sees it."""
        async with self._client.subscribe(run_id=run.host_run_id) as events:
            async for event in events:
                if event.kind == kind and says.encode() in bytes(event.payload):
                    return event
                assert event.kind not in TERMINAL_KINDS, f"no {kind} before {event}"
        raise AssertionError(kind)

    async def cancel(self, run: Run) -> Turn:
        """Ask for a stop and wait for the end."""
        await self._client.cancel(run.host_run_id)
        return await self.end(run)

    async def answer(self, run: Run, option: str) -> None:
        """Answer the run's open question with the option of that ACP kind."""
        asked = await self.until(run, Kind.PERMISSION_REQUESTED)
        said = payload(asked)
        chosen = next(o["optionId"] for o in said["options"] if o["kind"] == option)
        await self._client.respond(said["permissionId"], chosen)

    async def lose_agent(self) -> None:
        """Kill the process that serves this session, and wait until the daemon knows."""
        pid = await self.agent_pid()
        async with self._client.subscribe(
            session_id=self.session_id, kinds=[Kind.BINDING_LOST], after="now"
        ) as events:
            os.kill(pid, signal.SIGKILL)
            async for _ in events:
                return

    async def agent_pid(self) -> int:
        """The process that serves this session."""
        status = await self._client.status(self.session_id)
        assert status.acp is not None
        assert status.acp.live_binding is not None
        assert status.acp.live_binding.pid is not None
        return status.acp.live_binding.pid


class Host:
    """The daemon under test: it may be stopped, killed and started again; the client stays."""

    client: Client

    def __init__(self, folder: Path, socket: Path, tasks: anyio.abc.TaskGroup) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.socket = socket
        self._tasks = tasks
        self._process: anyio.abc.Process | None = None
        self._gone = anyio.Event()
        self._log = bytearray()

    @property
    def log(self) -> str:
        """All that the daemon wrote to stderr."""
        return self._log.decode(errors="replace")

    async def start(self) -> None:
        """Start the daemon; returns once it answers on its socket."""
        command = [sys.executable, "-m", "acphost", "serve"]
        command += ["--socket", str(self.socket), "--state-dir", str(self.folder / "state")]
        command += ["--config", str(self.folder / "config")]
        self._gone = anyio.Event()
        self._process = await anyio.open_process(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        with anyio.fail_after(START_SECONDS):
            await self._tasks.start(self._keep_log, self._process)

    async def _keep_log(
        self, process: anyio.abc.Process, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """Keep what the daemon logs; while it starts, whatever it says is a reason to call it."""
        assert process.stderr is not None
        answers = False
        async with process:
            async for chunk in process.stderr:
                self._log += chunk
                if not answers and await self._answers():
                    answers = True
                    task_status.started()
            await process.wait()
        self._gone.set()
        assert answers, f"the daemon ended with {process.returncode} at its start:\n{self.log}"

    async def _answers(self) -> bool:
        with suppress(DaemonUnreachableError, ConnectionLostError):
            async with connect(self.socket, patience=0) as client:
                await client.ping()
                return True
        return False

    @asynccontextmanager
    async def stopping(self) -> AsyncGenerator[None]:
        """End the daemon as a service manager would; the block runs while it drains.

        No process of the test may outlive it.
        """
        assert self._process is not None
        self._process.terminate()
        yield
        assert await self._ended() == 0, self.log
        left = await self.processes()
        assert not left, f"left behind by the daemon: {left}"

    async def stop(self) -> None:
        """End the daemon while it has nothing to do."""
        async with self.stopping():
            pass

    async def kill(self) -> None:
        """End the daemon as a power cut would."""
        assert self._process is not None
        self._process.kill()
        await self._ended()

    async def _ended(self) -> int | None:
        await self._gone.wait()
        assert self._process is not None
        code, self._process = self._process.returncode, None
        return code

    async def processes(self) -> dict[int, str]:
        """What runs in the name of this test: agents, their children, the daemon while it runs."""
        found = await anyio.to_thread.run_sync(processes_of, self.folder)
        if self._process is not None:
            found.pop(self._process.pid, None)
        return found

    async def talk(self, agent: RealAgent, *, mcp_servers: Sequence[object] = ()) -> Talk:
        """A new session in the workspace."""
        session = await self.client.create_session(
            agent.name, str(self.workspace), mcp_servers=mcp_servers
        )
        return Talk(self.client, session.session_id)

    def asked_for(self, agent: RealAgent) -> Path:
        """A folder where no write goes without a question."""
        return self.workspace if agent.asks_for_every_write else self.folder

    async def abandon(self) -> None:
        """Leave nothing running after a test that failed, and show what the daemon had to say."""
        if self._process is not None:
            print(self.log)
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
        for pid in await self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def hosting(folder: Path, model: ModelServer, *agents: RealAgent) -> AsyncGenerator[Host]:
    """A daemon that knows `agents`, and a client of it; ended and checked after the block."""
    _write_config(folder, model, agents)
    (folder / "workspace").mkdir()
    failure: Exception | None = None
    # A socket's path has to be shorter than what pytest calls its folders.
    with tempfile.TemporaryDirectory(prefix="acphost-", dir=_SHORT) as private:
        with anyio.fail_after(TEST_SECONDS):
            async with anyio.create_task_group() as tasks:
                host = Host(folder, Path(private) / "socket", tasks)
                try:
                    await host.start()
                    async with connect(host.socket, name="tests.real") as host.client:
                        yield host
                    await host.stop()
                except Exception as exc:  # raised below: a task group would wrap it
                    failure = exc
                finally:
                    with anyio.CancelScope(shield=True):
                        await host.abandon()
    if failure is not None:
        raise failure


def _write_config(folder: Path, model: ModelServer, agents: Sequence[RealAgent]) -> None:
    lines: list[str] = []
    for agent in agents:
        launch = agent.launch(folder, model.url)
        lines += [f"[agents.{agent.name}]", f'runtime = "{agent.name}"']
        lines += [f"command = {json.dumps(launch.command)}"]
        # These tests kill agents more often than bad luck does.
        lines += ["restart.limit = 1000"]
        lines += [f"env.{name} = {json.dumps(value)}" for name, value in launch.env.items()]
    (folder / "config").mkdir()
    (folder / "config" / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


async def reached(gate: Gate, seconds: float = WAIT_SECONDS) -> None:
    """Wait until a reply stands before its gate."""
    assert await anyio.to_thread.run_sync(gate.reached.wait, seconds, abandon_on_cancel=True)
