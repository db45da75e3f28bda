"""JSON Schema of a Struct: what crosses the socket, as the running code encodes and checks it."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

from acphost.schema.comments import field_comments
from acphost.wire.base import HostRecord

#: A JSON Schema, or a part of one.
Schema = dict[str, Any]

_SIMPLE: dict[type, Schema] = {
    types.AnyType: {},
    types.RawType: {},
    types.NoneType: {"type": "null"},
    types.BoolType: {"type": "boolean"},
    types.FloatType: {"type": "number"},
}
#: What is annotated as `object`.
_ANYTHING = types.CustomType(object)
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


class Shapes:
    """The definitions that a schema needs: each Struct and each list of words once, by its name."""

    def __init__(self) -> None:
        self._types: dict[str, type] = {}
        self._definitions: dict[str, Schema] = {}

    @property
    def definitions(self) -> dict[str, Schema]:
        """All that was asked for, and what is inside it, by name."""
        return dict(sorted(self._definitions.items()))

    def of(self, annotation: Any) -> Schema:  # noqa: ANN401  whatever may stand in an annotation
        """The schema of a type; Structs and enums in it become definitions."""
        return self._schema(types.type_info(annotation))

    def _schema(self, info: types.Type) -> Schema:
        if info == _ANYTHING:
            return {}
        if type(info) in _SIMPLE:
            return dict(_SIMPLE[type(info)])
        for kind, build in self._builders():
            if isinstance(info, kind):
                return build(info)
        raise TypeError(f"nothing here says what {info!r} looks like in JSON")

    def _builders(self) -> Iterator[tuple[type, Callable[[Any], Schema]]]:
        yield types.Metadata, self._metadata
        yield types.StrType, lambda _: {"type": "string"}
        yield types.IntType, _integer
        yield types.LiteralType, _literal
        yield types.EnumType, lambda info: self._enum(info.cls)
        yield types.StructType, self._struct
        yield types.UnionType, self._union
        yield types.CollectionType, lambda info: _array(self._schema(info.item_type))
        yield types.DictType, lambda info: _map(self._schema(info.value_type))

    def _metadata(self, info: types.Metadata) -> Schema:
        extra = info.extra or {}
        if "carries" not in extra:
            schema = self._schema(info.type)
        elif isinstance(info.type, types.StructType):
            schema = self._page(info.type, extra["carries"])
        else:
            schema = self.of(extra["carries"])
        return schema | (info.extra_json_schema or {})

    def _page(self, page: types.StructType, kind: type) -> Schema:
        """A list answer whose items are all of one kind is a definition of its own."""
        self._struct(page)
        schema = dict(self._definitions[page.cls.__name__])
        items = {"items": _array(self.of(kind))}
        schema["description"] = f"A list answer with a `{kind.__name__}` each."
        schema["properties"] = schema["properties"] | items
        name = f"{kind.__name__}{page.cls.__name__}"
        self._definitions[name] = schema
        return _reference(name)

    def _union(self, info: types.UnionType) -> Schema:
        return {"anyOf": [self._schema(each) for each in info.types]}

    def _enum(self, cls: type[Any]) -> Schema:
        if self._is_new(cls):
            words = [member.value for member in cls]
            self._definitions[cls.__name__] = _described(cls) | {"enum": words}
        return _reference(cls.__name__)

    def _struct(self, info: types.StructType) -> Schema:
        cls = info.cls
        if self._is_new(cls):
            schema: Schema = _described(cls) | {"type": "object", "properties": {}}
            self._definitions[cls.__name__] = schema
            comments = field_comments(cls)
            for field in info.fields:
                property_ = self._schema(field.type) | _default(field)
                if field.name in comments:
                    property_["description"] = comments[field.name]
                schema["properties"][field.encode_name] = property_
            required = [each.encode_name for each in info.fields if _is_always_there(cls, each)]
            if required:
                schema["required"] = required
            if info.forbid_unknown_fields:
                schema["additionalProperties"] = False
        return _reference(cls.__name__)

    def _is_new(self, cls: type) -> bool:
        """Whether a type has no definition yet. Raises TypeError if another has its name."""
        if self._types.setdefault(cls.__name__, cls) is not cls:
            raise TypeError(f"{cls} and {self._types[cls.__name__]} share a name")
        return cls.__name__ not in self._definitions


def _described(cls: type) -> Schema:
    text = inspect.getdoc(cls)
    return {"description": " ".join(text.split())} if text else {}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _integer(info: types.IntType) -> Schema:
    bounds = {word: getattr(info, name) for name, word in _BOUNDS.items()}
    return {"type": "integer"} | {
        word: value for word, value in bounds.items() if value is not None
    }


def _literal(info: types.LiteralType) -> Schema:
    words = sorted(info.values, key=str) if len(info.values) > 1 else list(info.values)
    return {"const": words[0]} if len(words) == 1 else {"enum": words}


def _default(field: types.Field) -> Schema:
    """What counts where a member is absent; the id of a schema never changes."""
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT or isinstance(value, msgspec.Raw):
        return {}
    if field.name == "schema":
        return {"const": value}
    return {} if value is None else {"default": msgspec.to_builtins(value)}


def _is_always_there(cls: type[msgspec.Struct], field: types.Field) -> bool:
    """What we take may leave out what has a default; what we return has it written."""
    if field.required or not issubclass(cls, HostRecord) or cls.__struct_config__.omit_defaults:
        return field.required
    has_default = field.default is not msgspec.NODEFAULT
    return has_default or field.default_factory is not msgspec.NODEFAULT
