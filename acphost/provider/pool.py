"""The agent processes of the daemon: who gets which, when one is started, how all are ended."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acphost.errors import AgentNotFoundError, AgentUnavailableError, ShuttingDownError
from acphost.ids import Clock, LaunchId, mint, ticks_ms
from acphost.log import get_logger
from acphost.provider.launch import LaunchPlan, ProcessWatcher
from acphost.provider.process import AgentProcess
from acphost.provider.restart import RestartPolicy
from acphost.provider.runtimes import traits_of
from acphost.provider.traits import Rung, Traits, UnusableTraits
from acphost.settings.environment import child_environment
from acphost.settings.model import AgentSettings, Settings
from acphost.transport import cgroups
from acphost.transport.child import Child
from acphost.transport.processes import Process
from acphost.wire.agents import AgentProbe, Promise

log = get_logger()

#: The promise that a rung of the ladder stands on.
_PROBED = {Rung.LOAD: Promise.LOAD, Rung.RESUME: Promise.RESUME}


class Ledger(ProcessWatcher, Protocol):
    """Where launches are recorded before and after they happen."""

    async def on_launching(self, plan: LaunchPlan, session_id: str | None) -> None:
        """Durable once it returns: a crash from here on finds the process by its mark."""

    def on_failed(self, plan: LaunchPlan) -> None:
        """The launch came to nothing before there was a process."""


class AgentPool:
    """Starts agents on demand, shares a process where traits allow it, restarts within limits."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        environ: Mapping[str, str],
        *,
        ledger: Ledger,
        now: Clock,
        room: Callable[[], Awaitable[None]],
        version: str,
        tell: Callable[[dict[str, object]], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._ledger = ledger
        self._now = now
        self._room = room
        self._version = version
        #: Says what becomes of an agent to whoever follows the host.
        self.tell = tell
        self._tasks: TaskGroup | None = None
        self._policies: dict[str, RestartPolicy] = {}
        self._shared: dict[str, AgentProcess] = {}
        self._starting: dict[str, anyio.Lock] = {}
        self._closing = False
        self._versions: dict[str, str] = {}
        #: How each agent failed last, for who asks for it while it rests.
        self._failures: dict[str, str] = {}
        self.processes: set[AgentProcess] = set()
        #: What the last probe of an agent found.
        self.probes: dict[str, AgentProbe] = {}

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Own all agent processes until cancelled; none outlives this call."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    # -- what is configured -----------------------------------------------------------------------

    def agent(self, agent_id: str) -> AgentSettings:
        """The configuration of an agent. Raises AgentNotFoundError, naming those there are."""
        agents = self._settings().agents
        try:
            return agents[agent_id]
        except KeyError:
            known = ", ".join(sorted(agents)) or "none"
            raise AgentNotFoundError(
                f"no agent {agent_id!r} is configured (configured: {known})"
            ) from None

    def environment(self, agent_id: str) -> dict[str, str]:
        """What an agent's processes see. Raises AgentNotFoundError."""
        return child_environment(self.agent(agent_id), self._environ)

    def traits(self, agent_id: str, runtime: str | None = None) -> Traits:
        """What is peculiar to an agent; one that was removed is known by its `runtime` still.

        Raises AgentNotFoundError where no runtime is given.
        """
        agent = self._settings().agents.get(agent_id)
        if agent is None and runtime is not None:
            return self.traits_of(runtime)
        return self.traits_of(self.agent(agent_id).runtime)

    def traits_of(self, runtime: str) -> Traits:
        """What is peculiar to a runtime."""
        return traits_of(runtime, self._settings().folder)

    # -- processes --------------------------------------------------------------------------------

    async def acquire(self, agent_id: str, *, session_id: str, cwd: str) -> AgentProcess:
        """A live process for a session, started if need be.

        Raises AgentNotFoundError, AgentUnavailableError, ShuttingDownError.
        """
        agent = self.agent(agent_id)
        traits = self.traits_of(agent.runtime)
        if (agent.process or traits.process) == "per_session":
            return await self._launch(agent_id, agent, session_id=session_id, cwd=cwd)
        async with self._starting.setdefault(agent_id, anyio.Lock()):
            shared = self._shared.get(agent_id)
            if shared is not None and shared.is_live and shared.plan.is_for(agent, traits):
                return shared
            process = await self._launch(agent_id, agent, session_id=None, cwd=cwd)
            if shared is not None:
                # Configured otherwise: it ends with the last session that it was started for.
                shared.is_retired = True
                shared.stop_unless_shared()
            self._shared[agent_id] = process
            return process

    async def launch_apart(self, agent_id: str, *, cwd: str) -> AgentProcess:
        """A process that no session will be given; the caller stops it."""
        return await self._launch(agent_id, self.agent(agent_id), session_id=None, cwd=cwd)

    @asynccontextmanager
    async def borrowed(
        self, agent_id: str, *, cwd: str | None = None
    ) -> AsyncGenerator[AgentProcess]:
        """A process of the agent to ask something: one that runs, or one for this alone.

        Raises AgentNotFoundError, AgentUnavailableError, ShuttingDownError.
        """
        for process in self.processes:
            if process.plan.agent_id == agent_id and process.is_live and process.is_greeted:
                yield process
                return
        with tempfile.TemporaryDirectory(prefix="acphost-") as folder:
            process = await self.launch_apart(agent_id, cwd=cwd or folder)
            try:
                yield process
            finally:
                process.stop()
                await process.ended.wait()

    def ladder(self, process: AgentProcess) -> tuple[Rung, ...]:
        """The rungs to try with a process: what it offers, less what a probe saw it break."""
        rungs = process.traits.ladder(process.greeting.agent_capabilities)
        probe = self.probes.get(process.plan.agent_id)
        if probe is None or probe.version != process.greeting.agent_info.version:
            return rungs
        broken = {rung for rung, promise in _PROBED.items() if promise in probe.broken}
        return tuple(rung for rung in rungs if rung not in broken)

    async def _launch(
        self, agent_id: str, agent: AgentSettings, *, session_id: str | None, cwd: str
    ) -> AgentProcess:
        tasks = self._tasks
        if self._closing or tasks is None:
            raise _shutting_down()
        traits = self.traits_of(agent.runtime)
        if isinstance(traits, UnusableTraits):
            raise AgentUnavailableError(f"agent {agent_id!r}: {traits.reason}", agentId=agent_id)
        policy = self._policies.setdefault(
            agent_id, RestartPolicy(agent.restart.limit, int(agent.restart.window * 1000))
        )
        for dying in self.processes:
            # What its session knows already counts, although its end has not been seen to yet.
            if dying.plan.agent_id == agent_id and dying.is_greeted and dying.connection.gone:
                self._note_end(dying)
        if policy.is_resting(ticks_ms()):
            raise self._resting(agent_id, agent)
        delay = policy.delay(ticks_ms())
        if delay:
            self.tell({"agentId": agent_id, "state": "restarting", "delayMs": delay,
                       "sessionId": session_id})  # fmt: skip
            await anyio.sleep(delay / 1000)
        launch_id = LaunchId(mint("launch"))
        plan = LaunchPlan(
            launch_id=launch_id,
            cgroup=cgroups.group_for(launch_id),
            agent_id=agent_id,
            agent=agent,
            traits=traits,
            cwd=cwd,
            env=traits.environment(child_environment(agent, self._environ)),
            max_line=self._settings().limits.max_line_bytes,
            client_version=self._version,
        )
        await self._ledger.on_launching(plan, session_id)
        process = AgentProcess(plan, watcher=self, now=self._now, room=self._room)
        if self._closing:
            self._ledger.on_failed(plan)
            raise _shutting_down()
        self.processes.add(process)
        about = {"agentId": agent_id, "launchId": launch_id, "sessionId": session_id}
        self.tell({**about, "state": "starting", "command": list(agent.command)})
        try:
            await tasks.start(self._live, process)
        except AgentUnavailableError as exc:
            policy.failed(ticks_ms())
            self._failures[agent_id] = str(exc)
            cure = f"`acphost agents check {agent_id}` tells what is in the way"
            self.tell({**about, "state": "failed", "reason": str(exc), "cure": cure})
            raise
        finally:
            if not process.pid:
                self._ledger.on_failed(plan)
        self._versions[agent_id] = process.greeting.agent_info.version
        self.tell({**about, "state": "ready", "pid": process.pid,
                   "version": process.greeting.agent_info.version})  # fmt: skip
        return process

    def _resting(self, agent_id: str, agent: AgentSettings) -> AgentUnavailableError:
        """It failed too often; nobody should wait for it."""
        cure = (
            f"it is tried again {agent.restart.window:g} s after its last failure, "
            "or at once when its configuration changes or a session of it is reset "
            "(`acphost ps --kill SESSION`)"
        )
        reason = f"agent {agent_id!r} failed {agent.restart.limit} times in a row and rests"
        if agent_id in self._failures:
            reason += f" (the last time: {self._failures[agent_id]})"
        self.tell({"agentId": agent_id, "state": "failed", "reason": reason, "cure": cure})
        return AgentUnavailableError(
            f"{reason}; {cure}", agentId=agent_id, command=list(agent.command), resting=True
        )

    async def _live(self, process: AgentProcess, *, task_status: TaskStatus[None]) -> None:
        greeted = False

        class Greeted:
            def started(self, value: None = None) -> None:
                nonlocal greeted
                greeted = True
                task_status.started()

        try:
            await process.run(task_status=Greeted())
        except AgentUnavailableError:
            # Before the greeting the caller of `start` is told; afterwards every session was.
            if not greeted:
                raise
        except Exception as exc:  # border: the supervisor of an agent process
            log.exception("agent_failed", agent=process.plan.agent_id, pid=process.pid)
            if not greeted:
                raise AgentUnavailableError(
                    f"agent {process.plan.agent_id!r}: internal error while it was started"
                ) from exc
        finally:
            self.processes.discard(process)
            if greeted:
                self._note_end(process)
                self._tell_end(process)

    def _note_end(self, process: AgentProcess) -> None:
        policy = self._policies.get(process.plan.agent_id)
        if policy is None or process.was_asked_to_stop or process.is_counted:
            return
        process.is_counted = True
        if process.has_served:
            policy.reset()
        else:
            policy.ended(started=process.started_at, now=ticks_ms())
            self._failures[process.plan.agent_id] = process.obituary()

    def _tell_end(self, process: AgentProcess) -> None:
        exit_ = process.exit
        self.tell(
            {
                "agentId": process.plan.agent_id,
                "state": "exited",
                "launchId": process.plan.launch_id,
                "pid": process.pid,
                "exitCode": exit_.code if exit_ else None,
                "signal": exit_.signal if exit_ else None,
                "expected": process.was_asked_to_stop,
            }
        )

    async def retire(self, process: AgentProcess) -> None:
        """A session is done with this process: it gets no new ones, and ends with its last."""
        if self._shared.get(process.plan.agent_id) is process:
            del self._shared[process.plan.agent_id]
        process.is_retired = True
        if not process.sinks:
            process.stop()
            await process.ended.wait()

    async def close(self) -> None:
        """End all processes at once and wait until they are gone."""
        self._closing = True
        processes = list(self.processes)
        for process in processes:
            process.stop()
        for process in processes:
            await process.ended.wait()

    def kill(self) -> None:
        """End all processes without any grace."""
        for process in self.processes:
            process.kill()

    def version(self, agent_id: str) -> str | None:
        """What the agent said its version is, if it was ever started here."""
        return self._versions.get(agent_id)

    def reset(self, agent_id: str) -> None:
        """Give a resting agent a new chance."""
        self._policies.pop(agent_id, None)

    def is_resting(self, agent_id: str) -> bool:
        """Whether the agent failed too often to be started now."""
        policy = self._policies.get(agent_id)
        return policy is not None and policy.is_resting(ticks_ms())

    # -- the ledger hears what the processes tell --------------------------------------------------

    def on_spawned(self, plan: LaunchPlan, child: Child) -> None:
        """The process exists."""
        self._ledger.on_spawned(plan, child)

    def on_ended(self, plan: LaunchPlan, child: Child, survivors: list[Process]) -> None:
        """The process is gone."""
        self._ledger.on_ended(plan, child, survivors)


def _shutting_down() -> ShuttingDownError:
    return ShuttingDownError("the daemon is stopping")
