"""Files as agents get at them: real folders, real links, and everything odd a path can lead to."""

import hashlib
import os
import socket
import stat
import tracemalloc
from pathlib import Path

import pytest

from acphost.errors import (
    FileMissingError,
    InvalidParamsError,
    PathNotGrantedError,
    PermissionDeniedError,
    TooLargeError,
    UnsupportedContentError,
)
from acphost.workspace.reading import Signature, read_window
from acphost.workspace.roots import Place, Roots
from acphost.workspace.writing import Written, write_text

MAX = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


def read(root: Path, name: str, line: int | None = None, limit: int | None = None) -> str:
    place = Roots([str(root)]).locate(str(root / name))
    return read_window(place, line=line, limit=limit, max_bytes=MAX).text


def write(root: Path, name: str, text: str, seen: Signature | None = None) -> Written:
    return write_text(Roots([str(root)]).locate(str(root / name)), text, seen=seen)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- where a path leads ---------------------------------------------------------------------------


def test_a_path_counts_as_what_it_leads_to(root: Path, outside: Path) -> None:
    """Links inside may be used, under either name of the root; links out lead nowhere."""
    (root / "real").mkdir()
    (root / "real" / "a").write_text("a")
    (root / "link").symlink_to("real")
    (root / "absolute").symlink_to(root / "real" / "a")
    (root / "out").symlink_to(outside)
    alias = root.parent / "alias"
    alias.symlink_to(root)

    assert read(root, "link/a") == "a"
    assert read(root, "absolute") == "a"
    assert Roots([str(alias)]).locate(str(alias / "real" / "a")).path == str(root / "real" / "a")
    assert Roots([str(root)]).locate(str(alias / "x")).relative == "x"
    for path in (root / "out" / "secret", outside / "secret", Path("/proc/self/environ")):
        with pytest.raises(PathNotGrantedError, match="acphost grants add"):
            Roots([str(root)]).locate(str(path))


def test_dots_and_neighbours_with_a_longer_name_do_not_lead_out(root: Path) -> None:
    (root.parent / "root-other").mkdir()
    roots = Roots([str(root)])

    assert roots.locate(f"{root}/a/../b").relative == "b"
    for path in (f"{root}/../outside/x", f"{root}-other/x", "/"):
        with pytest.raises(PathNotGrantedError):
            roots.locate(path)


@pytest.mark.parametrize("path", ["a", "./a", "~/a", "", "/a\0b"])
def test_only_an_absolute_path_is_one(root: Path, path: str) -> None:
    with pytest.raises(InvalidParamsError, match=r"\$\.path"):
        Roots([str(root)]).locate(path)


def test_what_is_swapped_between_check_and_open_is_not_followed(root: Path, outside: Path) -> None:
    """Neither the file nor a folder on the way may become a link meanwhile."""
    (root / "folder").mkdir()
    (root / "folder" / "secret").write_text("mine")
    (root / "file").write_text("mine")
    roots = Roots([str(root)])
    in_folder, file = roots.locate(f"{root}/folder/secret"), roots.locate(f"{root}/file")
    (root / "folder").rename(root / "moved")
    (root / "folder").symlink_to(outside)
    (root / "file").unlink()
    (root / "file").symlink_to(outside / "secret")

    with pytest.raises(PathNotGrantedError):
        read_window(in_folder, line=None, limit=None, max_bytes=MAX)
    with pytest.raises(UnsupportedContentError):
        read_window(file, line=None, limit=None, max_bytes=MAX)
    with pytest.raises(PathNotGrantedError):
        write_text(in_folder, "changed")
    with pytest.raises(UnsupportedContentError):
        write_text(file, "changed")
    assert (outside / "secret").read_text() == "secret"


# -- reading --------------------------------------------------------------------------------------


