"""How a program that has changed its interpreter becomes the one that it did so for."""

import runpy
import sys
from collections.abc import Sequence


def become(command: Sequence[str]) -> None:
    """Be what a command line, that of Python without its first word, would start."""
    if command[0] == "-m":
        sys.argv = list(command[1:])
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(command)
        runpy.run_path(command[0], run_name="__main__")
