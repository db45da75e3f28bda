"""Params as they are sent: what is at its default stays absent."""

from collections.abc import Mapping

import msgspec

#: What a method may be given: one of `acphost.wire.params`, or the members by their wire names.
Params = msgspec.Struct | Mapping[str, object] | None


def lean(params: Params) -> object:
    """The same params without members that only repeat the default, inner structs too."""
    if params is None:
        return {}
    if not isinstance(params, msgspec.Struct):
        return params
    return {
        field.encode_name: lean(value) if isinstance(value, msgspec.Struct) else value
        for field in msgspec.structs.fields(type(params))
        if (value := getattr(params, field.name)) is not msgspec.UNSET and value != _default(field)
    }


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
