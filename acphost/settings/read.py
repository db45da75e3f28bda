"""Reads configuration files, and refuses them with every mistake that can be found at once."""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from acphost.errors import ConfigError
from acphost.settings.check import Finding, Mistake, check, dotted
from acphost.settings.lines import KeyPath, key_lines
from acphost.settings.model import AgentsFile, ConfigFile, Table
from acphost.settings.places import MAIN_FILE, main_and_agent_files

#: The keys of the main file that say where the daemon lives.
_LIFE = frozenset({"socket", "state_dir"})
_SYNTAX_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


class Document(NamedTuple):
    """One file that was read: its content, and where each key of it stands."""

    file: str
    table: dict[str, object]
    lines: Mapping[KeyPath, int]

    def placed(self, finding: Finding) -> Mistake:
        """A finding with this file, and the line of its key or of what is closest around it."""
        key = finding.key
        while key and key not in self.lines:
            key = key[:-1]
        return Mistake(self.file, finding.key, finding.text, self.lines.get(key))


def read_files(place: Path, *, without: Collection[str] = ()) -> list[Document]:
    """The configuration files at `place`, in the order in which they count.

    Of a main file in `without` only what says where the daemon lives is read, of others nothing.
    Raises ConfigError unless all that is read is free of mistakes.
    """
    try:
        main, agents = main_and_agent_files(place)
    except OSError as exc:
        refuse([_unreadable(place, exc)])
        raise
    read: list[Document] = []
    mistakes: list[Mistake] = []
    for path in main + agents:
        if str(path) in without:
            read += [_salvaged(path)] if path in main else []
            continue
        document = _read(path)
        if isinstance(document, Mistake):
            mistakes.append(document)
            continue
        read.append(document)
        found = _findings(document.table, AgentsFile if path in agents else ConfigFile)
        mistakes += map(document.placed, found)
    refuse(mistakes)
    return read


def read_file(path: Path) -> Document:
    """One file that has the shape of a main file. Raises ConfigError."""
    document = _read(path)
    if isinstance(document, Mistake):
        raise refusal([document])
    refuse(map(document.placed, _findings(document.table, ConfigFile)))
    return document


def refuse(found: Iterable[Mistake]) -> None:
    """Raise ConfigError with all mistakes, one to a line, if there are any."""
    mistakes = list(found)
    if mistakes:
        raise refusal(mistakes)


def refusal(mistakes: list[Mistake]) -> ConfigError:
    """The error that tells them."""
    return ConfigError(
        "\n".join(map(str, mistakes)),
        mistakes=[{**mistake._asdict(), "key": dotted(mistake.key)} for mistake in mistakes],
    )


def _findings(table: dict[str, object], shape: type[Table]) -> list[Finding]:
    """What `check` finds; a key of the main file in agents.d is not unknown, but misplaced."""
    misplaced = set(ConfigFile.__struct_fields__) - set(shape.__struct_fields__)
    here = {name: value for name, value in table.items() if name not in misplaced}
    return [
        *(Finding((name,), f"belongs in {MAIN_FILE}") for name in table if name in misplaced),
        *check(here, shape),
    ]


def _read(path: Path) -> Document | Mistake:
    """The file as a table, or why it is none."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        return Mistake(str(path), (), "not UTF-8 text", line)
    except OSError as exc:
        return _unreadable(path, exc)
    try:
        return Document(str(path), tomllib.loads(text), key_lines(text))
    except tomllib.TOMLDecodeError as exc:
        return _syntax_mistake(path, text, str(exc))
    except RecursionError:
        return Mistake(str(path), (), "not valid TOML: nested too deeply")


def _salvaged(path: Path) -> Document:
    """Where the daemon lives, as far as a main file with a mistake elsewhere still tells.

    Without it a daemon would start on another store, and its clients would look for it elsewhere.
    Raises ConfigError if the file cannot be read at all.
    """
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as exc:
        refuse([_unreadable(path, exc)])
        raise
    table: dict[str, object] = {}
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            break
        try:
            found = tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            continue
        table |= {name: found[name] for name in _LIFE & found.keys()}
    wrong = {finding.key[0] for finding in check(table, ConfigFile)}
    return Document(str(path), {k: v for k, v in table.items() if k not in wrong}, {})


def _unreadable(path: Path, exc: OSError) -> Mistake:
    return Mistake(str(exc.filename or path), (), f"cannot be read: {exc.strerror}")


def _syntax_mistake(path: Path, text: str, message: str) -> Mistake:
    """tomllib writes the place into its message; take it out and put it in front."""
    reason = f"not valid TOML: {_SYNTAX_PLACE.sub('', message)}"
    found = _SYNTAX_PLACE.search(message)
    if found and found.group(1):
        return Mistake(str(path), (), reason, int(found.group(1)), int(found.group(2)))
    last = text.rstrip().count("\n") + 1
    return Mistake(str(path), (), f"{reason}; the file ends too early", last)
