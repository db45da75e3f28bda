"""A real daemon in a private folder, with scripted agents, held against the invariants at the end.

    async with running_daemon(SCRIPT) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hello")

SCRIPT is in the language of `acphost fake-agent`; `${DIR}` in it is `daemon.folder`, where gates
and marks are. Whatever a test does, after it the journal must be whole, what a client was told
must be what the journal holds, and nothing may be left running.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import msgspec
from anyio.abc import TaskStatus

from acphost.client.client import Client
from acphost.client.connecting import connect
from acphost.transport import cgroups
from acphost.wire.event import Event
from acphost.wire.host import Decision, QueuedRun, Run, Session
from acphost.wire.params import PermissionListParams
from acphost.wire.status import RuntimeStatus
from tests.support import nursery
from tests.support.config import AGENT, Table, config_text
from tests.support.journal_file import JournalFile
from tests.support.nursery import Process
from tests.support.patience import PATIENCE
from tests.support.wire import Wire, wire

_LOOK_AGAIN = 0.01
#: Agents under test are of the same sources as the daemon, wherever those are.
_SOURCES = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
#: Log lines of a daemon that made a mistake of its own.
_MISTAKES = re.compile(
    r"Traceback|session_failed|agent_failed|internal_error|connection_failed|request_failed"
    r"|blocking_call"
)
#: The daemon with an eye on what may keep its loop waiting.
_UNBLOCKED = [sys.executable, str(Path(__file__).with_name("unblocked.py"))]
#: What an agent records of a host that does not keep to the protocol.
_FAULTS = {"violation", "error", "garbage"}
_WATCHED = "EXPECT one-prompt\nEXPECT one-load\n"


class Daemon:
    """The daemon under test, and the agents it starts."""

    def __init__(self, folder: Path, agents: Mapping[str, str], agent: Table, host: Table) -> None:
        self.folder = folder
        self.socket = folder / "s"
        self.state = folder / "state"
        self.work = folder / "work"
        self.work.mkdir()
        self.journal = JournalFile(self.state / "journal.db")
        self.flags = ["--config", str(folder), "--socket", str(self.socket)]
        self.flags += ["--state-dir", str(self.state)]
        #: A program that becomes the daemon after it has set limits, say.
        self.wrapper: list[str] = [*_UNBLOCKED]
        self.seen: list[Event] = []
        #: Entries in an agent's record that are no fault in this test.
        self.expected: set[str] = set()
        self.environ = nursery.plain_environ()
        self._agents = dict(agents)
        self._agent = dict(agent)
        self._host: Table = {"drain": {"timeout": 0.3}, **host}
        self._client: Client | None = None
        self._process: Process | None = None
        self._is_program = False
        self.configure()

    # -- configuration ----------------------------------------------------------------------------

    def configure(self, *, agent: Table | None = None, **host: object) -> None:
        """Write the config file, with these changes for good."""
        self._agent |= agent or {}
        self._host = {**self._host, **host}
        tables = {}
        for agent_id, script in self._agents.items():
            (self.folder / f"{agent_id}.script").write_text(_WATCHED + script)
            own = {"command": self.command(agent_id), "env": self.agent_environ}
            tables[agent_id] = {**AGENT, **own, **self._agent}
        text = config_text(self._host, tables)
        (self.folder / "config.toml").write_text(text)

    @property
    def agent_environ(self) -> dict[str, str]:
        """What the configuration gives every fake agent."""
        return {"DIR": str(self.folder), **_SOURCES}

    def rewrite(self, script: str, agent_id: str = "fake") -> None:
        """Give an agent another script, for its next process."""
        self._agents[agent_id] = script
        self.configure()

    def command(self, agent_id: str = "fake") -> list[str]:
        """How the fake agent of that name is started."""
        command = [sys.executable, "-m", "acphost.demo.agent"]
        command += [str(self.folder / f"{agent_id}.script")]
        command += ["--store", str(self.folder / f"{agent_id}.store")]
        return [*command, "--record", str(self._record(agent_id))]

    def _record(self, agent_id: str) -> Path:
        return self.folder / f"{agent_id}.record"

    # -- life -------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Of the daemon."""
        assert self._process is not None
        return self._process.pid

    @property
    def client(self) -> Client:
        """A client that comes back by itself when the daemon does."""
        assert self._client is not None
        return self._client

    def launch(self) -> Process:
        """Start a daemon process, without waiting for anything."""
        home = nursery.of_this_worker(self.environ) if self.wrapper == _UNBLOCKED else None
        self._is_program = home is None
        words = ["serve", *self.flags]
        with (self.folder / "log").open("ab") as log:
            if home is not None:
                return home.start(words, self.folder, log.fileno())
            return self._begin(words, log)

    def begin(self) -> subprocess.Popen[bytes]:
        """Start a program that is a daemon, without waiting for anything."""
        with (self.folder / "log").open("ab") as log:
            return self._begin(["serve", *self.flags], log)

    def _begin(self, words: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.wrapper, sys.executable, "-m", "acphost", *words],
            cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=log,
        )  # fmt: skip

    async def start(self, *, is_followed: bool = True) -> None:
        """Start it and wait until it takes connections, that of the client that follows included.

        Without `is_followed` that client is not waited for: it refuses a store that it never saw.
        """
        assert await self.comes_up(), f"it did not start:\n{self.log()}"
        if is_followed and self._client is not None:
            client = self._client
            await eventually(lambda: client.info.host_info.pid == self.pid)

    async def comes_up(self) -> bool:
        """Start it and wait until it takes connections; False if it ends before."""
        self._process = self.launch()
        with anyio.fail_after(PATIENCE):
            while not await self._answers():
                if self._process.poll() is not None:
                    return False
                await anyio.sleep(_LOOK_AGAIN)
        return True

    async def _answers(self) -> bool:
        try:
            async with await anyio.connect_unix(self.socket):
                return True
        except OSError:
            return False

    async def kill(self) -> None:
        """kill -9."""
        self.signal(signal.SIGKILL)
        await self.exit_code()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def has_not_ended(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.poll() is None

    async def exit_code(self) -> int:
        """Wait for its end."""
        assert self._process is not None
        process = self._process
        await eventually(lambda: process.poll() is not None)
        return process.wait()

    async def restart(self) -> None:
        """kill -9 and start again."""
        await self.kill()
        await self.start()

    def log(self) -> str:
        """All that daemons have logged in this folder."""
        return (self.folder / "log").read_text(errors="replace")

    def limit_file_size(self, size: int) -> None:
        """No file of the daemon may grow over this many bytes: its disk is full."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, hard))

    def memory(self) -> int:
        """Bytes of memory that are really there. The test has the mark `anew`."""
        return self._memory("VmRSS")

    def peak_memory(self) -> int:
        """The most there ever were."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> int:
        assert self._is_program, "memory of a daemon that shares some with the nursery"
        status = Path(f"/proc/{self.pid}/status").read_text()
        (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", status)
        return int(kilobytes) * 1024

    def descriptors(self) -> int:
        """How many files it has open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    # -- the main job -----------------------------------------------------------------------------

    async def session(self, agent: str = "fake", **params: object) -> str:
        """Make a session; returns its id."""
        given = {"agentId": agent, "cwd": str(self.work), **params}
        return (await self.client.request("session/create", given, Session)).session_id

    async def send(self, session: str, text: str, **params: object) -> Run:
        """Send a prompt; returns the run as it was accepted."""
        request_id = f"{session} {text}"[:1000]
        given = {"requestId": request_id, "sessionId": session, "text": text, **params}
        return await self.client.request("run/create", given, Run)

    async def wait(self, run: Run) -> Run:
        """The run once it is over."""
        with anyio.fail_after(PATIENCE):
            return await self.client.wait(run.host_run_id)

    async def ask(self, session: str, text: str, **params: object) -> Run:
        """Send a prompt and wait for the end of it."""
        return await self.wait(await self.send(session, text, **params))

    async def cancel(self, run: Run, *, hold_queue: bool = False) -> Run:
        """Ask for the end of a run."""
        return await self.client.cancel(run.host_run_id, hold_queue=hold_queue)

    # -- looking ----------------------------------------------------------------------------------

    async def get(self, session: str) -> Session:
        """The session as it is now."""
        return await self.client.session(session)

    async def status(self, session: str) -> RuntimeStatus:
        """The runtime status."""
        return await self.client.status(session)

    async def run(self, run: Run) -> Run:
        """The run as it is now."""
        return await self.client.run(run.host_run_id)

    async def queue(self, session: str) -> list[QueuedRun]:
        """What waits."""
        return (await self.client.queue_list(session)).items

    async def questions(self, session: str, status: str = "pending") -> list[Decision]:
        """What the agent has asked people."""
        given = PermissionListParams(session_id=session, status=status)  # type: ignore[arg-type]
        return (await self.client.list_decisions(given)).items

    async def question(self, session: str, *, after: Decision | None = None) -> Decision:
        """The one open question, waited for; the one that follows another."""
        await self.is_status(session, "waiting")
        with anyio.fail_after(PATIENCE):
            while True:
                found = await self.questions(session)
                known = after.permission_id if after is not None else None
                if found and found[0].permission_id != known:
                    break
                await anyio.sleep(_LOOK_AGAIN)
        (only,) = found
        return only

    async def is_status(self, session: str, *status: str) -> Session:
        """Wait until the session's status is one of these."""
        return await self.until(session, lambda seen: seen.status in status, " or ".join(status))

    async def until(self, session: str, holds: Callable[[Session], bool], what: str) -> Session:
        """Wait until something holds for the session."""
        seen = await self.get(session)
        with anyio.move_on_after(PATIENCE):
            while not holds(seen):
                await anyio.sleep(_LOOK_AGAIN)
                seen = await self.get(session)
            return seen
        raise AssertionError(f"{what} was expected, it stayed at {seen}")

    async def is_running(self, run: Run) -> Run:
        """Wait until the agent has the prompt, by the journal."""
        async with self.client.subscribe(run_id=run.host_run_id) as events:
            with anyio.fail_after(PATIENCE):
                async for event in events:
                    if event.kind == "run.started":
                        break
        return await self.run(run)

    async def events(self, run: Run, *kinds: str) -> list[Event]:
        """The events of a run, or those of some kinds."""
        found: list[Event] = []
        after, more = 0, True
        while more:
            page = await self.client.run_events(run.host_run_id, after_seq=after, limit=2000)
            found += page.events
            more = page.has_more
            after = int(found[-1].seq or 0) if found else 0
        return [event for event in found if not kinds or event.kind in kinds]

    async def kinds(self, run: Run) -> list[str]:
        """What happened in a run, in order."""
        return [event.kind for event in await self.events(run)]

    async def text(self, run: Run) -> str:
        """The agent's answer."""
        deltas = await self.events(run, "message.delta")
        return "".join(payload(event)["content"]["text"] for event in deltas)

    async def history(self, session: str, *kinds: str) -> list[Event]:
        """The events of a session, or those of some kinds."""
        found: list[Event] = []
        async with self.client.subscribe(session_id=session) as events:
            while not events.caught_up:
                found += (await events.next_batch()).events
        return [event for event in found if not kinds or event.kind in kinds]

    async def has_event(self, session: str, kind: str) -> Event:
        """Wait for an event of the session."""
        with anyio.fail_after(PATIENCE):
            async with self.client.subscribe(session_id=session, kinds=[kind]) as events:
                async for event in events:
                    return event
        raise AssertionError("a subscription does not end by itself")

    # -- the agents -------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """A gate or a mark."""
        return self.folder / name

    def open(self, name: str) -> None:
        """Let whoever waits at a gate go on."""
        self.path(name).touch()

    async def marked(self, name: str) -> str:
        """Wait until an agent has made a mark; returns what it wrote there."""
        await eventually(self.path(name).exists)
        return self.path(name).read_text()

    def record(self, agent: str = "fake") -> list[dict[str, Any]]:
        """What the agent's processes wrote down, each line of it."""
        file = self._record(agent)
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_bytes().splitlines()]

    def heard(self, method: str = "", agent: str = "fake") -> list[dict[str, Any]]:
        """The messages that agents read: all, or those of one method."""
        lines = [line["read"] for line in self.record(agent) if "read" in line]
        return [line for line in lines if not method or line.get("method") == method]

    async def hears(self, method: str, count: int = 1, agent: str = "fake") -> dict[str, Any]:
        """Wait until agents have read so many messages of a method; returns the last."""
        await eventually(lambda: len(self.heard(method, agent)) >= count)
        return self.heard(method, agent)[count - 1]

    def prompts(self, agent: str = "fake") -> list[str]:
        """The last text block of every prompt that agents have read."""
        return [
            message["params"]["prompt"][-1]["text"]
            for message in self.heard("session/prompt", agent)
        ]

    def launches(self, agent: str = "fake") -> list[int]:
        """The pids of all processes of an agent so far."""
        return [line["pid"] for line in self.record(agent) if "started" in line]

    # -- other clients ----------------------------------------------------------------------------

    def wire(self, *, greet: bool = True, **hello: object) -> AbstractAsyncContextManager[Wire]:
        """A bare client."""
        return wire(self.socket, greet=greet, **hello)

    def connect(self, **options: Any) -> AbstractAsyncContextManager[Client]:  # noqa: ANN401
        """Another client."""
        return connect(self.socket, **options)

    # -- the end ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def used_by(self, client: Client) -> AsyncGenerator[None]:
        """Use this client for the length of the block."""
        self._client = client
        yield

    @asynccontextmanager
    async def followed_by(self, client: Client) -> AsyncGenerator[None]:
        """Use this client for the length of the block, and have it follow everything."""
        self._client = client
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._watch, client)
            try:
                yield
            except Exception as exc:  # raised below: a task group would wrap it
                failure = exc
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _watch(self, client: Client, *, task_status: TaskStatus[None]) -> None:
        async with client.subscribe() as events:
            task_status.started()
            while True:
                self.seen += (await events.next_batch()).events

    async def settle(self) -> None:
        """Stop it if the test has not; the client that follows gets the last events first."""
        assert self._process is not None
        if self._process.poll() is None:
            await self.stop()

    async def stop(self) -> None:
        """SIGTERM, and its end."""
        self.signal(signal.SIGTERM)
        assert await self.exit_code() == 0, self.log()

    def end(self) -> None:
        """Whatever happened: leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pid in marked_processes(self.launch_ids()):
            os.kill(pid, signal.SIGKILL)
        for group in self.control_groups():
            for pid in cgroups.pids(str(group)):
                os.kill(pid, signal.SIGKILL)
            cgroups.remove(str(group))

    def control_groups(self) -> list[Path]:
        """Those of its launches that are still there."""
        if not self.journal.path.exists():
            return []
        rows = self.journal.query("SELECT * FROM processes")
        groups = [Path(row["cgroup"]) for row in rows if row.get("cgroup")]
        return [group for group in groups if group.exists()]

    def launch_ids(self) -> set[str]:
        """Every launch in the ledger."""
        if not self.journal.path.exists():
            return set()
        return {row["launch_id"] for row in self.journal.query("SELECT * FROM processes")}

    def check(self) -> None:
        """All that must hold once the daemon has stopped, whatever the test did."""
        rows = self.journal.rows()
        problems = self.journal.problems(rows) + self.left_behind()
        deleted = {
            payload(event)["sessionId"] for event in self.seen if event.kind == "session.deleted"
        }
        seen = [event for event in self.seen if event.session_id not in deleted]
        told = {int(event.offset): event for event in seen}
        if len(told) != len(seen):
            problems.append("a client was told an event twice")
        for row in rows:
            event = told.pop(row.offset, None)
            if event is not None and row.told != _told(event):
                problems.append(f"a client was told {_told(event)}, the journal has {row.told}")
        problems += [f"a client was told {_told(event)}, not in the journal"
                     for event in told.values()]  # fmt: skip
        assert not problems, "\n".join(problems)

    def left_behind(self) -> list[str]:
        """Processes that still run, mistakes in the log, and what agents had to complain of."""
        problems = [f"process {pid} is left" for pid in marked_processes(self.launch_ids())]
        problems += [f"control group {group} is left" for group in self.control_groups()]
        problems += [f"log: {line}" for line in self.log().splitlines() if _MISTAKES.search(line)]
        for agent in self._agents:
            for line in self.record(agent):
                if (_FAULTS - self.expected) & line.keys():
                    problems.append(f"agent {agent}: {line}")
        return problems


def started(*command: str) -> "subprocess.Popen[str]":
    """A program beside the daemon, with pipes to it."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what only looking can tell: a file, a process."""
    with anyio.fail_after(PATIENCE):
        while not holds():  # noqa: ASYNC110  it comes from another process
            await anyio.sleep(_LOOK_AGAIN)


