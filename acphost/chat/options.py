"""What the daemon tells the chat program in its environment: never a key, only where one is."""

import os
from collections.abc import Mapping

import msgspec

from acphost.settings.chat import VARIABLE


class ChatOptions(msgspec.Struct, frozen=True, rename="camel"):
    """One OpenAI-compatible endpoint, and the model to ask there."""

    base_url: str
    model: str
    #: The variable that holds the key; None: the endpoint takes none.
    api_key_env: str | None = None
    system: str | None = None
    #: Seconds without a byte from the endpoint.
    read_timeout: float = 300.0

    def key(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """The key itself, as late as it is needed."""
        return environ.get(self.api_key_env) if self.api_key_env else None


def read_options(environ: Mapping[str, str] = os.environ) -> ChatOptions:
    """From the environment. Raises KeyError, msgspec.DecodeError."""
    return msgspec.json.decode(environ[VARIABLE], type=ChatOptions)
