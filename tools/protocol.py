"""Write what is made from the socket's types: page, types for plugins, revision, golden frames.

    python -m tools.protocol [--no-frames]

The frames come from a real daemon, which takes a few seconds. `tests/contract/test_protocol.py`
fails as long as something is not as this would write it.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio

from acphost.cli.schema import render
from acphost.schema.document import document
from tests.support import frames
from tests.support.frame_play import play

Schema = dict[str, Any]

ROOT = Path(__file__).parents[1]
COMMAND = "make protocol"

_REVISION = '''\
"""Written by tools/protocol.py: which state of the socket's schema this program speaks."""

#: Clients may log it; it changes with every change of a method, a member or a word.
SCHEMA_REVISION = "{}"
'''

#: Definitions that only a validator needs.
_FRAMES = frozenset({"Request", "Answer", "Notification", "Question"})


def generated() -> dict[Path, str]:
    """Every file that is made from the types, with what must be in it."""
    schema = document()
    return {
        ROOT / "acphost/wire/revision.py": _revision(schema),
        ROOT / "docs/protocol.md": page(schema),
        ROOT / "editors/vscode/src/protocol.ts": render("ts"),
        ROOT / "editors/nvim/lua/acphost/types.lua": render("lua"),
    }


def _revision(schema: Schema) -> str:
    return _REVISION.format(schema["schemaRevision"])


def page(schema: Schema) -> str:
    """docs/protocol.md."""
    text = (ROOT / "tools/protocol.in.md").read_text()
    parts = {
        "protocolVersion": str(schema["protocolVersion"]),
        "schemaRevision": schema["schemaRevision"],
        "terminalKinds": ", ".join(f"`{kind}`" for kind in schema["terminalKinds"]),
        "errorsOfAnyMethod": ", ".join(f"`{word}`" for word in schema["errorsOfAnyMethod"]),
        "methods": "\n\n".join(_areas(schema)),
        "notifications": "\n\n".join(_spoken(schema, "notifications")),
        "requests": "\n\n".join(_spoken(schema, "requests")),
        "kinds": "\n".join(_kinds(schema)),
        "errors": "\n".join(_errors(schema)),
        "types": "\n\n".join(_types(schema)),
    }
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return text


# -- methods --------------------------------------------------------------------------------------


def _areas(schema: Schema) -> Iterator[str]:
    yield from (_method(schema, name, each) for name, each in schema["methods"].items())


def _method(schema: Schema, name: str, each: Schema) -> str:
    lines = [f"### {name}", "", each["description"]]
    if each["access"] == "admin":
        lines[-1] += " For actors with the role admin."
    params = schema["$defs"][each["params"]["$ref"].rpartition("/")[2]]
    lines += ["", *_members(params), ""]
    lines.append(f"Returns {_shape(each['result'])}.")
    if each["errors"]:
        words = ", ".join(f"`{word}`" for word in each["errors"])
        lines += ["", f"Errors of its own: {words}."]
    return "\n".join(lines)


def _spoken(schema: Schema, table: str) -> Iterator[str]:
    for name, each in schema[table].items():
        lines = [f"### {name}", ""]
        params = schema["$defs"][each["params"]["$ref"].rpartition("/")[2]]
        lines += [params.get("description", ""), "", *_members(params)]
        if "result" in each:
            lines += ["", f"Is answered with {_shape(each['result'])}."]
        yield "\n".join(lines)


def _members(struct: Schema) -> Iterable[str]:
    rows = list(_rows(struct))
    if not rows:
        return ["No params."]
    return ["| member | type | |", "| --- | --- | --- |", *rows]


def _rows(struct: Schema) -> Iterator[str]:
    required = struct.get("required", ())
    for name, shape in struct["properties"].items():
        if name == "_meta":
            continue
        notes = [shape.get("description", "")]
        if name not in required:
            default = shape.get("default")
            notes.insert(
                0, "optional" if default in (None, [], {}) else f"default {_code(default)}"
            )
        note = "; ".join(note for note in notes if note)
        yield f"| `{name}` | {_shape(shape)} | {note} |"


def _shape(shape: Schema) -> str:
    match shape:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"const": value}:
            return _code(value)
        case {"enum": [*words]}:
            return " or ".join(map(_code, words))
        case {"anyOf": [*shapes]}:
            return " or ".join(dict.fromkeys(map(_shape, shapes)))
        case {"type": "array", "items": items}:
            return f"list of {_shape(items)}"
        case {"type": "object", "additionalProperties": dict() as values}:
            return f"object of {_shape(values)}"
        case {"type": str(name)}:
            return name
    return "any JSON"


def _code(value: object) -> str:
    return f"`{json.dumps(value)}`"


# -- words ----------------------------------------------------------------------------------------


def _kinds(schema: Schema) -> Iterator[str]:
    kinds = schema["$defs"]["Kind"]["enum"]
    ends = set(schema["terminalKinds"])
    for area, some in groupby(kinds, key=lambda kind: kind.partition(".")[0]):
        shown = (f"`{kind}`" + (" (ends the run)" if kind in ends else "") for kind in some)
        yield f"- {area}: " + ", ".join(shown)


def _errors(schema: Schema) -> Iterator[str]:
    for each in schema["errors"]:
        later = "yes" if each["retryable"] else "no"
        yield f"| `{each['word']}` | {each['code']} | {later} | {each['description']} |"


def _types(schema: Schema) -> Iterator[str]:
    params = {each["params"]["$ref"].rpartition("/")[2] for each in schema["methods"].values()}
    for name, each in schema["$defs"].items():
        if name in _FRAMES or name in params:
            continue
        lines = [f"### {name}", "", each.get("description", ""), ""]
        if "enum" in each:
            lines.append(", ".join(map(_code, each["enum"])))
        else:
            lines += _members(each)
        yield "\n".join(lines)


def main() -> None:
    """Write all of it."""
    for file, text in generated().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if "--no-frames" not in sys.argv:
        frames.store(anyio.run(play))


if __name__ == "__main__":
    main()
