"""Filled-in forms held against what the agent asked for (guide section 4, A60). Pure.

Field types this host does not know are passed on as they are. Patterns are tried only where they
cannot run away: they come from an agent, and the daemon has other work.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from acphost.errors import InvalidParamsError

Content = dict[str, object]

#: Longer values are not held against a pattern.
MAX_MATCHED = 1000
_QUANTIFIED_GROUP = re.compile(r"\)[*+?{]")
_REPEATS = re.compile(r"(?<!\\)[*+{]")


class Field(msgspec.Struct, frozen=True, rename="camel"):
    """One field of a form, as far as a value can be wrong for it."""

    type: str = ""
    title: str | None = None
    description: str | None = None
    default: object = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_items: int | None = None
    max_items: int | None = None
    enum: list[object] | None = None
    one_of: list[dict[str, object]] | None = None
    any_of: list[dict[str, object]] | None = None
    items: "Field | None" = None

    @property
    def choices(self) -> list[object] | None:
        """The values on offer, where it is a choice."""
        if self.enum is not None:
            return self.enum
        titled = self.one_of if self.one_of is not None else self.any_of
        return None if titled is None else [each.get("const") for each in titled]


class Form(msgspec.Struct, frozen=True):
    """A form: flat, its fields by name."""

    properties: dict[str, Raw] = {}
    required: list[str] | None = None

    def fields(self) -> dict[str, Field]:
        """Its fields; one that cannot be read takes anything."""
        return {name: _field(raw) for name, raw in self.properties.items()}


def read_form(schema: bytes | Raw) -> Form:
    """What an agent asks for. Raises InvalidParamsError where it is no form."""
    try:
        return msgspec.json.decode(schema, type=Form)
    except msgspec.DecodeError as exc:
        raise InvalidParamsError(f"{exc} - in `$.requestedSchema`") from exc


def fill(form: Form, content: Mapping[str, object]) -> Content:
    """The content as it goes to the agent. Raises InvalidParamsError with the path of a mistake."""
    fields = form.fields()
    for name in content:
        if name not in fields:
            there = ", ".join(fields) or "none"
            raise InvalidParamsError(f"no such field; there are: {there} - at `$.content.{name}`")
    filled: Content = {}
    for name, field in fields.items():
        if name in content:
            _check(field, content[name], f"$.content.{name}")
            filled[name] = content[name]
        elif name in (form.required or ()):
            if field.default is None:
                raise InvalidParamsError(f"expected a value - at `$.content.{name}`")
            filled[name] = field.default
    return filled


def _field(raw: Raw) -> Field:
    try:
        return msgspec.json.decode(raw, type=Field)
    except msgspec.DecodeError:
        return Field()


def _check(field: Field, value: object, where: str) -> None:
    for wrong in _faults(field, value):
        raise InvalidParamsError(f"{wrong} - at `{where}`")


def _faults(field: Field, value: object) -> Iterator[str]:
    """What is wrong with a value, the worst first."""
    check = _CHECKS.get(field.type)
    if check is None:
        return
    yield from check(field, value)
    choices = field.choices
    if choices is not None and value not in choices:
        yield f"expected one of {', '.join(map(str, choices))}"


def _text(field: Field, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield "expected a text"
        return
    if field.min_length is not None and len(value) < field.min_length:
        yield f"expected at least {field.min_length} characters"
    if field.max_length is not None and len(value) > field.max_length:
        yield f"expected at most {field.max_length} characters"
    if not _has_format(field.format, value):
        yield f"expected {_FORMATS[field.format or ''][0]}"
    if field.pattern is not None and not _matches(field.pattern, value):
        yield f"expected a text that fits {field.pattern!r}"


def _number(field: Field, value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield "expected a number"
        return
    if field.type == "integer" and not (isinstance(value, int) or value.is_integer()):
        yield "expected a whole number"
    if field.minimum is not None and value < field.minimum:
        yield f"expected at least {field.minimum:g}"
    if field.maximum is not None and value > field.maximum:
        yield f"expected at most {field.maximum:g}"


def _switch(field: Field, value: object) -> Iterator[str]:
    if not isinstance(value, bool):
        yield "expected true or false"


def _several(field: Field, value: object) -> Iterator[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        yield "expected a list of texts"
        return
    if field.min_items is not None and len(value) < field.min_items:
        yield f"expected at least {field.min_items}"
    if field.max_items is not None and len(value) > field.max_items:
        yield f"expected at most {field.max_items}"
    offered = field.items.choices if field.items is not None else None
    if offered is not None and not set(value) <= {str(each) for each in offered}:
        yield f"expected some of {', '.join(map(str, offered))}"


_CHECKS: dict[str, Callable[[Field, object], Iterator[str]]] = {
    "string": _text,
    "number": _number,
    "integer": _number,
    "boolean": _switch,
    "array": _several,
}


def _is_email(value: str) -> bool:
    name, at, host = value.rpartition("@")
    return bool(name and at and host) and " " not in value


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and " " not in value


def _is_date(value: str) -> bool:
    try:
        return len(value) == len("2026-11-30") and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _is_moment(value: str) -> bool:
    try:
        return "T" in value.upper() and bool(datetime.fromisoformat(value.upper()))
    except ValueError:
        return False


_FORMATS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "email": ("an e-mail address", _is_email),
    "uri": ("an address such as https://example.org", _is_uri),
    "date": ("a date such as 2026-11-30", _is_date),
    "date-time": ("a moment such as 2026-11-30T12:00:00Z", _is_moment),
}


def _has_format(name: str | None, value: str) -> bool:
    known = _FORMATS.get(name or "")
    return known is None or known[1](value)


def _matches(pattern: str, value: str) -> bool:
    """Whether a value fits; where that cannot be told safely, the agent may find out."""
    is_plain = not _QUANTIFIED_GROUP.search(pattern) and "(?" not in pattern
    repeats = len(_REPEATS.findall(pattern)) + pattern.count("?") // 4
    if not is_plain or repeats > 2 or len(value) > MAX_MATCHED:
        return True
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True
