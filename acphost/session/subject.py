"""What a permission request is about: the tool, the files and the command it names.

Agents put these where they like. What is read here may only ever be too much: a path that is seen
twice harms nobody, one that is overlooked would let a rule allow what it should not.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Raw

from acphost.session.calls import Call
from acphost.wire.acp import ToolReport
from acphost.wire.policy import PermissionSubject

Resolve = Callable[[str], str]

#: Members that name files or folders, as they are spelt without case, dashes and underscores.
_PATH_WORDS = """
    path paths file files filename filenames filepath filepaths abspath absolutepath relpath
    relativepath notebookpath source src destination dest dst from to oldpath newpath target
    targets targetfile directory directories dir dirs folder folders cwd workdir workingdirectory
    additionalwritedirs uri
"""
_PATHS = frozenset(_PATH_WORDS.split())
_COMMANDS = frozenset({"command", "cmd", "commands", "shellcommand", "commandline"})
#: Members that hold a patch as a text, with its files named in it.
_PATCHES = frozenset({"patch", "diff"})
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |(?:---|\+\+\+) (?:[ab]/)?)"
    r"([^\t\n]+)",
    re.MULTILINE,
)
#: Deeper than this, and at more files, nobody looks.
_DEPTH = 6
MAX_PATHS = 200
#: What some program may expand on the way to the file.
_EXPANDED = re.compile(r"[$`\x00\n]|%[A-Za-z_]+%")


@dataclass(slots=True)
class _Found:
    paths: dict[str, None] = field(default_factory=dict)
    commands: dict[str, None] = field(default_factory=dict)
    is_unsure: bool = False


def subject_of(
    asked: ToolReport,
    meant: Call | None,
    *,
    agent_id: str,
    tool: str | None,
    cwd: str,
    roots: list[str],
    is_yes_or_no: bool,
    resolve: Resolve = os.path.realpath,
) -> PermissionSubject:
    """All that a request and the call it means tell about what would be done."""
    found = _Found()
    reports: list[ToolReport | Call] = [asked] if meant is None else [asked, meant]
    if meant is not None and not meant.is_known_whole and not isinstance(asked.raw_input, Raw):
        found.is_unsure = True
    for report in reports:
        for raw in (report.raw_input, report.locations):
            if isinstance(raw, Raw):
                _look(_read(raw), found)
        for path in _diffs(report.content):
            _note_path(path, found)
    real = {_resolved(path, cwd, found, resolve): None for path in found.paths}
    return PermissionSubject(
        agent_id=agent_id,
        tool=tool,
        kind=asked.kind or (meant.kind if meant else None),
        paths=list(real),
        has_unknown_paths=found.is_unsure,
        # Several commands are no line that any rule allows.
        command=" ; ".join(found.commands) or None,
        roots=[resolve(root) for root in roots],
        is_yes_or_no=is_yes_or_no,
    )


def _resolved(path: str, cwd: str, found: _Found, resolve: Resolve) -> str:
    """Where a path leads; as it is, if nobody can tell: then no rule is sure of it."""
    joined = os.path.join(cwd, path)  # noqa: PTH118  text
    try:
        return resolve(joined)
    except (OSError, ValueError):  # what it leads over is being changed, or it is no path at all
        found.is_unsure = True
        return joined


def _read(raw: Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None


def _look(value: object, found: _Found, depth: int = 0) -> None:
    """Take what is named as a path or a command, however deep it stands."""
    if depth > _DEPTH:
        found.is_unsure = True
    elif isinstance(value, list):
        for item in value:
            _look(item, found, depth + 1)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _look_at_member(value, name, inner, found)
            if isinstance(inner, dict | list):
                _look(inner, found, depth + 1)


def _look_at_member(table: dict[str, object], name: str, value: object, found: _Found) -> None:
    word = name.lower().replace("_", "").replace("-", "")
    if word in _PATHS:
        for text in _texts(value):
            _note_path(text, found)
    elif word in _COMMANDS:
        _note_command(table, value, found)
    elif word in _PATCHES and isinstance(value, str):
        _note_patch(value, found)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def _note_path(text: str, found: _Found) -> None:
    try:
        if text.startswith("file:"):
            text = unquote(urlsplit(text).path)
        if text.startswith("~"):
            text = os.path.expanduser(text)  # noqa: PTH111  text in, text out
            found.is_unsure |= text.startswith("~")
    except ValueError:  # half an address, or a name that no user can have
        found.is_unsure = True
        return
    if "://" in text or _EXPANDED.search(text):
        found.is_unsure = True
        return
    if len(found.paths) >= MAX_PATHS:
        found.is_unsure = True
    elif text:
        found.paths[text] = None


def _note_command(table: dict[str, object], value: object, found: _Found) -> None:
    """A line, or a list of words; `args` beside it belong to it."""
    words = list(_texts(table.get("args"))) if isinstance(value, str) else []
    if isinstance(value, str):
        text = value if not words else shlex.join([value, *words])
    else:
        text = shlex.join(_texts(value))
    if text:
        found.commands[text] = None


def _note_patch(text: str, found: _Found) -> None:
    named = [name.strip() for name in _PATCHED.findall(text)]
    found.is_unsure |= not named
    for name in named:
        if name != "/dev/null":
            _note_path(name, found)


def _diffs(content: object) -> Iterator[str]:
    """The files of the diffs that are shown."""
    items = _read(content) if isinstance(content, Raw) else None
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.get("type") == "diff":
            yield str(item.get("path") or "")
