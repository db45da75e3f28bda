"""The JSON Schema of the socket: definitions, and which of them each message carries.

Members that JSON Schema does not know (`methods`, `notifications`, `requests`, `errors`) say which
definition belongs where; a validator leaves them alone. What it is given is one whole line.
"""

import hashlib
from collections.abc import Iterable
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from acphost.schema import contract
from acphost.schema.shapes import Schema, Shapes
from acphost.wire.event import TERMINAL_KINDS, Kind
from acphost.wire.host import PROTOCOL_VERSION
from acphost.wire.jsonrpc import RequestId
from acphost.wire.spoken import NOTIFICATIONS, QUESTIONS

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VERSION = {"const": "2.0"}
_DIGITS = 12


def document() -> dict[str, Any]:
    """The schema of all that crosses the socket, the same at every call."""
    shapes = Shapes()
    methods = {each.name: _method(shapes, each) for each in contract.methods()}
    notifications = {name: {"params": shapes.of(kind)} for name, kind in NOTIFICATIONS.items()}
    requests = {
        name: {"params": shapes.of(asked.params), "result": shapes.of(asked.result)}
        for name, asked in QUESTIONS.items()
    }
    shapes.of(Kind)
    errors = [msgspec.to_builtins(word) for word in contract.words()]
    request_id = shapes.of(RequestId)
    definitions = shapes.definitions | {
        "ErrorObject": _error(errors),
        "Request": _one_of(_request(name, each, request_id) for name, each in methods.items()),
        "Answer": _answer(request_id),
        "Notification": _one_of(_notice(name, each) for name, each in notifications.items()),
    }
    if requests:
        definitions["Question"] = _one_of(
            _request(name, each, request_id) for name, each in requests.items()
        )
    lines = [
        name for name in ("Request", "Answer", "Notification", "Question") if name in definitions
    ]
    schema = {
        "$schema": _DIALECT,
        "title": "acphost socket",
        "description": "One line on the socket of acphost, in either direction.",
        "protocolVersion": PROTOCOL_VERSION,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "methods": methods,
        "notifications": notifications,
        "requests": requests,
        "errors": errors,
        "errorsOfAnyMethod": [cls.word for cls in contract.ALWAYS],
        "terminalKinds": sorted(TERMINAL_KINDS),
        "$defs": dict(sorted(definitions.items())),
    }
    return {"schemaRevision": revision(schema)} | schema


def revision(schema: dict[str, Any]) -> str:
    """The protocol version with a digest of everything else."""
    digest = hashlib.sha256(msgspec.json.encode(schema, order="sorted")).hexdigest()
    return f"{PROTOCOL_VERSION}-{digest[:_DIGITS]}"


def encoded() -> bytes:
    """The schema as it is served."""
    return msgspec.json.encode(document())


def _method(shapes: Shapes, each: contract.Taken) -> Schema:
    return {
        "description": each.description,
        "access": each.access,
        "params": shapes.of(each.params),
        "result": _result(shapes, each.result),
        "errors": [cls.word for cls in each.errors],
    }


def _result(shapes: Shapes, annotation: object) -> Schema:
    """What a method returns is one Struct, or with some params another."""
    if get_origin(annotation) in {Union, UnionType}:
        return {"anyOf": [shapes.of(each) for each in get_args(annotation)]}
    return shapes.of(annotation)


def _request(name: str, each: Schema, request_id: Schema) -> Schema:
    """A method whose params may all be left out may be called without any."""
    return {
        "type": "object",
        "properties": {
            "jsonrpc": _VERSION, "id": request_id, "method": {"const": name},
            "params": each["params"],
        },
        "required": ["jsonrpc", "id", "method"],
    }  # fmt: skip


def _notice(name: str, each: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {"jsonrpc": _VERSION, "method": {"const": name}, "params": each["params"]},
        "required": ["jsonrpc", "method", "params"],
        "not": {"required": ["id"]},
    }


def _answer(request_id: Schema) -> Schema:
    error = {"$ref": "#/$defs/ErrorObject"}
    base = {"jsonrpc": _VERSION, "id": request_id}
    return {
        "description": "What a request is answered with: a result by its method, or an error.",
        "anyOf": [
            {
                "type": "object",
                "properties": base | {name: schema},
                "required": ["jsonrpc", "id", name],
                "not": {"required": ["method"]},
            }
            for name, schema in (("result", {}), ("error", error))
        ],
    }


def _error(errors: list[Any]) -> Schema:
    """The error object; `data.code` is what programs match on."""
    words = sorted({each["word"] for each in errors})
    return {
        "description": "Why a request failed; `data.code` is the word to match on.",
        "type": "object",
        "properties": {
            "code": {"type": "integer"},
            "message": {"type": "string", "description": "An English sentence for people."},
            "data": {
                "type": "object",
                "properties": {
                    "code": {"anyOf": [{"enum": words}, {"type": "string"}]},
                    "retryable": {"type": "boolean"},
                },
            },
        },
        "required": ["code", "message"],
    }


def _one_of(schemas: Iterable[Schema]) -> Schema:
    return {"anyOf": list(schemas)}
