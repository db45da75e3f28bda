"""How one process of an agent is started, and who is told of its life."""

from dataclasses import dataclass
from typing import Protocol

from acphost.ids import LaunchId
from acphost.provider.traits import Traits
from acphost.settings.model import AgentSettings
from acphost.transport.child import Child
from acphost.transport.processes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything needed to start one process of an agent."""

    launch_id: LaunchId
    agent_id: str
    agent: AgentSettings
    traits: Traits
    cwd: str
    env: dict[str, str]
    max_line: int
    client_version: str
    #: Where the control group of the process is to be, if there can be one.
    cgroup: str | None = None

    def is_for(self, agent: AgentSettings, traits: Traits) -> bool:
        """Whether an agent that is configured so now would be started in the same way."""
        return self.agent == agent and self.traits is traits


class ProcessWatcher(Protocol):
    """Who keeps the ledger of processes."""

    def on_spawned(self, plan: LaunchPlan, child: Child) -> None:
        """The process exists."""

    def on_ended(self, plan: LaunchPlan, child: Child, survivors: list[Process]) -> None:
        """The process and what it started are gone, but for `survivors`."""
