"""What a person means by a few characters of an id."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from acphost.cli.daemon import pick, workspace_of
from acphost.cli.exits import CommandError

IDS = ["sess_0001aaaa1111", "sess_0001bbbb2222", "sess_0002cccc1111"]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [("sess_0001aaaa1111", 0), ("2222", 1), ("0002", 2), ("sess_0002", 2), ("aaaa1111", 0)],
)
def test_an_id_is_found_by_its_begin_or_its_end(wanted: str, index: int) -> None:
    assert pick(wanted, IDS, "session") == IDS[index]


@pytest.mark.parametrize("wanted", ["1111", "0001", "sess_", "", "zzz", "aaaa"])
def test_what_fits_several_or_none_is_refused(wanted: str) -> None:
    with pytest.raises(CommandError):
        pick(wanted, IDS, "session")


def test_an_exact_id_wins_over_longer_ones() -> None:
    assert pick("run_1", ["run_1", "run_12"], "run") == "run_1"


def test_the_workspace_of_a_folder_follows_links(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    digest = sha256(os.fsencode(real.resolve())).hexdigest()[:16]
    assert workspace_of(link) == f"local:{digest}"
