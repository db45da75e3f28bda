"""What `EXPECT name` at the left margin watches for, all along."""

from collections.abc import Callable, Iterable

from acphost.demo.books import Incoming, Session
from acphost.demo.tokens import JsonObject


def _one_prompt(incoming: Incoming, session: Session | None) -> str | None:
    if incoming.method == "session/prompt" and session is not None and session.open:
        return f"a second prompt for {session.id} while one is unanswered"
    return None


def _one_load(incoming: Incoming, session: Session | None) -> str | None:
    loading = incoming.method in ("session/load", "session/resume")
    if loading and session is not None and session.live:
        return f"{incoming.method} for {session.id}, which is live here"
    return None


def _running_cancel(incoming: Incoming, session: Session | None) -> str | None:
    if incoming.method == "session/cancel" and (session is None or not session.open):
        return f"session/cancel for {incoming.session_id}, which has no prompt"
    return None


WATCHES: dict[str, Callable[[Incoming, Session | None], str | None]] = {
    "one-prompt": _one_prompt,
    "one-load": _one_load,
    "running-cancel": _running_cancel,
}

#: Not a violation but a refusal, as strict agents do: the request is answered with -32602.
MCP_ARRAYS = "mcp-arrays"


def violation(names: Iterable[str], incoming: Incoming, session: Session | None) -> str | None:
    """What is wrong with this message, if anything that is watched for."""
    for name in names:
        if name in WATCHES:
            found = WATCHES[name](incoming, session)
            if found is not None:
                return found
    return None


def mcp_fault(params: JsonObject) -> str | None:
    """Where `mcpServers` is not what the protocol says; None if it is."""
    servers = params.get("mcpServers")
    if not isinstance(servers, list):
        return "mcpServers: expected an array"
    for index, server in enumerate(servers):
        fault = _server_fault(server)
        if fault is not None:
            return f"mcpServers[{index}].{fault}"
    return None


def _server_fault(server: object) -> str | None:
    if not isinstance(server, dict) or not isinstance(server.get("name"), str):
        return "name: expected a string"
    if server.get("type") in ("http", "sse"):
        if not isinstance(server.get("url"), str):
            return "url: expected a string"
        return _pairs_fault(server, "headers")
    command = server.get("command")
    if not isinstance(command, str) or not command.startswith("/"):
        return "command: expected an absolute path"
    if not isinstance(server.get("args"), list):
        return "args: expected an array"
    return _pairs_fault(server, "env")


def _pairs_fault(server: JsonObject, key: str) -> str | None:
    pairs = server.get(key)
    if not isinstance(pairs, list):
        return f"{key}: expected an array of name and value"
    for pair in pairs:
        if not isinstance(pair, dict) or set(pair) != {"name", "value"}:
            return f"{key}: expected objects of name and value"
    return None
