"""What changes below folders: by the kernel's word, and by a second look where it has none."""

from pathlib import Path

import pytest

from acphost.workspace import tree
from acphost.workspace.tree import TreeWatch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("kept", "changed", "gone", "moved", "sub/inner", ".git/config", "old/a"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def watching(root: Path, *, kernel: bool = True) -> TreeWatch:
    watch = TreeWatch([str(root), str(root / "sub")], kernel=kernel)
    watch.open()
    return watch


@pytest.mark.parametrize("kernel", [True, False])
def test_a_folder_that_is_kept_out_is_not_looked_at(root: Path, kernel: bool) -> None:
    """Neither what was in it, nor what is made in it; what only begins like it is looked at."""
    watch = TreeWatch([str(root)], keep_out=str(root / "sub"), kernel=kernel)
    watch.open()
    (root / "sub" / "inner").write_text("longer than before")
    (root / "sub" / "new").mkdir()
    (root / "sub" / "new" / "file").write_text("x")
    (root / "submarine").write_text("x")

    assert touched(watch, root) == {"submarine"}
    assert watch.incomplete is None
    assert not watch.covers(str(root / "sub" / "inner"))
    assert watch.covers(str(root / "submarine"))


def test_the_root_of_all_folders_is_watched_like_any_other() -> None:
    """It is not below itself, and everything else is below it."""
    assert TreeWatch(["/"]).covers("/somewhere/else")
    assert TreeWatch(["/", "/somewhere"]).covers("/elsewhere")


def touched(watch: TreeWatch, root: Path) -> set[str]:
    watch.close()
    return {str(Path(path).relative_to(root)) for path in watch.touched}


@pytest.mark.parametrize("kernel", [True, False])
def test_every_kind_of_change_is_seen_and_nothing_else(root: Path, kernel: bool) -> None:
    """Made, written, deleted, moved, in folders that are new or that go; not in tools' folders."""
    watch = watching(root, kernel=kernel)
    (root / "changed").write_text("another text")
    (root / "gone").unlink()
    (root / "moved").rename(root / "elsewhere")
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "file").write_text("x")
    (root / "sub" / "inner").write_text("longer than before")
    (root / ".git" / "config").write_text("not looked at")
    (root / "old" / "a").unlink()
    (root / "old").rmdir()

    found = touched(watch, root)

    assert found == {"changed", "gone", "moved", "elsewhere", "new/deep/file", "sub/inner", "old/a"}
    assert watch.incomplete is None
    assert str(root / "gone") in watch.before


def test_where_the_kernel_has_none_left_a_second_look_does(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> None:
        raise OSError(24, "no more of them")

    monkeypatch.setattr(tree, "TreeInotify", none_left)
    watch = watching(root)
    (root / "changed").write_text("another text")

    assert touched(watch, root) == {"changed"}
    assert watch.incomplete is None


def test_what_is_in_a_folder_that_moves_away_is_gone(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    watch = watching(root)
    (root / "old").rename(tmp_path_factory.mktemp("elsewhere") / "old")

    assert touched(watch, root) == {"old/a"}


def test_a_folder_that_holds_too_much_is_said_to_be_seen_in_part(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_FOLDERS", 1)
    watch = watching(root)

    assert not watch.covers(str(root / "sub" / "inner"))
    watch.close()
    assert "holds more" in (watch.incomplete or "")


def test_only_what_is_watched_counts_as_covered(root: Path) -> None:
    watch = watching(root)

    assert watch.covers(str(root / "anything" / "new"))
    assert not watch.covers(str(root / ".git" / "config"))
    assert not watch.covers(str(root) + "-other/file")
    watch.close()
