"""`acphost completion`: a script for the shell, made from the commands there are."""

import re

from acphost.cli.catalogue import Catalogue, Command, Option, catalogue
from acphost.cli.exits import Exit
from acphost.cli.parser import Options, make_parser


def run(options: Options) -> int:
    """Run the command."""
    made = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]
    print(made(catalogue(make_parser())), end="")
    return Exit.OK


# -- bash -----------------------------------------------------------------------------------------

_BASH = """\
# bash completion for acphost; load it with: source <(acphost completion bash)
_acphost() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
            {with_value}) ((i++)) ;;
            -*) ;;
            *) command=${{COMP_WORDS[i]}}; break ;;
        esac
    done
    case $command:$before in
{values}
    esac
    case $command in
        "") mapfile -t COMPREPLY < <(compgen -W "{commands} {shared}" -- "$word") ;;
{words}
    esac
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}}
complete -o filenames -F _acphost acphost
"""


def bash(found: Catalogue) -> str:
    """For bash 4 and newer."""
    shared = _flags(found.shared)
    values = [
        line
        for command in [Command("*", "", "", found.shared, []), *found.commands]
        for option in command.options
        if option.value is not None
        for line in [_bash_value(command, option)]
    ]
    words = [
        f'        {each.name}) mapfile -t COMPREPLY < <(compgen -W "'
        f'{" ".join([*_choices(each), *_flags(each.options), *shared])}" -- "$word") ;;'
        for each in found.commands
    ]
    return _BASH.format(
        with_value="|".join(flag for each in found.shared if each.value for flag in each.flags),
        values="\n".join(values),
        commands=" ".join(each.name for each in found.commands),
        shared=" ".join(shared),
        words="\n".join(words),
    )


def _bash_value(command: Command, option: Option) -> str:
    kind = "-d" if option.is_folder else "-f"
    what = f'-W "{" ".join(option.choices)}"' if option.choices else kind
    cases = "|".join(f"{command.name}:{flag}" for flag in option.flags)
    return f'        {cases}) mapfile -t COMPREPLY < <(compgen {what} -- "$word"); return ;;'


# -- zsh ------------------------------------------------------------------------------------------

_ZSH = """\
#compdef acphost
# zsh completion for acphost; put it as _acphost into a folder of $fpath
_acphost() {{
    local -a commands=(
{commands}
    )
    local -a shared=(
{shared}
    )
    local context state line
    typeset -A opt_args
    _arguments -C $shared '1: :->command' '*:: :->rest'
    case $state in
        command) _describe command commands ;;
        rest)
            case $line[1] in
{words}
                *) _files ;;
            esac ;;
    esac
}}
_acphost "$@"
"""


def zsh(found: Catalogue) -> str:
    """For zsh with compinit."""
    words = [
        f"                {each.name}) _arguments $shared {' '.join(_zsh_words(each))} ;;"
        for each in found.commands
    ]
    return _ZSH.format(
        commands="\n".join(
            f"        {_quoted(f'{each.name}:{each.summary}')}" for each in found.commands
        ),
        shared="\n".join(f"        {word}" for each in found.shared for word in _zsh_option(each)),
        words="\n".join(words),
    )


def _zsh_words(command: Command) -> list[str]:
    words = [word for each in command.options for word in _zsh_option(each)]
    places = [f"*:{each.value or ''}:{_zsh_action(each)}" for each in command.positionals]
    return [*words, *map(_quoted, places)]


def _zsh_option(option: Option) -> list[str]:
    told = re.sub(r"([\[\]:])", r"\\\1", option.help)
    value = "" if option.value is None else f":{option.value}:{_zsh_action(option)}"
    return [_quoted(f"{flag}[{told}]{value}") for flag in option.flags]


def _zsh_action(option: Option) -> str:
    if option.choices:
        return f"({' '.join(option.choices)})"
    return "_files -/" if option.is_folder else "_files" if option.is_file else " "


# -- fish -----------------------------------------------------------------------------------------


def fish(found: Catalogue) -> str:
    """For fish 3 and newer."""
    lines = [
        "# fish completion for acphost; put it as acphost.fish into ~/.config/fish/completions",
        "complete -c acphost -f",
    ]
    lines += [_fish_option("", each) for each in found.shared]
    for command in found.commands:
        lines.append(
            f"complete -c acphost -n __fish_use_subcommand -a {command.name}"
            f" -d {_quoted(command.summary)}"
        )
        seen = f" -n '__fish_seen_subcommand_from {command.name}'"
        lines += [_fish_option(seen, each) for each in command.options]
        for each in command.positionals:
            if each.choices:
                lines.append(f"complete -c acphost{seen} -a {_quoted(' '.join(each.choices))}")
            elif each.is_file:
                lines.append(f"complete -c acphost{seen} -F")
    return "\n".join(lines) + "\n"


def _fish_option(condition: str, option: Option) -> str:
    flags = " ".join(
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    )
    value = ""
    if option.choices:
        value = f" -x -a {_quoted(' '.join(option.choices))}"
    elif option.value is not None:
        value = " -r -F" if option.is_file or option.is_folder else " -x"
    return f"complete -c acphost{condition} {flags}{value} -d {_quoted(option.help)}"


# -- all ------------------------------------------------------------------------------------------


def _flags(options: list[Option]) -> list[str]:
    return [flag for each in options for flag in each.flags]


def _choices(command: Command) -> list[str]:
    return [choice for each in command.positionals for choice in each.choices]


def _quoted(text: str) -> str:
    """One word for zsh and fish alike."""
    plain = text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return f"'{plain}'"