def test_windows_are_counted_from_one_and_keep_their_line_ends(root: Path) -> None:
    (root / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nfour \xe2\x82\xac\xf0\x9f\x98\x80")

    assert read(root, "a") == "\ufeffone\r\ntwo\n\nfour €😀"
    assert read(root, "a", 1, 1) == "\ufeffone\r\n"
    assert read(root, "a", 2, 2) == "two\n\n"
    assert read(root, "a", 4) == "four €😀"
    assert read(root, "a", None, 2) == "\ufeffone\r\ntwo\n"
    assert read(root, "a", 4, 100) == "four €😀"
    assert read(root, "a", 5) == ""
    assert read(root, "a", 1000, 1) == ""
    assert "".join(read(root, "a", line, 1) for line in range(1, 9)) == read(root, "a")


def test_a_window_of_a_big_file_needs_no_more_than_the_window(root: Path) -> None:
    """The whole is too large, which is said with the cure; a part of it is not."""
    with (root / "big").open("wb") as file:
        for start in range(0, 400_000, 1000):
            file.write(b"".join(b"%09d xxxxxxxxx\n" % n for n in range(start, start + 1000)))

    assert read(root, "big", 399_999, 3) == "000399998 xxxxxxxxx\n000399999 xxxxxxxxx\n"
    with pytest.raises(TooLargeError, match="`line` and `limit`"):
        read(root, "big")


def test_three_lines_of_three_hundred_megabytes_cost_what_three_lines_do(root: Path) -> None:
    """Memory does not grow with the file, and lines are counted to the end."""
    lines = 3_000_000
    with (root / "huge").open("wb") as file:
        for _ in range(lines // 10_000):
            file.write((b"x" * 99 + b"\n") * 10_000)
        file.seek(-300, os.SEEK_END)
        for number in (1, 2, 3):
            file.write(b"%099d\n" % number)
    tracemalloc.start()
    try:
        found = read(root, "huge", lines - 1, 3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == f"{2:099d}\n{3:099d}\n"
    assert peak < 8 << 20
    (root / "huge").unlink()


def test_what_is_no_text_or_no_file_is_named(root: Path) -> None:
    """Nothing waits for the other end of a FIFO, and no device is opened."""
    (root / "latin").write_bytes("é".encode("latin-1"))
    (root / "folder").mkdir()
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(root / "socket"))

    for name, what in (("latin", "UTF-8"), ("fifo", "a FIFO"), ("socket", "a socket"),
                       ("folder", "a directory"), ("", "a directory")):  # fmt: skip
        with pytest.raises(UnsupportedContentError, match=what):
            read(root, name)
    with pytest.raises(UnsupportedContentError, match="a device"):
        read_window(Place("/dev", ("null",)), line=None, limit=None, max_bytes=MAX)
    with pytest.raises(FileMissingError):
        read(root, "nobody")
    with pytest.raises(FileMissingError):
        read(root, "nowhere/nobody")
    with pytest.raises(TooLargeError):
        read(root, "x" * 300)


# -- writing --------------------------------------------------------------------------------------


def test_a_file_is_made_with_its_folders(root: Path) -> None:
    written = write(root, "a/b/c.txt", "é€😀\n")

    assert (root / "a/b/c.txt").read_bytes() == "é€😀\n".encode()
    assert written.before is None
    assert written.after == digest("é€😀\n")
    assert written.path == str(root / "a/b/c.txt")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((root / "a/b/c.txt").stat().st_mode) == 0o666 & ~mask
    assert [path.name for path in (root / "a/b").iterdir()] == ["c.txt"]


def test_mode_and_line_ends_of_the_old_file_stay(root: Path) -> None:
    """CRLF stays where every line had it; where they were mixed nothing is touched."""
    (root / "dos").write_bytes(b"a\r\nb\r\n")
    (root / "dos").chmod(0o750)
    (root / "mixed").write_bytes(b"a\r\nb\n")

    written = write(root, "dos", "x\ny\r\nz\n")
    write(root, "mixed", "x\ny\r\n")

    assert (root / "dos").read_bytes() == b"x\r\ny\r\nz\r\n"
    assert stat.S_IMODE((root / "dos").stat().st_mode) == 0o750
    assert written.before == digest("a\r\nb\r\n")
    assert (root / "mixed").read_bytes() == b"x\ny\r\n"


def test_whoever_has_the_old_file_open_never_sees_half_of_the_new_one(root: Path) -> None:
    (root / "a").write_text("old")
    with (root / "a").open() as reader:
        write(root, "a", "new and longer")
        assert reader.read() == "old"
    assert (root / "a").read_text() == "new and longer"


def test_a_link_inside_is_written_through(root: Path) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    (root / "ahead").symlink_to("later/file")

    write(root, "link", "new")
    write(root, "ahead", "made")

    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "new"
    assert (root / "later" / "file").read_text() == "made"


def test_a_failed_write_leaves_all_as_it_was(root: Path) -> None:
    (root / "plain").write_text("a file")
    (root / "fixed").write_text("fixed")
    (root / "fixed").chmod(0o444)
    (root / "folder").mkdir()

    with pytest.raises(PathNotGrantedError, match="no folder"):
        write(root, "plain/below", "x")
    with pytest.raises(PermissionDeniedError, match="read-only"):
        write(root, "fixed", "x")
    with pytest.raises(UnsupportedContentError):
        write(root, "folder", "x")

    assert sorted(path.name for path in root.iterdir()) == ["fixed", "folder", "plain"]
    assert (root / "fixed").read_text() == "fixed"


def test_a_write_knows_whether_the_file_is_still_what_was_read(root: Path) -> None:
    (root / "a").write_text("one")
    place = Roots([str(root)]).locate(str(root / "a"))
    seen = read_window(place, line=None, limit=None, max_bytes=MAX).signature

    first = write(root, "a", "two", seen)
    second = write(root, "a", "three", first.signature)
    (root / "a").write_text("by somebody else")
    third = write(root, "a", "four", second.signature)

    assert [first.was_stale, second.was_stale, third.was_stale] == [False, False, True]
