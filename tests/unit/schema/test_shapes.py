"""What a Struct looks like in JSON Schema, and in the languages of plugins."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Raw

from acphost.schema.lua import lua
from acphost.schema.shapes import Shapes
from acphost.schema.typescript import typescript
from acphost.wire.base import HostParams, HostRecord, carries


class Mood(StrEnum):
    """How it is."""

    GOOD = "good"
    BAD = "bad"


class Note(HostRecord, frozen=True):
    """A note."""

    text_length: int
    #: How the writer
    #: felt.
    mood: Annotated[str, carries(Mood)] | None
    schema: str = "note.v1"
    extra: Raw | msgspec.UnsetType = msgspec.UNSET


class NoteParams(HostParams, frozen=True):
    """`note/get`."""

    note_id: str
    limit: int = 5
    order: Literal["up", "down"] | None = None


class Notes(HostRecord, frozen=True):
    """A list."""

    items: list[Raw]


def test_a_result_has_all_its_members_but_those_that_may_be_absent() -> None:
    shapes = Shapes()
    assert shapes.of(Note) == {"$ref": "#/$defs/Note"}
    note = shapes.definitions["Note"]
    assert note["required"] == ["textLength", "mood", "schema"]
    assert note["properties"]["schema"] == {"type": "string", "const": "note.v1"}
    assert note["properties"]["extra"] == {}
    assert note["description"] == "A note."
    assert "additionalProperties" not in note


def test_params_need_what_has_no_default_and_take_nothing_else() -> None:
    shapes = Shapes()
    shapes.of(NoteParams)
    params = shapes.definitions["NoteParams"]
    assert params["required"] == ["noteId"]
    assert params["properties"]["limit"] == {"type": "integer", "default": 5}
    assert params["additionalProperties"] is False


def test_comments_above_a_field_describe_it() -> None:
    shapes = Shapes()
    shapes.of(Note)
    assert shapes.definitions["Note"]["properties"]["mood"] == {
        "anyOf": [{"$ref": "#/$defs/Mood"}, {"type": "null"}],
        "description": "How the writer felt.",
    }
    assert shapes.definitions["Mood"] == {"description": "How it is.", "enum": ["good", "bad"]}


def test_a_page_knows_its_items() -> None:
    shapes = Shapes()
    assert shapes.of(Annotated[Notes, carries(Note)]) == {"$ref": "#/$defs/NoteNotes"}
    items = shapes.definitions["NoteNotes"]["properties"]["items"]
    assert items == {"type": "array", "items": {"$ref": "#/$defs/Note"}}


def test_two_types_of_one_name_are_refused() -> None:
    shapes = Shapes()
    shapes.of(Note)
    with pytest.raises(TypeError, match="share a name"):
        shapes.of(msgspec.defstruct("Note", [("other", int)]))


def test_a_type_that_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(TypeError, match="what"):
        Shapes().of(bytes)


def _document() -> dict[str, object]:
    shapes = Shapes()
    shapes.of(NoteParams)
    result = shapes.of(Annotated[Notes, carries(Note)])
    method = {"description": "Gets it.", "params": shapes.of(NoteParams), "result": result}
    return {
        "schemaRevision": "1-x",
        "protocolVersion": 1,
        "terminalKinds": [],
        "errors": [],
        "methods": {"note/get": method},
        "notifications": {},
        "requests": {},
        "$defs": shapes.definitions,
    }


def test_typescript_says_the_same() -> None:
    text = typescript(_document())
    assert "export interface Note {\n  textLength: number;" in text
    assert "  /** How the writer felt. */\n  mood: Mood | null;" in text
    assert '  schema: "note.v1";\n  extra?: unknown;' in text
    assert '  order?: "down" | "up" | null;' in text
    assert '  "note/get": { params: NoteParams; result: NoteNotes };' in text


def test_lua_says_the_same() -> None:
    text = lua(_document())
    assert "---@class acphost.Note\n---@field textLength integer\n" in text
    assert "---@field mood acphost.Mood|nil How the writer felt." in text
    assert '---| "good"' in text
    assert "---@alias acphost.result.note.get acphost.NoteNotes" in text
