"""What people ask about agents: what is configured, whether it would work, how it behaves."""

import tempfile
from collections.abc import Callable, Mapping

import anyio.to_thread
import msgspec

from acphost.errors import AgentUnavailableError, ConflictError
from acphost.ids import Clock
from acphost.journal.reader import Reader
from acphost.journal.statements import save_probe
from acphost.journal.writer import Writer
from acphost.provider.check import check_agent
from acphost.provider.pool import AgentPool
from acphost.provider.probe import Probe
from acphost.settings.environment import child_environment
from acphost.wire.agents import AgentCheck, AgentProbe, Finding, Promise, PromiseResult, Severity
from acphost.wire.base import timestamp


class AgentDesk:
    """Checks and probes agents, and remembers what came of it."""

    def __init__(
        self,
        pool: AgentPool,
        reader: Reader,
        writer: Writer,
        environ: Callable[[], Mapping[str, str]],
        now: Clock,
    ) -> None:
        self._pool = pool
        self._reader = reader
        self._writer = writer
        self._environ = environ
        self._now = now
        self._probing: set[str] = set()

    async def remember(self) -> None:
        """Have the pool know what earlier probes found."""
        for agent_id, found in (await self._reader.probes()).items():
            try:
                self._pool.probes[agent_id] = msgspec.json.decode(found, type=AgentProbe)
            except msgspec.DecodeError:
                continue  # of another version of ours: as good as none

    async def check(self, agent_id: str) -> AgentCheck:
        """What can be told without starting it. Raises AgentNotFoundError."""
        agent, traits = self._pool.agent(agent_id), self._pool.traits(agent_id)
        environ = self._environ()
        env = traits.environment(child_environment(agent, environ))
        # It reads files, which may lie on a slow disk.
        findings = await anyio.to_thread.run_sync(check_agent, agent, traits, env, environ)
        if self._pool.is_resting(agent_id):
            findings.append(_RESTING)
        probe = self._pool.probes.get(agent_id)
        findings += [] if probe is None else _broken(probe)
        return AgentCheck(
            agent_id=agent_id,
            ready=all(each.severity is not Severity.PROBLEM for each in findings),
            launch=list(agent.command),
            version=self._pool.version(agent_id) or (probe.version if probe else None),
            findings=findings,
        )

    async def probe(self, agent_id: str, *, with_prompts: bool) -> AgentProbe:
        """Try it out in a scratch folder, and remember what came of it.

        Raises AgentNotFoundError, ConflictError while another probe of it is under way.
        """
        self._pool.agent(agent_id)
        if agent_id in self._probing:
            raise ConflictError(f"agent {agent_id!r} is being probed already")
        self._probing.add(agent_id)
        try:
            found = await self._try(agent_id, with_prompts=with_prompts)
        finally:
            self._probing.discard(agent_id)
        self._pool.probes[agent_id] = found
        await self._writer.durable(
            self._writer.record([save_probe(agent_id, msgspec.json.encode(found))])
        )
        return found

    async def _try(self, agent_id: str, *, with_prompts: bool) -> AgentProbe:
        scratch = tempfile.TemporaryDirectory(prefix="acphost-probe-", ignore_cleanup_errors=True)
        with scratch as folder:
            probe = Probe(
                lambda: self._pool.launch_apart(agent_id, cwd=folder),
                folder,
                with_prompts=with_prompts,
            )
            try:
                results = await probe.run()
            except AgentUnavailableError as exc:
                failed = PromiseResult(promise=Promise.INITIALIZE, holds=False, note=str(exc))
                results = [failed]
        return AgentProbe(
            agent_id=agent_id,
            name=probe.name,
            version=probe.version,
            at=timestamp(self._now()),
            results=results,
        )


_RESTING = Finding(
    code="resting",
    severity=Severity.PROBLEM,
    message="it failed too often and rests",
    cure="see the last error of its sessions, then `acphost ps --kill SESSION` or change its "
    "configuration",
)


def _broken(probe: AgentProbe) -> list[Finding]:
    return [
        Finding(
            code=f"probe_{each.promise}",
            severity=Severity.WARNING,
            message=f"when it was probed on {probe.at} it did not keep `{each.promise}`"
            + (f": {each.note}" if each.note else ""),
        )
        for each in probe.results
        if each.holds is False
    ]
