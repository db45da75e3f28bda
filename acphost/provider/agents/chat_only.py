"""Plain chat models behind an OpenAI-compatible endpoint, served by a program of ours."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import ClassVar

from acphost.provider.traits import ProcessModel, Rung, Traits
from acphost.wire.acp import AgentCapabilities
from acphost.wire.agents import Finding, Severity
from acphost.wire.event import Source


class ChatOnly(Traits):
    """No tools, no files, no memory: every prompt comes with the journal's transcript."""

    provider = "chat_only"
    provider_kind = "api-chat"
    source: ClassVar[Source] = "chat_only"
    process: ClassVar[ProcessModel] = "shared"
    is_stateless = True

    def ladder(self, capabilities: AgentCapabilities) -> tuple[Rung, ...]:
        """There is nothing to go on with, and nothing that would be lost."""
        return (Rung.NEW,)

    def inspect_home(self, env: Mapping[str, str]) -> list[Finding]:
        """Whether the library is there that its program asks the endpoint with."""
        if find_spec("httpx2") is not None:
            return []
        return [
            Finding(
                code="extra_missing",
                severity=Severity.PROBLEM,
                message="chat runtimes need the package httpx2",
                cure="pip install 'acphost[chat]'",
            )
        ]
