"""How a well-behaved agent answers what neither the linear part nor a rule takes."""

from collections.abc import Callable

from acphost.demo.books import Incoming
from acphost.demo.memory import text_chunk
from acphost.demo.stage import Host, Stage
from acphost.demo.tokens import JsonObject

INITIALIZE: JsonObject = {
    "protocolVersion": 1,
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True, "embeddedContext": True},
        "sessionCapabilities": {"resume": {}, "list": {}, "close": {}},
    },
    "agentInfo": {"name": "acphost-fake", "title": "Fake agent", "version": "1"},
    "authMethods": [],
}


def body_for(stage: Stage, incoming: Incoming) -> JsonObject:
    """The usual answer to a request, after the updates that belong before it."""
    reply = _REPLIES.get(incoming.method)
    if reply is None:
        return {"error": {"code": -32601, "message": f"Method not found: {incoming.method}"}}
    return reply(stage, incoming)


def closing_body(host: Host, incoming: Incoming) -> JsonObject:
    """The answer to a request whose block has come to its end without one."""
    match incoming.method:
        case "initialize":
            return {"result": host.init}
        case "session/new":
            return {"result": {"sessionId": host.books.next_session_id()}}
        case "session/prompt":
            return {"result": {"stopReason": "end_turn"}}
    return {"result": {}}


def unknown_session(session_id: str | None) -> JsonObject:
    """The answer to a request for a session that does not exist."""
    return {"error": {"code": -32002, "message": f"Unknown session: {session_id}"}}


def _closing(stage: Stage, incoming: Incoming) -> JsonObject:
    return closing_body(stage.host, incoming)


def _load(stage: Stage, incoming: Incoming) -> JsonObject:
    session = stage.host.books.recalled(incoming.session_id or "")
    if session is None:
        return unknown_session(incoming.session_id)
    if incoming.method == "session/load":
        for update in list(session.conversation.updates):
            stage.update(update, remember=False)
    return {"result": {}}


def _prompt(stage: Stage, incoming: Incoming) -> JsonObject:
    stage.update(text_chunk("agent_message_chunk", "ok"))
    return {"result": {"stopReason": "end_turn"}}


def _close(stage: Stage, incoming: Incoming) -> JsonObject:
    session = stage.host.books.known(incoming.session_id)
    if session is not None:
        session.live = False
    return {"result": {}}


def _list(stage: Stage, incoming: Incoming) -> JsonObject:
    listed = [
        {"sessionId": session.id, "cwd": session.conversation.cwd}
        for session in stage.host.books.all_sessions()
    ]
    return {"result": {"sessions": listed}}


def _options(stage: Stage, incoming: Incoming) -> JsonObject:
    return {"result": {"configOptions": []}}


_REPLIES: dict[str, Callable[[Stage, Incoming], JsonObject]] = {
    "initialize": _closing,
    "authenticate": _closing,
    "logout": _closing,
    "session/new": _closing,
    "session/load": _load,
    "session/resume": _load,
    "session/prompt": _prompt,
    "session/close": _close,
    "session/delete": _close,
    "session/list": _list,
    "session/set_mode": _closing,
    "session/set_model": _closing,
    "session/set_config_option": _options,
}
