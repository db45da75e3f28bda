"""As `chat_only`, for people who tell an API they pay for from a model on their desk."""

from typing import ClassVar

from acphost.provider.agents.chat_only import ChatOnly
from acphost.wire.event import Source


class ApiChat(ChatOnly):
    """The same under another name."""

    provider = "api_chat"
    source: ClassVar[Source] = "api_chat"
