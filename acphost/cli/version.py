"""`acphost version`."""

from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.daemon.version import version


def run(_: Options) -> int:
    """Run the command."""
    print(f"acphost {version()}")
    return Exit.OK