def payload(event: Event) -> Any:  # noqa: ANN401  it is JSON
    """What an event says."""
    return msgspec.json.decode(event.payload)


def facts(event: Event) -> dict[str, Any]:
    """What the host knows beside the payload."""
    return {} if event.host is msgspec.UNSET else msgspec.json.decode(event.host)


def _told(event: Event) -> tuple[int, str | None, int | None, str | None, str]:
    seq = None if event.seq is None else int(event.seq)
    return int(event.offset), event.session_id, seq, event.host_run_id, event.kind


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def marked_processes(launch_ids: set[str]) -> list[int]:
    """Living processes that carry the mark of one of these launches."""
    marks = {f"ACPHOST_LAUNCH={launch_id}".encode() for launch_id in launch_ids}
    found = []
    names = os.listdir("/proc") if marks else []  # noqa: PTH208  every test looks twice, at hundreds
    for name in filter(str.isdecimal, names):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123  likewise
                environ = set(file.read().split(b"\0"))
        except OSError:
            continue
        if marks & environ:
            found.append(int(name))
    return found


@asynccontextmanager
async def running_daemon(
    script: str = "",
    *,
    others: Mapping[str, str] | None = None,
    agent: Table | None = None,
    host: Table | None = None,
    prepare: Callable[[Daemon], None] | None = None,
    check: bool = True,
    follow: bool = True,
    attends: bool = True,
) -> AsyncGenerator[Daemon]:
    """A daemon with the agent `fake`, which plays `script`, and others by their names.

    `agent` and `host` are changes to the tables of all agents, and of the host, in its
    configuration. `prepare` may change the folder before the daemon starts. Without `follow` no
    client keeps all it is told, without `check` nothing is asserted at the end, and without
    `attends` nobody is there who answers questions.
    """
    with tempfile.TemporaryDirectory(prefix="ah-", dir="/tmp", ignore_cleanup_errors=True) as name:
        agents = {"fake": script, **(others or {})}
        daemon = Daemon(Path(name), agents, agent or {}, host or {})
        if prepare is not None:
            prepare(daemon)
        try:
            await daemon.start()
            async with (
                connect(
                    daemon.socket, capabilities={"permissions": attends}, patience=None
                ) as client,
                daemon.followed_by(client) if follow else daemon.used_by(client),
            ):
                yield daemon
                await daemon.settle()
            if check:
                daemon.check()
        except BaseException:
            print(daemon.log())
            raise
        finally:
            daemon.end()
