"""What agents let people set: modes, the older models, and config options (guide section 3.5)."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.wire.acp import lenient
from acphost.wire.base import AcpStruct

#: What a config option can be set to.
Value = str | bool

_LISTED = msgspec.json.Decoder(list[Raw])


class ModeInfo(AcpStruct, frozen=True):
    """A mode on offer."""

    id: str
    name: str = ""
    description: str | None = None


class Modes(AcpStruct, frozen=True):
    """The modes of a session."""

    current_mode_id: str | None = None
    available_modes: list[ModeInfo] = []


class ModelInfo(AcpStruct, frozen=True):
    """A model on offer, told the older way."""

    model_id: str
    name: str = ""
    description: str | None = None


class Models(AcpStruct, frozen=True):
    """The older way to tell models, still in use."""

    current_model_id: str | None = None
    available_models: list[ModelInfo] = []


class OptionValue(AcpStruct, frozen=True):
    """A value on offer; `group` is the name of the group it was listed in."""

    value: str
    name: str = ""
    description: str | None = None
    group: str | None = None


class ConfigOption(AcpStruct, frozen=True):
    """A setting of a type this host knows, its groups laid out flat."""

    id: str
    name: str = ""
    description: str | None = None
    category: str | None = None
    type: str = ""
    current_value: Value | None = None
    options: list[OptionValue] = []


class ModeUpdate(AcpStruct, frozen=True):
    """`current_mode_update`; `modeId` is what an official example says (A42)."""

    current_mode_id: str | None = None
    mode_id: str | None = None


class ConfigOptions(AcpStruct, frozen=True):
    """What carries a complete list of config options: an update, or the answer to a change."""

    config_options: Raw | UnsetType = UNSET


class _Option(AcpStruct, frozen=True):
    id: str
    type: str
    name: str = ""
    description: str | None = None
    category: str | None = None
    current_value: Value | None = None
    options: Raw | UnsetType = UNSET


class _Group(AcpStruct, frozen=True):
    options: list[OptionValue]
    group: str = ""
    name: str = ""


def read_options(raw: Raw | UnsetType) -> list[ConfigOption] | None:
    """A list of config options; one that cannot be read, or is of an unknown type, is left out.

    None where there is no list.
    """
    try:
        listed = _LISTED.decode(raw if isinstance(raw, Raw) else b"null")
    except msgspec.DecodeError:
        return None
    found = (_read_option(each) for each in listed)
    return [option for option in found if option is not None]


def _read_option(raw: Raw) -> ConfigOption | None:
    try:
        said = lenient(_Option, raw)
    except msgspec.DecodeError:
        return None
    fits = {"select": str, "boolean": bool}.get(said.type)
    if fits is None or not said.id:
        return None
    return ConfigOption(
        id=said.id,
        name=said.name,
        description=said.description,
        category=said.category,
        type=said.type,
        current_value=said.current_value if isinstance(said.current_value, fits) else None,
        options=_read_values(said.options),
    )


def _read_values(raw: Raw | UnsetType) -> list[OptionValue]:
    values: list[OptionValue] = []
    try:
        listed = _LISTED.decode(raw if isinstance(raw, Raw) else b"[]")
    except msgspec.DecodeError:
        return values
    for each in listed:
        try:
            values.append(lenient(OptionValue, each))
        except msgspec.DecodeError:
            values += _read_group(each)
    return values


def _read_group(raw: Raw) -> list[OptionValue]:
    try:
        group = lenient(_Group, raw)
    except msgspec.DecodeError:
        return []
    name = group.name or group.group
    return [msgspec.structs.replace(value, group=name) for value in group.options]
