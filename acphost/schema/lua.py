"""LuaLS annotations of the socket, from its JSON Schema."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from acphost.schema.shapes import Schema

_PREFIX = "acphost."
_FRAMES = frozenset({"Request", "Answer", "Notification", "Question"})
_SIMPLE = {
    "string": "string", "integer": "integer", "number": "number", "boolean": "boolean",
    "null": "nil",
}  # fmt: skip


def lua(document: Mapping[str, Any]) -> str:
    """A meta file: a class or an alias for every definition, and the words of the tables."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield "---@meta acphost.types"
    yield "-- Made by `acphost schema --lua` from the daemon's own types: change those, not this."
    yield f"-- schema revision {document['schemaRevision']}"
    codes = sorted({each["word"] for each in document["errors"]})
    for name, words in (
        ("Method", document["methods"]),
        ("NotificationMethod", document["notifications"]),
        ("QuestionMethod", document["requests"]),
        ("TerminalKind", document["terminalKinds"]),
        ("ErrorCode", codes),
    ):
        yield ""
        yield from _alias(name, list(words))
    for name, schema in document["$defs"].items():
        if name not in _FRAMES:
            yield ""
            yield from _definition(name, schema)
    for method, each in document["methods"].items():
        yield ""
        yield f"---`{method}` {each['description']}".rstrip()
        yield f"---@alias {_PREFIX}params.{_dotted(method)} {_type(each['params'])}"
        yield f"---@alias {_PREFIX}result.{_dotted(method)} {_type(each['result'])}"


def _alias(name: str, words: list[str]) -> Iterator[str]:
    yield f"---@alias {_PREFIX}{name}"
    yield from (f"---| {_text(word)}" for word in words or ["nil"])


def _definition(name: str, schema: Schema) -> Iterator[str]:
    if text := schema.get("description"):
        yield f"---{text}"
    if "enum" in schema:
        yield from _alias(name, schema["enum"])
        return
    yield f"---@class {_PREFIX}{name}"
    required = set(schema.get("required", ()))
    for member, shape in schema["properties"].items():
        mark = "" if member in required else "?"
        note = shape.get("description", "")
        yield f"---@field {member}{mark} {_type(shape)} {note}".rstrip()


def _dotted(method: str) -> str:
    return method.replace("/", ".")


def _type(shape: Schema) -> str:
    """A type expression."""
    match shape:
        case {"$ref": str(reference)}:
            return _PREFIX + reference.rpartition("/")[2]
        case {"const": value}:
            return _text(value)
        case {"enum": [*words]}:
            return "|".join(map(_text, words))
        case {"anyOf": [*shapes]}:
            return "|".join(dict.fromkeys(map(_type, shapes)))
        case {"type": "array", "items": items}:
            inner = _type(items)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case {"type": "object", "additionalProperties": values}:
            return f"table<string, {_type(values)}>"
        case {"type": "object"}:
            return "table"
    return _SIMPLE.get(shape.get("type", ""), "any")


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
