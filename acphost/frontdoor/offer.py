"""What the front door tells an editor it can do.

Everything offered here is the daemon's own guarantee, whichever agent answers (guide section 10).
"""

#: As `wire.acp` has it, which need not be loaded for one number.
PROTOCOL_VERSION = 1
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


def greeting(version: str) -> dict[str, object]:
    """The answer to `initialize`: version 1 whatever was offered, as the protocol has it."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": AGENT_CAPABILITIES,
        "agentInfo": {"name": "acphost", "title": "acphost", "version": version},
        "authMethods": [],
    }
