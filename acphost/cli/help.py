"""`acphost help`: the commands, one of them, or a subject."""

import sys

from acphost.cli.exits import MEANINGS, NO_RESTART, CommandError, Exit
from acphost.cli.manual import manual
from acphost.cli.parser import Options, parse
from acphost.cli.screen import out


def run(options: Options) -> int:
    """Run the command."""
    match options.subject:
        case None:
            parse(["--help"])
        case "exits":
            _exits()
        case "man":
            sys.stdout.write(manual())
        case command:
            try:
                parse([command, "--help"])
            except SystemExit as exc:
                if exc.code:
                    told = f"no command or subject is called {command!r}; subjects: exits, man"
                    raise CommandError(told, Exit.USAGE) from None
                raise
    return Exit.OK


def _exits() -> None:
    pen = out()
    for code, told in MEANINGS.items():
        pen.line(f"{pen.paint(f'{int(code):>3}', 'bold')}  {told}")
    codes = ", ".join(str(int(code)) for code in NO_RESTART)
    pen.line(f"\nA daemon that ends with {codes} is not started again by its service.", "dim")
