"""A program that agents run as a tool, on the standard library alone.

`toolbox.py` is an MCP server on stdio with the tools `shout` (text in capitals) and `hold` (returns
once a door of the model server opens). `toolbox.py hold URL` is the same wait as a shell command.
"""

import json
import sys
import urllib.request
from typing import Any

_PROTOCOL = "2025-06-18"
_TEXT = {"type": "string"}
_TOOLS = [
    {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {member: _TEXT}, "required": [member]},
    }
    for name, description, member in (
        ("shout", "Says a text in capitals.", "text"),
        ("hold", "Waits at a door until it opens.", "url"),
    )
]


def hold(url: str) -> str:
    """Knock and wait; the door answers when it is opened."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - the test's own loopback address
        return str(answer.read(), "utf-8")


def _call(name: str, arguments: dict[str, str]) -> str:
    return hold(arguments["url"]) if name == "hold" else arguments["text"].upper()


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion", _PROTOCOL),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "toolbox", "version": "1"},
            }
        case "tools/list":
            return {"tools": _TOOLS}
        case "tools/call":
            text = _call(params["name"], params.get("arguments") or {})
            return {"content": [{"type": "text", "text": text}]}
        case "ping":
            return {}
        case _:
            return None


def serve() -> None:
    """Answer requests line by line until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = _result(message["method"], message.get("params") or {})
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": f"no method {message['method']}"}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["hold"]:
        print(hold(sys.argv[2]))
    else:
        serve()
