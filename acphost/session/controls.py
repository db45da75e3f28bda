"""What a session's agent lets people set, what is set now, and what a person chose. Pure.

Config options go before modes and the older models (guide A44), yet an agent that has options but
none for its mode is still asked by `session/set_mode`. Choices are kept under `mode`, `model` and
the ids of options, so that they hold for whatever the agent offers the next time.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw

from acphost.errors import InvalidParamsError
from acphost.session.keepsakes import keep, kept
from acphost.wire.acp import S, SessionOpened, lenient
from acphost.wire.acp_controls import (
    ConfigOption,
    ConfigOptions,
    Models,
    Modes,
    ModeUpdate,
    Value,
    read_options,
)
from acphost.wire.base import HostRecord
from acphost.wire.controls import Control, ControlChoice

MODE, MODEL = "mode", "model"
#: Lists of values beyond this many bytes are known only as long as the daemon runs.
MAX_KEPT = 32 * 1024

_WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


class Offered(HostRecord, frozen=True, omit_defaults=True):
    """What the agent said last of what it lets people set."""

    #: An agent has opened a session: what is not here is not on offer.
    is_told: bool = False
    modes: Modes | None = None
    models: Models | None = None
    config_options: list[ConfigOption] | None = None

    def without_values(self) -> "Offered":
        """The same with what is set now, and nothing of what could be."""
        return Offered(
            is_told=self.is_told,
            modes=self.modes and Modes(current_mode_id=self.modes.current_mode_id),
            models=self.models and Models(current_model_id=self.models.current_model_id),
            config_options=self.config_options
            and [msgspec.structs.replace(option, options=[]) for option in self.config_options],
        )


class Kept(HostRecord, frozen=True, omit_defaults=True):
    """The member `controls` of a session's stored settings."""

    chosen: dict[str, Value] = msgspec.field(default_factory=dict)
    offered: Offered = Offered()


class Change(NamedTuple):
    """One setting on its way to the agent."""

    key: str
    value: Value
    method: str
    params: dict[str, object]


