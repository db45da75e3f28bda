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
    amount = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            break
        amount /= 1000
    else:
        unit = "TB"
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
