"""The command line as data: what completion scripts and the man page are made from."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

#: What a value is, told by its placeholder.
_FILES = {"FILE", "PATH"}
_FOLDERS = {"DIR"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option, or one positional where it has no flags."""

    flags: list[str]
    help: str
    #: The placeholder of its value; None: it takes none.
    value: str | None = None
    choices: list[str] = field(default_factory=list)
    #: Whether it may be left out.
    is_optional: bool = True

    @property
    def is_file(self) -> bool:
        """Whether its value is a file."""
        return self.value in _FILES

    @property
    def is_folder(self) -> bool:
        """Whether its value is a folder."""
        return self.value in _FOLDERS


@dataclass(frozen=True, slots=True)
class Command:
    """One command, or the program itself."""

    name: str
    summary: str
    epilog: str
    options: list[Option]
    positionals: list[Option]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The program, what all its commands share, and the commands."""

    description: str
    shared: list[Option]
    commands: list[Command]


def catalogue(parser: argparse.ArgumentParser) -> Catalogue:
    """Read a parser."""
    shared = [each for each in _options(parser) if each.flags]
    known = {flag for each in shared for flag in each.flags} - {"--version"}
    commands = []
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  no public name for it
            summaries = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            commands += [
                _command(name, summaries.get(name, ""), inner, known)
                for name, inner in action.choices.items()
            ]
    return Catalogue(parser.description or "", shared, commands)


def _command(name: str, summary: str, parser: argparse.ArgumentParser, known: set[str]) -> Command:
    options = list(_options(parser))
    return Command(
        name,
        summary,
        parser.epilog or "",
        [each for each in options if each.flags and not known & set(each.flags)],
        [each for each in options if not each.flags],
    )


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001  argparse shows its contents nowhere else


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  as above
            continue
        choices = [str(each) for each in action.choices or ()]
        yield Option(
            flags=list(action.option_strings),
            help=action.help or "",
            value=_value(action, choices),
            choices=choices,
            is_optional=bool(action.option_strings) or action.nargs in {"?", "*", "..."},
        )


def _value(action: argparse.Action, choices: list[str]) -> str | None:
    if action.nargs == 0:
        return None
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(choices) if choices else action.dest.upper()
