"""`acphost fake-agent`: the bundled scriptable agent, as a program of its own."""

from acphost.cli.parser import Options
from acphost.demo.agent import main


def run(options: Options) -> int:
    """Play the agent; it reads its own arguments."""
    return main(options.arguments)
