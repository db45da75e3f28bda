"""What the meetings with independent programs share: where those programs are."""

from pathlib import Path

import pytest

#: `tools/interop-peers.sh` installs them here.
PEERS = Path(__file__).parents[2] / ".interop"


def peer(name: str, program: str = "") -> Path:
    """The folder of an installed peer, or a program in it; skips the test where there is none.

    `tools/interop-peers.sh` has then said in one line of its own what is missing.
    """
    folder = PEERS / name
    found = folder / program
    if not (folder / ".installed").exists() or not found.exists():
        pytest.skip(f"{name} is not installed; `make interop` installs it")
    return found
