"""The man page, made from the commands there are: at build time, or by `acphost help man`."""

from acphost.cli.catalogue import Command, Option, catalogue
from acphost.cli.exits import MEANINGS
from acphost.cli.parser import make_parser
from acphost.version import VERSION

_FILES = (
    (
        "~/.config/acphost, ~/Library/Application Support/acphost",
        "config.toml and agents.d/*.toml; every key is explained in the files that ship with it",
    ),
    ("~/.local/state/acphost", "journal, lock, secrets and, where acphost keeps one, the log"),
    ("$XDG_RUNTIME_DIR/acphost/acphost.sock", "the socket"),
)
_VARIABLES = (
    ("ACPHOST_SOCKET, ACPHOST_STATE_DIR, ACPHOST_CONFIG", "as the options of these names"),
    ("ACPHOST_SSH", "the ssh of --host, with options of its own"),
    ("ACPHOST_DEBUG", "set to anything: where an internal error happened"),
    ("NO_COLOR", "set to anything: no colours"),
)


def manual() -> str:
    """The page, in the language of man(7)."""
    found = catalogue(make_parser())
    lines = [
        f'.TH ACPHOST 1 "" "acphost {_escaped(VERSION)}" "User Commands"',
        ".SH NAME",
        "acphost \\- host of ACP agents",
        ".SH SYNOPSIS",
        ".B acphost",
        "[\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...",
        ".SH DESCRIPTION",
        *_paragraphs(found.description),
        ".SH OPTIONS",
        "These may stand before the command as well as behind it.",
        *(line for each in found.shared for line in _option(each)),
        ".SH COMMANDS",
        *(line for each in found.commands for line in _command(each)),
        ".SH EXIT STATUS",
        *(line for code, told in MEANINGS.items() for line in _item(str(int(code)), told)),
        ".SH ENVIRONMENT",
        *(line for name, told in _VARIABLES for line in _item(name, told)),
        ".SH FILES",
        *(line for name, told in _FILES for line in _item(name, told)),
    ]
    return "\n".join(lines) + "\n"


def _command(command: Command) -> list[str]:
    words = [f"\\fI{_escaped(_shown(each))}\\fR" for each in command.positionals]
    usage = " ".join([f"\\fB{_escaped(command.name)}\\fR", *words])
    lines = [".SS " + usage, _escaped(command.summary[:1].upper() + command.summary[1:]) + "."]
    for each in (*command.positionals, *command.options):
        if each.help and each.flags != ["-h", "--help"]:
            lines += _option(each)
    if command.epilog:
        lines += [".PP", *_paragraphs(command.epilog)]
    return lines


def _shown(option: Option) -> str:
    value = option.value or ""
    return f"[{value}]" if option.is_optional else value


def _option(option: Option) -> list[str]:
    if not option.flags:
        return _item(option.value or "", option.help)
    flags = ", ".join(f"\\fB{_escaped(flag)}\\fR" for flag in option.flags)
    value = f" \\fI{_escaped(option.value)}\\fR" if option.value else ""
    return [".TP", flags + value, _escaped(option.help)]


def _item(name: str, told: str) -> list[str]:
    return [".TP", f"\\fB{_escaped(name)}\\fR", _escaped(told)]


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [".PP", *(_escaped(line) for line in paragraph.splitlines())]
    return lines[1:]


def _escaped(text: str) -> str:
    """Text that troff prints as it is, and that can be copied into a shell."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    safe = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in safe)
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
