"""A log that nobody else rotates."""

import stat
from contextlib import closing
from pathlib import Path

import pytest

from acphost.daemon.log_file import LogFile, log_place
from acphost.errors import StartError


def test_it_is_private_goes_on_and_stays_small(tmp_path: Path) -> None:
    """A second run appends; a full file becomes the one before, of which there is one."""
    path = tmp_path / "logs" / "daemon.log"
    for text in ("one\n", "two\n"):
        write(path, text)
    assert path.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write(path, "three\n", "four\n", "more\n")
    assert path.read_text() == "more\n"
    assert Path(f"{path}.1").read_text() == "three\nfour\n"


def write(path: Path, *lines: str) -> None:
    with closing(LogFile(path, max_bytes=8)) as log:
        assert not log.isatty()
        for line in lines:
            log.write(line)
        log.flush()


def test_a_log_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="cannot write the log"):
        LogFile(tmp_path)


def test_the_place_of_the_log_is_known(tmp_path: Path) -> None:
    assert log_place({"log": str(tmp_path / "x")}, {}) == {"to": "file", "path": f"{tmp_path}/x"}
    assert "to" in log_place({"log": None}, {"JOURNAL_STREAM": "1:2"})
