"""The golden ACP messages, and what the demo agent says, against the schema of the protocol."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from acphost.rpc.codec import decode_message
from acphost.wire.jsonrpc import Failure, Notification, Request, Success
from tests.support.fake_agent import FakeAgent, playing

FIXTURES = Path(__file__).parents[2] / "fixtures"
Schema = dict[str, Any]
SCHEMA: Schema = json.loads((FIXTURES / "schema" / "acp-v1.schema.json").read_text())

#: Methods whose messages travel one way or are answered, by the names of the schema.
BY_METHOD: dict[str, dict[str, str]] = {}
for name, definition in SCHEMA["$defs"].items():
    if "x-method" in definition:
        kind = "result" if name.endswith("Response") else "params"
        BY_METHOD.setdefault(definition["x-method"], {})[kind] = name

_STRUCTURE = ("$ref", "allOf", "anyOf", "oneOf", "properties")


def strict(schema: object) -> object:
    """The schema with no room for members it does not name, at any depth."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: strict(value) for key, value in schema.items()}
    match copy:
        case {"properties": dict() as properties}:
            copy["properties"] = {key: closed(value) for key, value in properties.items()}
    match copy:
        case {"items": dict() as items}:
            copy["items"] = closed(items)
    return copy


def closed(schema: Schema) -> Schema:
    """The schema of one value; a value of any shape stays of any shape."""
    has_structure = any(key in schema for key in _STRUCTURE)
    return {**schema, "unevaluatedProperties": False} if has_structure else schema


STRICT = strict(SCHEMA["$defs"])


def faults(definition: str, value: object, *, strictly: bool) -> list[str]:
    """What the schema has against a value."""
    root: Schema = {"$ref": f"#/$defs/{definition}"}
    schema = {**closed(root), "$defs": STRICT} if strictly else {**root, "$defs": SCHEMA["$defs"]}
    found = Draft202012Validator(schema).iter_errors(value)
    return [f"{error.json_path}: {error.message}" for error in found]


def check(message: dict[str, Any], method: str, *, strictly: bool) -> list[str]:
    """What is wrong with a JSON-RPC message; `method` is what an answer answers."""
    assert message["jsonrpc"] == "2.0"
    if "error" in message:
        return faults("Error", message["error"], strictly=strictly)
    part = "result" if "result" in message else "params"
    return faults(BY_METHOD[method][part], message[part], strictly=strictly)


def golden(folder: str) -> list[Any]:
    return [
        pytest.param(path, id=path.stem) for path in sorted((FIXTURES / "wire" / folder).iterdir())
    ]


def method_of(path: Path, message: dict[str, Any]) -> str:
    """The method of a request, or of the request an answer is for, by the name of the file."""
    found: str = message.get("method", "")
    stem = path.name.removeprefix("beyond_").partition(".")[0]
    return found or next((m for m in BY_METHOD if m.replace("/", "_") == stem), "")


@pytest.mark.parametrize("path", golden("sent"))
def test_what_we_send_is_what_the_schema_names_and_nothing_more(path: Path) -> None:
    message = json.loads(path.read_text(encoding="utf-8"))
    assert check(message, method_of(path, message), strictly=True) == []


@pytest.mark.parametrize("path", golden("received"))
def test_what_we_receive_is_legal_unless_it_says_that_it_is_beyond_the_schema(path: Path) -> None:
    message = json.loads(path.read_text(encoding="utf-8"))
    method = method_of(path, message)
    if not path.name.startswith("beyond_"):
        assert check(message, method, strictly=False) == []
    elif method in BY_METHOD:
        assert check(message, method, strictly=True) != []


@pytest.mark.parametrize("path", golden("sent") + golden("received"))
def test_our_codec_reads_every_golden_message_and_keeps_its_bytes(path: Path) -> None:
    message = json.loads(path.read_text(encoding="utf-8"))
    decoded = decode_message(json.dumps(message).encode())
    match decoded:
        case Request(id=number, method=method, params=params):
            assert (number, method) == (message["id"], message["method"])
            assert json.loads(bytes(params)) == message["params"]
        case Notification(method=method, params=params):
            assert (None, method) == (message.get("id"), message["method"])
            assert json.loads(bytes(params)) == message["params"]
        case Success(id=number, result=result):
            assert (number, json.loads(bytes(result))) == (message["id"], message["result"])
        case Failure(id=number, error=error):
            assert (number, error.code) == (message["id"], message["error"]["code"])


def test_every_kind_of_update_has_its_golden_message() -> None:
    variants = SCHEMA["$defs"]["SessionUpdate"]["oneOf"]
    kinds = {variant["properties"]["sessionUpdate"]["const"] for variant in variants}
    assert kinds <= {path.stem for path in (FIXTURES / "wire" / "received").iterdir()}


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("CancelNotification", {"sessionId": "s1", "reason": "x"}),
        ("NewSessionRequest", {"cwd": "/w", "mcpServers": [], "extra": 1}),
        (
            "NewSessionRequest",
            {"cwd": "/w", "mcpServers": [{"name": "m", "command": "/m", "args": [], "env": {}}]},
        ),
        ("PromptRequest", {"sessionId": "s", "prompt": [{"type": "text", "text": "x", "y": 1}]}),
        ("RequestPermissionResponse", {"outcome": {"outcome": "cancelled", "optionId": "a"}}),
    ],
)
def test_the_strict_check_would_notice(definition: str, value: object) -> None:
    assert faults(definition, value, strictly=True) != []


def test_the_demo_agent_says_nothing_the_schema_does_not_name(tmp_path: Path) -> None:
    asked: dict[int, str] = {}

    def ask(agent: FakeAgent, method: str, **params: object) -> dict[str, Any]:
        number = agent.request(method, **params)
        asked[number] = method
        while True:
            message = agent.message()
            if message.get("method") == "session/request_permission":
                agent.choose(message, "reject_once" if "no" in str(params) else "allow_once")
            elif "method" not in message:
                return message

    with playing(ACPHOST_DEMO_STORE=str(tmp_path)) as agent:
        ask(agent, "initialize", protocolVersion=1)
        session = ask(agent, "session/new", cwd="/w", mcpServers=[])["result"]["sessionId"]
        for text in ("hello", "permission", "no permission", "long", "fail", "remember"):
            ask(agent, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        ask(agent, "session/load", sessionId=session, cwd="/w", mcpServers=[])
        for method in ("session/list", "session/resume", "session/close", "authenticate"):
            ask(agent, method, sessionId=session, cwd="/w")
        ask(agent, "x/unknown")
        assert agent.end() == 0

    for line in agent.lines:
        message = json.loads(line)
        method = message.get("method") or asked[message["id"]]
        assert check(message, method, strictly=True) == [], message
