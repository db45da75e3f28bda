"""Filled-in forms."""

import json
from typing import Any

import pytest
from msgspec import Raw

from acphost.errors import InvalidParamsError
from acphost.session.forms import Form, fill, read_form

FIELDS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    "mail": {"type": "string", "format": "email"},
    "home": {"type": "string", "format": "uri"},
    "day": {"type": "string", "format": "date"},
    "at": {"type": "string", "format": "date-time"},
    "colour": {"type": "string", "enum": ["red", "blue"]},
    "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l"}]},
    "age": {"type": "integer", "minimum": 0, "maximum": 130},
    "share": {"type": "number", "minimum": 0.5},
    "sure": {"type": "boolean"},
    "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}},
    "kinds": {"type": "array", "items": {"anyOf": [{"const": "x"}, {"const": "y"}]}},
    "strange": {"type": "hologram"},
}


def form(*required: str, **more: object) -> Form:
    schema = {"type": "object", "properties": {**FIELDS, **more}, "required": list(required)}
    return read_form(json.dumps(schema).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "abc"), ("mail", "a@b.c"), ("home", "https://x.y/z"), ("day", "2026-11-30"),
        ("at", "2026-11-30T12:00:00Z"), ("at", "2026-11-30t12:00:00.5+01:00"), ("colour", "red"),
        ("size", "l"), ("age", 0), ("age", 7.0), ("share", 0.5), ("share", 3), ("sure", False),
        ("tags", ["a", "b"]), ("kinds", []), ("kinds", ["y"]), ("strange", {"any": "thing"}),
    ],
)  # fmt: skip
def test_what_fits_goes_through_as_it_is(name: str, value: object) -> None:
    assert fill(form(), {name: value}) == {name: value}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("name", "a", "at least 2"), ("name", "abcdef", "at most 5"), ("name", "AB", "fits"),
        ("name", 5, "a text"), ("name", None, "a text"), ("mail", "nobody", "e-mail"),
        ("home", "not there", "address"), ("home", "http://[", "address"),
        ("day", "30.11.2026", "a date"),
        ("day", "20261130", "a date"), ("at", "noon", "a moment"), ("colour", "green", "red, blue"),
        ("size", "m", "s, l"), ("age", -1, "at least 0"), ("age", 131, "at most 130"),
        ("age", 1.5, "whole"), ("age", True, "a number"), ("share", "1", "a number"),
        ("sure", "yes", "true or false"), ("tags", [], "at least 1"),
        ("tags", ["a", "b", "c"], "at most 2"),
        ("tags", ["d"], "some of a, b, c"), ("tags", "a", "a list"),
        ("kinds", ["z"], "some of x, y"),
        ("nothing", 1, "no such field"),
    ],
)  # fmt: skip
def test_what_does_not_is_refused_with_its_place(name: str, value: object, expected: str) -> None:
    with pytest.raises(InvalidParamsError, match=expected) as caught:
        fill(form(), {name: value})
    assert f"$.content.{name}" in str(caught.value)


def test_what_is_required_may_have_a_default() -> None:
    with pytest.raises(InvalidParamsError, match=r"expected a value - at `\$.content.name`"):
        fill(form("name"), {})
    given = form("lang", lang={"type": "string", "default": "en"})
    assert fill(given, {}) == {"lang": "en"}


def test_a_schema_that_is_none_is_refused_and_an_odd_field_takes_anything() -> None:
    with pytest.raises(InvalidParamsError, match="requestedSchema"):
        read_form(Raw(b"[]"))
    odd = form(odd={"type": "string", "minLength": "two"}, older=5)
    assert fill(odd, {"odd": "", "older": [1]}) == {"odd": "", "older": [1]}


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "a*a*a*a*b", "(?=x)", "a?" * 30 + "a" * 30, "[", "(x{9}){9}"]
)
def test_a_pattern_that_could_run_away_is_left_to_the_agent(pattern: str) -> None:
    given = form(text={"type": "string", "pattern": pattern})
    assert fill(given, {"text": "a" * 40 + "!"}) == {"text": "a" * 40 + "!"}
