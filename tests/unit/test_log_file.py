"""A log that nobody else rotates."""

import resource
import stat
import subprocess
import sys
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


def test_letters_count_as_the_bytes_they_take(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, "ééé\n", "éé\n", "x\n")
    assert path.read_text() == "x\n"
    assert Path(f"{path}.1").read_text() == "ééé\néé\n"


def test_it_goes_on_in_the_old_file_where_there_can_be_no_new_one(tmp_path: Path) -> None:
    """No descriptor is left, say, or the folder was cleared: no line is lost, nor any later one."""
    path = tmp_path / "logs" / "log"
    with closing(LogFile(path, max_bytes=8)) as log:
        log.write("12345678\n")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            log.write("a\n")
            log.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert Path(f"{path}.1").read_text() == "12345678\na\n"
        log.write("7654321\n")
        log.write("b\n")
        log.flush()
        assert path.read_text() == "b\n"
        path.unlink()
        log.write("1234567\n")
        log.write("c\n")
        log.flush()
        assert path.read_text() == "c\n"


@pytest.mark.parametrize(("size", "left"), [(100, 0), (7, 7)])
def test_what_comes_beside_the_log_stays_small_too(tmp_path: Path, size: int, left: int) -> None:
    """launchd writes a program's stderr into a file that it never shortens."""
    output = tmp_path / "launchd.log"
    output.write_bytes(b"x" * size)
    program = "import sys; from pathlib import Path; from acphost.daemon.log_file import LogFile;"
    program += "LogFile(Path(sys.argv[1]), max_bytes=8)"
    with output.open("ab") as stderr:
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "log")],
            check=True,
            stderr=stderr,
        )
    assert output.stat().st_size == left


def test_a_log_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="cannot write the log"):
        LogFile(tmp_path)


def test_the_place_of_the_log_is_known(tmp_path: Path) -> None:
    assert log_place({"log": str(tmp_path / "x")}, {}) == {"to": "file", "path": f"{tmp_path}/x"}
    assert "to" in log_place({"log": None}, {"JOURNAL_STREAM": "1:2"})
