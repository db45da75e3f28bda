"""What can be told of an agent without starting it: is it there, and will it surprise anybody."""

from collections.abc import Mapping
from pathlib import Path

from acphost.errors import AgentUnavailableError
from acphost.provider.traits import Traits
from acphost.settings.model import AgentSettings
from acphost.transport.program import find_program
from acphost.wire.agents import Finding, Severity

NOT_INSTALLED = "not_installed"


def check_agent(
    agent: AgentSettings, traits: Traits, env: Mapping[str, str], environ: Mapping[str, str]
) -> list[Finding]:
    """Findings in the order in which they matter; reads files, changes nothing.

    `env` is what the agent would see, `environ` what the daemon does.
    """
    findings = [_program(agent, env), *_passed(agent, environ)]
    if findings[0].severity is not Severity.PROBLEM:
        findings += traits.inspect_home(env)
    return findings


def _program(agent: AgentSettings, env: Mapping[str, str]) -> Finding:
    try:
        found = find_program(agent.command[0], str(Path.home()), env)
    except AgentUnavailableError as exc:
        return Finding(
            code=NOT_INSTALLED,
            severity=Severity.PROBLEM,
            message=str(exc),
            cure="install the agent, or name its program in full in `command`",
        )
    return Finding(code="installed", severity=Severity.OK, message=f"{found} can be started")


def _passed(agent: AgentSettings, environ: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(
            code="variable_missing",
            severity=Severity.WARNING,
            message=f"the daemon has no variable {name} to pass on",
            cure=f"set {name} where the daemon is started, or in `env` of the agent",
        )
        for name in agent.env_pass
        if name not in environ
    ]
