"""TypeScript types of the socket, from its JSON Schema."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from acphost.schema.shapes import Schema

#: Definitions that only a validator needs: a client has the generic ones below.
_FRAMES = frozenset({"Request", "Answer", "Notification", "Question"})

_TABLES = {
    "methods": ("Methods", "What a client calls, by method."),
    "notifications": ("Notifications", "What the daemon says of its own accord."),
    "requests": ("Questions", "What the daemon asks a client that offered to answer."),
}


def typescript(document: Mapping[str, Any]) -> str:
    """A module that exports every definition, and what each method takes and returns."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield "// Made by `acphost schema --ts` from the daemon's own types: change those, not this."
    yield "/* eslint-disable */"
    yield ""
    yield f"export const schemaRevision = {_text(document['schemaRevision'])};"
    yield f"export const protocolVersion = {document['protocolVersion']};"
    kinds = ", ".join(map(_text, document["terminalKinds"]))
    yield "/** The kinds of event that end a run. */"
    yield f"export const terminalKinds: readonly Kind[] = [{kinds}];"
    codes = {each["word"]: each["description"] for each in document["errors"]}
    yield ""
    yield "/** `error.data.code`: what programs match on; a newer daemon may know more of them. */"
    yield "export type ErrorCode ="
    yield from (f"  | {_text(code)}" for code in sorted(codes))
    yield "  | (string & {});"
    for name, schema in document["$defs"].items():
        if name not in _FRAMES:
            yield ""
            yield from _definition(name, schema)
    for member, (name, summary) in _TABLES.items():
        yield ""
        yield f"/** {summary} */"
        yield f"export interface {name} {{"
        for method, each in document[member].items():
            yield from _comment(each.get("description", ""), "  ")
            shown = {part: _type(each[part]) for part in ("params", "result") if part in each}
            inner = "; ".join(f"{part}: {what}" for part, what in shown.items())
            yield f"  {_text(method)}: {{ {inner} }};"
        yield "}"


def _definition(name: str, schema: Schema) -> Iterator[str]:
    yield from _comment(schema.get("description", ""), "")
    if "enum" in schema:
        yield f"export type {name} ="
        *some, last = schema["enum"]
        yield from (f"  | {_text(word)}" for word in some)
        yield f"  | {_text(last)};"
        return
    yield f"export interface {name} {{"
    required = set(schema.get("required", ()))
    for member, shape in schema["properties"].items():
        yield from _comment(shape.get("description", ""), "  ")
        mark = "" if member in required else "?"
        yield f"  {member}{mark}: {_type(shape)};"
    yield "}"


def _comment(text: str, indent: str) -> Iterator[str]:
    if text:
        yield f"{indent}/** {text.replace('*/', '* /')} */"


def _type(shape: Schema) -> str:
    """A type expression."""
    match shape:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"const": value}:
            return _text(value)
        case {"enum": [*words]}:
            return " | ".join(map(_text, words))
        case {"anyOf": [*shapes]}:
            return " | ".join(dict.fromkeys(map(_type, shapes)))
        case {"type": "array", "items": items}:
            inner = _type(items)
            return f"Array<{inner}>" if "|" in inner else f"{inner}[]"
        case {"type": "object", "properties": properties}:
            members = "; ".join(f"{name}?: {_type(each)}" for name, each in properties.items())
            return f"{{ {members} }}"
        case {"type": "object", "additionalProperties": values}:
            return f"Record<string, {_type(values)}>"
    simple = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
    return {**simple, "null": "null"}.get(shape.get("type", ""), "unknown")


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
