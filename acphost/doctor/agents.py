"""Whether agents would be found and started, by this shell and by the service."""

import os
from collections.abc import Iterator, Mapping

from acphost.doctor.finding import Diagnosis, Patient, fine, problem
from acphost.provider.check import check_agent
from acphost.provider.runtimes import traits_of
from acphost.settings.environment import child_environment
from acphost.settings.model import AgentSettings
from acphost.wire.agents import Finding, Severity

_AGAIN = "run `acphost service install` again in this shell: it captures the PATH"


def look_at_agents(patient: Patient, service_path: str | None) -> Iterator[Diagnosis]:
    """Each configured agent; `service_path` is the PATH of an installed service."""
    agents = patient.loaded.settings.agents
    if not agents:
        yield fine("agents", "none is configured")
    wanted = patient.loaded.settings.default_agent
    if wanted is not None and wanted not in agents:
        yield problem(
            "agents", f"`default_agent` is {wanted!r}, and no agent is called that",
            f"name one of those that are configured: {', '.join(agents) or 'none'}",
        )  # fmt: skip
    any_ready = False
    for agent_id, agent in agents.items():
        found = list(_agent(agent_id, agent, patient, service_path))
        any_ready = any_ready or all(each.severity is not Severity.PROBLEM for each in found)
        # The shipped ones are there for those who have them: missing, they are no fault.
        shipped = agent_id not in _configured(patient)
        yield from (_softened(each) if shipped else each for each in found)


def _configured(patient: Patient) -> set[str]:
    """Agents that the user's files name."""
    from acphost.settings.read import read_files  # noqa: PLC0415  only the doctor asks

    named: set[str] = set()
    for document in read_files(patient.config) if patient.loaded.problem is None else ():
        table = document.table.get("agents")
        named |= set(table) if isinstance(table, dict) else set()
    return named


def _softened(found: Diagnosis) -> Diagnosis:
    if found.severity is not Severity.PROBLEM:
        return found
    return Diagnosis(found.area, Severity.WARNING, found.message, found.cure)


def _agent(
    agent_id: str, agent: AgentSettings, patient: Patient, service_path: str | None
) -> Iterator[Diagnosis]:
    area = f"agent {agent_id}"
    environ, folder = patient.environ, patient.loaded.settings.folder
    here = _check(agent, environ, folder)
    if service_path is None or service_path == environ.get("PATH"):
        yield from (_told(area, each) for each in here)
        return
    there = _check(agent, {**environ, "PATH": service_path}, folder)
    for each in there:
        found = _told(area, each)
        if each.severity is Severity.PROBLEM and each not in here and _is_well(here):
            message = f"found by this shell, not by the service: {each.message}"
            found = Diagnosis(area, Severity.PROBLEM, message, _AGAIN)
        yield found


def _is_well(findings: list[Finding]) -> bool:
    return all(each.severity is not Severity.PROBLEM for each in findings)


def _check(agent: AgentSettings, environ: Mapping[str, str], folder: str) -> list[Finding]:
    traits = traits_of(agent.runtime, folder)
    seen = traits.environment(child_environment(agent, environ))
    return check_agent(agent, traits, seen, environ)


def _told(area: str, each: Finding) -> Diagnosis:
    message = " ".join(each.message.split(os.linesep))
    return Diagnosis(area, each.severity, message, each.cure)
