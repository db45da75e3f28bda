"""What every session of the daemon is given to work with."""

from collections.abc import Callable
from dataclasses import dataclass

from anyio.abc import TaskGroup

from acphost.ids import Clock
from acphost.journal.reader import Reader
from acphost.journal.writer import Writer
from acphost.provider.pool import AgentPool
from acphost.session.files import Editors
from acphost.session.grants import Grants
from acphost.session.vault import Vault
from acphost.settings.model import PermissionSettings, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The same for all sessions, and alive for as long as any of them."""

    writer: Writer
    reader: Reader
    pool: AgentPool
    #: As they are now.
    settings: Callable[[], Settings]
    #: Of the work that goes on when the request that caused it has been answered.
    tasks: TaskGroup
    now: Clock
    #: Whether a client is there that could answer a question.
    is_attended: Callable[[], bool]
    vault: Vault
    editors: Editors
    grants: Grants

    def permissions(self) -> PermissionSettings:
        """How questions to people are treated now."""
        return self.settings().permissions
