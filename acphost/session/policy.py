"""Rules that answer permission requests: the first that fits decides, otherwise a person does.

In doubt a rule that allows does not fit, and one that rejects has a person asked.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from acphost.wire.policy import PermissionSubject, PolicyRule, Verdict

Resolve = Callable[[str], str]

#: What makes a shell read more than one command, or another one, out of a line; inside of quotes
#: too, since whoever runs it may have its own idea of quoting.
_BREAKS = re.compile(r"[\x00\n\r]")
_SHELL = re.compile(r"[;&|<>()$`\\\x00\n\r]")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_SHELL_WORD = re.compile(r"\A-[a-z]*c[a-z]*\Z")


class Decided(NamedTuple):
    """What the rules say, and which of them; no rule: ask a person."""

    answer: Verdict
    rule: PolicyRule | None = None


def decide(
    subject: PermissionSubject,
    rules: Iterable[PolicyRule],
    *,
    resolve: Resolve = os.path.realpath,
) -> Decided:
    """The answer of the first rule that fits. A choice between several ways is never a rule's."""
    if subject.is_yes_or_no:
        for rule in rules:
            if _fits(subject, rule, resolve):
                is_in_doubt = bool(rule.paths) and subject.has_unknown_paths
                return Decided("ask" if is_in_doubt else rule.answer, rule)
    return Decided("ask")


def _fits(subject: PermissionSubject, rule: PolicyRule, resolve: Resolve) -> bool:
    allows = rule.answer == "allow_once"
    return (
        (not rule.agents or subject.agent_id in rule.agents)
        and (not rule.kinds or subject.kind in rule.kinds)
        and (not rule.tools or subject.tool in rule.tools)
        and (not rule.paths or _paths_fit(subject, rule, resolve, allows=allows))
        and (not rule.commands or _command_fits(subject, rule, allows=allows))
    )


# -- paths -----------------------------------------------------------------------------------------


def _paths_fit(
    subject: PermissionSubject, rule: PolicyRule, resolve: Resolve, *, allows: bool
) -> bool:
    """All paths must lie there to allow, any of them is enough for the others."""
    if subject.has_unknown_paths:
        return not allows  # `decide` has a person asked
    is_open_ended = subject.command is not None or subject.kind == "execute"
    if allows and is_open_ended and not rule.commands:
        # Where a command reaches is not told by the paths beside it.
        return False
    places = [resolve(place) for path in rule.paths for place in _places(path, subject.roots)]
    within = [any(_is_below(path, place) for place in places) for path in subject.paths]
    return bool(within) and (all(within) if allows else any(within))


def _places(path: str, roots: Sequence[str]) -> list[str]:
    """Where a path of a rule is: it may be one place below each root."""
    path = os.path.expanduser(path)  # noqa: PTH111  text in, text out
    if path.startswith("/"):
        return [path]
    return [f"{root}/{path}" for root in roots]


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")


# -- commands --------------------------------------------------------------------------------------


def _command_fits(subject: PermissionSubject, rule: PolicyRule, *, allows: bool) -> bool:
    if subject.command is None:
        return False
    prefixes = [words for text in rule.commands if (words := _words(text))]
    if allows:
        # What is granted beside the command, such as a folder to write in, is not the rule's.
        is_modest = bool(rule.paths) or all(
            any(_is_below(path, root) for root in subject.roots) for path in subject.paths
        )
        argv = plain_argv(subject.command)
        return is_modest and argv is not None and _begins(argv, prefixes)
    return any(_begins(argv, prefixes) for argv in _possible_argvs(subject.command))


def _begins(argv: Sequence[str], prefixes: list[list[str]]) -> bool:
    return any(list(argv[: len(words)]) == words for words in prefixes)


def plain_argv(command: str) -> list[str] | None:
    """The words of a line that is one command and nothing else; None for any other line."""
    line = command.strip()
    argv = _words(line)
    if argv is None or _BREAKS.search(line):
        return None
    inner = _shell_line(argv)
    if inner is not None:
        return plain_argv(inner)
    return None if _SHELL.search(line) else argv


def _shell_line(argv: Sequence[str] | None) -> str | None:
    """What a shell was given to run: `bash -lc "git status"` is `git status`."""
    if argv is None or len(argv) != 3:
        return None
    name = argv[0].rpartition("/")[2]
    return argv[2] if name in _SHELLS and _SHELL_WORD.match(argv[1]) else None


def _possible_argvs(command: str) -> list[list[str]]:
    """All that could be a command in a line, quoted or not: to refuse, not to allow."""
    argvs = [piece.replace('"', " ").replace("'", " ").split() for piece in _SHELL.split(command)]
    whole = _words(command)
    inner = _shell_line(whole)
    if inner is not None:
        argvs += _possible_argvs(inner)
    return argvs if whole is None else [*argvs, whole]


def _words(text: str) -> list[str] | None:
    try:
        return shlex.split(text)
    except ValueError:  # quotes that do not end
        return None
