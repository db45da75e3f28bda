"""What the front door tells an editor it can do, and how it reads what the editor can.

Everything offered here is the daemon's own guarantee, whichever agent answers (guide section 10).
"""

import msgspec
from msgspec import Raw

from acphost.wire.acp import PROTOCOL_VERSION, lenient
from acphost.wire.acp_agent import InitializeParams

#: What an agent cannot take is refused by the daemon before it queues, with the reason.
AGENT_CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        "list": {},
        "resume": {},
        "close": {},
        "delete": {},
        "fork": {},
        "additionalDirectories": {},
    },
}


def read_initialize(params: Raw) -> InitializeParams:
    """What the editor said, read as leniently as the protocol asks."""
    try:
        return lenient(InitializeParams, params)
    except msgspec.DecodeError:
        return InitializeParams()


def greeting(version: str) -> dict[str, object]:
    """The answer to `initialize`: version 1 whatever was offered, as the protocol has it."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": AGENT_CAPABILITIES,
        "agentInfo": {"name": "acphost", "title": "acphost", "version": version},
        "authMethods": [],
    }