class Controls:
    """The settings of one session."""

    def __init__(self, kept: Kept) -> None:
        self.chosen: dict[str, Value] = dict(kept.chosen)
        self.offered = kept.offered

    # -- what there is ----------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether an agent has told what it offers."""
        return self.offered.is_told

    @property
    def mode(self) -> str | None:
        """The mode that is set now."""
        return self._word(MODE)

    @property
    def model(self) -> str | None:
        """The model that is set now."""
        return self._word(MODEL)

    def _word(self, key: str) -> str | None:
        control = self.control(key)
        return control.value if control is not None and isinstance(control.value, str) else None

    def all(self) -> Iterator[Control]:
        """Everything that can be set, in the agent's order."""
        keys = [self.key_of(option) for option in self.offered.config_options or ()]
        for key in (*keys, *({MODE, MODEL} - set(keys))):
            control = self.control(key)
            if control is not None:
                yield control

    def control(self, key: str) -> Control | None:
        """One of them, by `mode`, `model` or the id of an option."""
        option = self._option(key)
        if option is not None:
            own = self.key_of(option)
            return Control(
                key=own,
                kind=option.type,
                name=option.name or own,
                description=option.description,
                category=option.category,
                value=option.current_value,
                chosen=self.chosen.get(own),
                choices=[
                    ControlChoice(
                        value=each.value,
                        name=each.name or each.value,
                        description=each.description,
                        group=each.group,
                    )
                    for each in option.options
                ],
            )
        modes, models = self.offered.modes, self.offered.models
        if key == MODE and modes is not None:
            infos = [(each.id, each.name, each.description) for each in modes.available_modes]
            return self._plain(MODE, "Mode", modes.current_mode_id, infos)
        if key == MODEL and models is not None:
            infos = [(each.model_id, each.name, each.description)
                     for each in models.available_models]  # fmt: skip
            return self._plain(MODEL, "Model", models.current_model_id, infos)
        return None

    def _plain(
        self, key: str, name: str, value: str | None, infos: list[tuple[str, str, str | None]]
    ) -> Control:
        choices = [
            ControlChoice(value=each, name=title or each, description=description, group=None)
            for each, title, description in infos
        ]
        return Control(
            key=key, kind="select", name=name, description=None, category=key, value=value,
            chosen=self.chosen.get(key), choices=choices,
        )  # fmt: skip

    def _option(self, key: str) -> ConfigOption | None:
        options = self.offered.config_options or ()
        if key in (MODE, MODEL):
            for option in options:
                if option.category == key:
                    return option
        return next((option for option in options if option.id == key), None)

    def key_of(self, option: ConfigOption) -> str:
        """What an option is called here: the one that holds the mode is `mode`."""
        for key in (MODE, MODEL):
            if self._option(key) is option:
                return key
        return option.id

    # -- what the agent says ----------------------------------------------------------------------

    def take_opened(self, result: Raw, *, is_new: bool) -> None:
        """The answer to new, load or resume.

        A session that was opened again without a word on its settings still has them, but nobody
        knows what they are at.
        """
        try:
            opened = lenient(SessionOpened, result)
        except msgspec.DecodeError:
            opened = SessionOpened()
        said = Offered(
            is_told=True,
            modes=_read(Modes, opened.modes),
            models=_read(Models, opened.models),
            config_options=read_options(opened.config_options),
        )
        if not is_new:
            said = _completed(said, self.offered)
        self.offered = said

    def take_options(self, update: Raw) -> bool:
        """A complete list of config options; False if there is none in it."""
        try:
            options = read_options(lenient(ConfigOptions, update).config_options)
        except msgspec.DecodeError:
            options = None
        if options is None:
            return False
        self.offered = msgspec.structs.replace(self.offered, config_options=options)
        return True

    def take_mode(self, update: Raw) -> str | None:
        """The agent changed its mode by itself, or as it was asked to; returns that mode."""
        try:
            said = lenient(ModeUpdate, update)
        except msgspec.DecodeError:
            return None
        mode_id = said.current_mode_id or said.mode_id
        if mode_id is not None:
            self._set_mode(mode_id)
        return mode_id

    def _set_mode(self, mode_id: str) -> None:
        modes = msgspec.structs.replace(self.offered.modes or Modes(), current_mode_id=mode_id)
        self.offered = msgspec.structs.replace(self.offered, modes=modes)
        option = self._option(MODE)
        if option is not None and mode_id in [each.value for each in option.options]:
            self._set_option(option.id, mode_id)

    def _set_option(self, option_id: str, value: Value) -> None:
        options = [
            msgspec.structs.replace(each, current_value=value) if each.id == option_id else each
            for each in self.offered.config_options or ()
        ]
        self.offered = msgspec.structs.replace(self.offered, config_options=options)

    # -- what a person wants ----------------------------------------------------------------------

    def check(self, key: str, value: Value, where: str) -> tuple[str, Value]:
        """The key and value as they are kept. Raises InvalidParamsError with what is on offer.

        Before any agent has told what it offers, everything may turn out to be right.
        """
        control = self.control(key)
        if control is None:
            if not self.is_known:
                return key, value
            there = ", ".join(each.key for each in self.all()) or "nothing"
            raise InvalidParamsError(f"the agent offers: {there} - at `{where}`")
        if control.kind == "boolean":
            value = _WORDS.get(value, value) if isinstance(value, str) else value
            if not isinstance(value, bool):
                raise InvalidParamsError(f"expected true or false - at `{where}`")
            return control.key, value
        offered = [choice.value for choice in control.choices]
        if not isinstance(value, str) or (offered and value not in offered):
            raise InvalidParamsError(
                f"{value!r} is not on offer; there are: {', '.join(offered)} - at `{where}`",
                offered=offered,
            )
        return control.key, value

    def request(self, key: str, value: Value, acp_session_id: str) -> Change:
        """How the agent is told. Raises InvalidParamsError for what it does not offer."""
        key, value = self.check(key, value, f"$.{key}")
        scope: dict[str, object] = {"sessionId": acp_session_id}
        option = self._option(key)
        if option is None:
            if key == MODE:
                return Change(key, value, "session/set_mode", {**scope, "modeId": value})
            return Change(key, value, "session/set_model", {**scope, "modelId": value})
        scope["configId"] = option.id
        if option.type == "boolean":
            scope["type"] = "boolean"
        return Change(key, value, "session/set_config_option", {**scope, "value": value})

    def to_restore(self) -> list[str]:
        """The choices that are not what is set now; the model first, other settings hang on it."""
        order = sorted(self.chosen, key=lambda key: (key != MODEL, key == MODE))
        return [key for key in order if self._is_at(key) != self.chosen[key]]

    def _is_at(self, key: str) -> Value | None:
        control = self.control(key)
        return None if control is None else control.value

    def took(self, change: Change, result: Raw) -> None:
        """The agent took a change; its list of options, where it gave one, is the truth."""
        if change.method == "session/set_config_option":
            if not self.take_options(result):
                self._set_option(str(change.params["configId"]), change.value)
        elif not isinstance(change.value, str):
            return
        elif change.method == "session/set_model":
            models = msgspec.structs.replace(
                self.offered.models or Models(), current_model_id=change.value
            )
            self.offered = msgspec.structs.replace(self.offered, models=models)
        else:
            self._set_mode(change.value)

    # -- what is kept -----------------------------------------------------------------------------

    def kept(self) -> Kept:
        """What the store keeps; lists that are too long are left to the agent."""
        kept = Kept(chosen=self.chosen, offered=self.offered)
        if len(msgspec.json.encode(kept)) > MAX_KEPT:
            kept = Kept(chosen=self.chosen, offered=self.offered.without_values())
        return kept


def _completed(said: Offered, before: Offered) -> Offered:
    """What was offered before stands where nothing is said of it, but not what it was set to."""
    modes, models, options = said.modes, said.models, said.config_options
    if modes is None and before.modes is not None:
        modes = msgspec.structs.replace(before.modes, current_mode_id=None)
    if models is None and before.models is not None:
        models = msgspec.structs.replace(before.models, current_model_id=None)
    if options is None and before.config_options is not None:
        options = [
            msgspec.structs.replace(option, current_value=None) for option in before.config_options
        ]
    return Offered(is_told=True, modes=modes, models=models, config_options=options)


def _read(kind: type[S], raw: object) -> S | None:
    if not isinstance(raw, Raw) or bytes(raw) == b"null":
        return None
    try:
        return lenient(kind, raw)
    except msgspec.DecodeError:
        return None


def read_kept(settings: bytes) -> Kept:
    """The part of a session's stored settings that is about its agent."""
    return kept(settings, "controls", Kept) or Kept()


def write_kept(settings: bytes, value: Kept) -> bytes:
    """The stored settings with that part exchanged."""
    return keep(settings, "controls", value)
