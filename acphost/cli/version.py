"""`acphost version`."""

from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.version import VERSION


def run(_: Options) -> int:
    """Run the command."""
    print(f"acphost {VERSION}")
    return Exit.OK
