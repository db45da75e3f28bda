"""The settings the daemon runs by: what they were read from, and what is wrong with the files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from acphost.errors import ConfigError
from acphost.ids import epoch_ms
from acphost.settings.check import dotted
from acphost.settings.load import config_place, load_sound_settings, mistakes_of
from acphost.settings.model import Settings
from acphost.settings.places import main_and_agent_files
from acphost.settings.runtimes import own_runtime_files
from acphost.wire.base import timestamp

#: Keys that only count at the start.
_AT_START = ("socket", "state_dir")
#: Not configured, but where it is.
_ABOUT = frozenset({"folder", "read_from"})


#: Content of each file, or why it has none.
Snapshot = Mapping[str, bytes]


class Change(NamedTuple):
    """What a new configuration does otherwise, by key; never by value, which may be a secret."""

    keys: list[str]
    #: Agents that were added, removed, or are configured otherwise.
    agents: list[str]
    needs_restart: list[str]


class Configuration:
    """The last good settings, and the problem that the files have now, if they have one.

    A start with a mistake in a file goes on without that file: the daemon answers and tells what
    is wrong, instead of being absent.
    """

    def __init__(self, flags: Mapping[str, object], environ: Mapping[str, str]) -> None:
        """Raises ConfigError where there is nothing to start with."""
        self.flags = flags
        self.environ = environ
        self.place: Path = config_place(flags, environ)
        seen = snapshot_of(self.place)
        loaded = load_sound_settings(flags=flags, environ=environ)
        self._at_start = self.settings = loaded.settings
        self.loaded_at = epoch_ms()
        self.mistakes: list[dict[str, object]] = []
        self.problem: str | None = None
        #: The files as they were, if all of them were good.
        self.good: Snapshot | None = None if loaded.problem else seen
        if loaded.problem is not None:
            self.reject(loaded.problem)

    def reject(self, error: ConfigError) -> None:
        """Keep what there is; the files have mistakes."""
        self.problem, self.mistakes = str(error), mistakes_of(error)

    def accept(self, settings: Settings) -> Change:
        """Run by these from now on."""
        change = Change(
            keys=changed_keys(self.settings, settings),
            agents=sorted(
                agent_id
                for agent_id in self.settings.agents.keys() | settings.agents.keys()
                if self.settings.agents.get(agent_id) != settings.agents.get(agent_id)
            ),
            needs_restart=[
                name
                for name in _AT_START
                if getattr(settings, name) != getattr(self._at_start, name)
            ],
        )
        self.settings = settings
        self.problem, self.mistakes = None, []
        return change

    def view(self) -> dict[str, object]:
        """As `host/stats` tells it."""
        return {
            "files": self.settings.read_from,
            "loadedAt": timestamp(self.loaded_at),
            "problem": self.problem,
            "mistakes": self.mistakes,
        }


def snapshot_of(place: Path) -> Snapshot:
    """What the files of a configuration hold now."""
    try:
        mains, agents = main_and_agent_files(place)
    except OSError as exc:
        return {str(place): _unreadable(exc)}
    found: dict[str, bytes] = {}
    for path in [*mains, *agents, *own_runtime_files(place)]:
        try:
            found[str(path)] = path.read_bytes().strip()
        except OSError as exc:
            found[str(path)] = _unreadable(exc)
    return found


def _unreadable(exc: OSError) -> bytes:
    """In place of a content; no file that can be read looks like it."""
    return f"\0{exc.strerror}".encode()


def changed_keys(old: Settings, new: Settings) -> list[str]:
    """The keys whose values differ, as they are written in the files."""
    before, after = (_table(settings) for settings in (old, new))
    return sorted(dotted(key) for key in _differing(before, after, ()))


def _table(settings: Settings) -> dict[str, object]:
    table: dict[str, object] = msgspec.to_builtins(settings)
    return {name: value for name, value in table.items() if name not in _ABOUT}


def _differing(
    old: Mapping[str, object], new: Mapping[str, object], key: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    for name in old.keys() | new.keys():
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _differing(before, after, (*key, name))
        elif before != after:
            yield (*key, name)
