"""The options of the commands for whoever keeps the machine."""

import argparse
from collections.abc import Callable

Command = Callable[..., argparse.ArgumentParser]

LINES = 100
_DIGITS = 10


def add_commands(command: Command) -> None:
    """Add them all."""
    service = command("service", "keep the daemon running by systemd or launchd")
    service.add_argument("action", choices=["install", "uninstall", "status", "logs"])
    service.add_argument(
        "--print",
        action="store_true",
        help="only print what `install` would write, or the command behind `logs`",
    )
    _lines(service)
    service.add_argument("--json", action="store_true", help="print the result as it is")
    service.epilog = (
        "`install` writes a systemd user unit with its socket, or a launchd agent, with the "
        "absolute path of this program and the PATH of this shell; run it again after either has "
        "changed. `uninstall` leaves nothing but the state folder and your configuration."
    )

    doctor = command("doctor", "look for what is wrong, and say what to do about it")
    doctor.add_argument(
        "--e2e",
        action="store_true",
        help="also try the main job out: send, permit, kill -9, recover, in a scratch folder",
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as they are")
    doctor.epilog = "Changes nothing. Exit code 1 if there is a problem; warnings are none."

    logs = command("logs", "show what the daemon has logged, wherever its log is")
    _lines(logs)
    logs.add_argument(
        "--trouble",
        action="store_true",
        help="instead, what went wrong with agents lately: complaints, failed tools, refusals",
    )
    logs.add_argument("--json", action="store_true", help="print the lines as they are")

    completion = command("completion", "print a completion script for a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    completion.epilog = (
        "bash: source <(acphost completion bash). zsh: write it as _acphost into a folder of "
        "$fpath. fish: write it as acphost.fish into ~/.config/fish/completions."
    )
    helps = command("help", "show the help of a command, or a subject: exits, man")
    helps.add_argument("subject", metavar="COMMAND|exits|man", nargs="?")
    helps.epilog = "`acphost help man` prints the man page: acphost help man | man -l -"


def _lines(added: argparse.ArgumentParser) -> None:
    added.add_argument("-f", "--follow", action="store_true", help="go on as lines come")
    added.add_argument(
        "-n", "--lines", metavar="N", type=_count, default=LINES,
        help=f"the last N; default: {LINES}",
    )  # fmt: skip


def _count(word: str) -> int:
    """How many: a number that is not negative."""
    if not (word.isascii() and word.isdecimal() and len(word) < _DIGITS):
        raise argparse.ArgumentTypeError(f"{word!r} is no number of lines")
    return int(word)
