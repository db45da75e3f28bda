"""Where the store of a command is, and who has it open."""

import argparse
import os
from pathlib import Path

from acphost.transport.paths import default_state_dir

STORE_NAME = "journal.db"


def state_dir_of(options: argparse.Namespace) -> Path:
    """The state directory: flag, environment, the user's configuration, the platform's place."""
    named = options.state_dir or os.environ.get("ACPHOST_STATE_DIR")
    if not named:
        from acphost.settings.load import load_settings

        named = load_settings(flags=vars(options), environ=os.environ).state_dir
    return Path(named).expanduser().absolute() if named else default_state_dir(os.environ)


def size(number: int) -> str:
    """Bytes in the unit that a person would choose."""
    if number < 1000:
        return f"{number} B"
    amount, units = number / 1000, ["KB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        del units[0]
    return f"{amount:.1f} {units[0]}"
