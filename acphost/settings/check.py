"""Finds every mistake in one file before anything of it counts.

Tables are checked key by key against the shapes in `model`, because only then the key of a mistake
is known: a whole-file conversion reports the type, but hides the names in between.
"""

import difflib
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec import inspect

from acphost.settings.lines import KeyPath

_DASHES = str.maketrans("", "", "-_")


class Mistake(NamedTuple):
    """One thing that is wrong in one file, with where it is as far as that is known."""

    file: str
    key: KeyPath
    text: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = [self.file, *(str(at) for at in (self.line, self.column) if at is not None)]
        return f"{':'.join(where)}: {f'{dotted(self.key)}: ' if self.key else ''}{self.text}"


class Finding(NamedTuple):
    """A mistake before it is known which file and line it belongs to."""

    key: KeyPath
    text: str


def dotted(key: KeyPath) -> str:
    """A key path as it would be written in the file."""
    text = ".".join(part if _is_bare(part) else _quoted(part) for part in key)
    return text.replace(".[", "[")


def check(value: object, wanted: Any, key: KeyPath = ()) -> Iterator[Finding]:  # noqa: ANN401  a type expression
    """Every way in which `value` is not a `wanted`, each with its key path."""
    bare = _bare(wanted)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        yield from _check_struct(value, bare, key)
    elif get_origin(bare) is dict and isinstance(value, dict):
        yield from _check_dict(value, bare, key)
    elif get_origin(bare) is list and isinstance(value, list) and value:
        yield from _check_list(value, bare, key)
    else:
        yield from _check_leaf(value, wanted, key)


def _check_struct(value: object, shape: type[msgspec.Struct], key: KeyPath) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield Finding(key, f"expected a table, got {got(value, key)}")
        return
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
    for name, inner in value.items():
        if name in fields:
            yield from check(inner, fields[name], (*key, name))
        else:
            yield Finding((*key, name), f"unknown key{_hint(name, list(fields))}")


def _check_dict(value: dict[str, object], wanted: Any, key: KeyPath) -> Iterator[Finding]:  # noqa: ANN401  a type expression
    name_type, inner_type = get_args(wanted)
    for name, inner in value.items():
        if not _fits(name, name_type):
            yield Finding((*key, name), f"the name must be {expectation(name_type)}")
        yield from check(inner, inner_type, (*key, name))


def _check_list(value: list[object], wanted: Any, key: KeyPath) -> Iterator[Finding]:  # noqa: ANN401  a type expression
    (item_type,) = get_args(wanted)
    for number, item in enumerate(value):
        place = (*key, f"[{number}]")
        yield from check(item, item_type, place)
        if isinstance(item, dict):
            yield from _check_whole(item, item_type, place)


def _check_whole(item: dict[str, object], shape: Any, key: KeyPath) -> Iterator[Finding]:  # noqa: ANN401  a type expression
    """A table in a list is one file's alone: nothing that it lacks can come from another."""
    for field in msgspec.structs.fields(shape):
        if field.required and field.encode_name not in item:
            yield Finding(key, f'lacks "{field.encode_name}", expected {expectation(field.type)}')


def _check_leaf(value: object, wanted: Any, key: KeyPath) -> Iterator[Finding]:  # noqa: ANN401  a type expression
    # TOML can write `nan`: it is neither above nor below a limit, and differs from itself.
    if value != value or not _fits(value, wanted):
        yield Finding(key, f"expected {expectation(wanted)}, got {got(value, key)}")


def _fits(value: object, wanted: Any) -> bool:  # noqa: ANN401  a type expression
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return False
    return True


def expectation(wanted: Any) -> str:  # noqa: ANN401  a type expression
    """What a value should have been, in words."""
    return _words(inspect.type_info(wanted))


def _words(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata(extra_json_schema={"description": str(text)}):
            return text
        case inspect.Metadata(type=inner):
            return _words(inner)
        case inspect.UnionType(types=types):
            return " or ".join(_words(t) for t in types if not isinstance(t, inspect.NoneType))
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(f'"{value}"' for value in values)
        case inspect.IntType(ge=low, le=high):
            return f"an integer from {low} to {high}"
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType(item_type=inspect.StructType()):
            return "a list of tables"
        case inspect.ListType():
            return "a list of strings"
        case inspect.DictType():
            return "a table"
        case _:
            return "a string"


def got(value: object, key: KeyPath) -> str:
    """What stood there instead. Values under `env` may be secrets: only their type is told."""
    match value:
        case dict():
            return "a table"
        case list():
            return "a list" if value else "an empty list"
        case _ if "env" in key:
            return f"a value of another type ({type(value).__name__})"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value if len(value) <= 60 else f"{value[:60]}…")
        case _:
            return str(value)


def _bare(wanted: Any) -> Any:  # noqa: ANN401  a type expression
    """The type without its constraints and without None, which TOML cannot write."""
    if get_origin(wanted) is Annotated:
        return get_args(wanted)[0]
    if isinstance(wanted, UnionType):
        return next(_bare(part) for part in get_args(wanted) if part is not NoneType)
    return wanted


def _hint(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1, cutoff=0.6)
    if close:
        return f', did you mean "{close[0]}"?'
    return "; known here: " + ", ".join(sorted(known))


def _is_bare(part: str) -> bool:
    return part.startswith("[") or (part.isascii() and part.translate(_DASHES).isalnum())


def _quoted(text: str) -> str:
    """In quotes and on one line, whatever is in it."""
    return msgspec.json.encode(text).decode()
