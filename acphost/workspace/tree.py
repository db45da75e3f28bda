"""Which files below some folders change between two moments: bounded, and honest about it.

The kernel tells what changes; a look at all files at the start tells what was there before. Where
the kernel tells nothing, a second look at the end does. Folders that tools keep for themselves are
left out.
"""

import math
import os
import stat
import threading
import time
from contextlib import suppress

from acphost.transport.inotify import News, TreeInotify
from acphost.workspace.reading import Signature
from acphost.workspace.writing import UNFINISHED

#: Folders whose files are no work of the agent's: stores and caches of tools.
IGNORED = frozenset(
    [
        ".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox",
        ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".cache", ".gradle", ".idea",
        ".DS_Store",
    ]
)  # fmt: skip
MAX_FOLDERS = 2000
MAX_FILES = 20_000
#: How long the first look may take.
MAX_SECONDS = 0.5
#: Changed files that are remembered.
MAX_CHANGED = 5000


class TreeWatch:
    """The files of some folders from `open` to `close`, which is quick.

    `open` and `take_in` belong into a thread: thousands of folders may be made at once.
    """

    def __init__(
        self, roots: list[str], *, keep_out: str | None = None, kernel: bool = True
    ) -> None:
        """`keep_out` is a folder that is not looked at."""
        self._roots = [root for root in roots if not _is_below_another(root, roots)]
        self._kernel: TreeInotify | None = None
        self._keep_out = keep_out
        self._wants_kernel = kernel
        #: What was there at the start.
        self.before: dict[str, Signature] = {}
        #: Files that something has happened to, in that order.
        self.touched: dict[str, None] = {}
        #: Why not everything was seen; None: it was.
        self.incomplete: str | None = None
        self._at_work = threading.Lock()
        #: When whoever takes news in has to be done with it.
        self._until = math.inf

    def open(self) -> None:
        """Take a first look and begin to watch; to be called in a thread."""
        if self._wants_kernel:
            # Not on every system, and only so many for one user: then the second look must do.
            with suppress(OSError):
                self._kernel = TreeInotify()
        until = time.monotonic() + MAX_SECONDS
        for root in self._roots:
            self.before |= self._look(root, until)

    @property
    def kernel(self) -> TreeInotify | None:
        """What tells when there is something to take in."""
        return self._kernel

    def covers(self, path: str) -> bool:
        """Whether a change of that file would have been seen."""
        if self.incomplete is not None or (self._keep_out and _is_below(path, self._keep_out)):
            return False
        for root in self._roots:
            if _is_below(path, root):
                return IGNORED.isdisjoint(path[len(root) :].split("/"))
        return False

    def take_in(self) -> None:
        """Follow what has happened since, for a while: what is left is there the next time."""
        with self._at_work:
            self._take_in(time.monotonic() + MAX_SECONDS)

    def _take_in(self, pause: float) -> None:
        if self._kernel is None:
            return
        for news in self._kernel.news(pause):
            if time.monotonic() > self._until:
                self._give_up("too much changed at once")
                return
            self._hear(news)

    def _hear(self, news: News) -> None:
        if not news.name:
            self._give_up("too much changed at once")
        elif news.name in IGNORED or news.name.startswith(UNFINISHED):
            return
        elif not news.is_folder:
            self._touch(f"{news.folder}/{news.name}")
        elif news.has_come:
            until = time.monotonic() + MAX_SECONDS / 10
            for path in self._look(f"{news.folder}/{news.name}", until):
                self._touch(path)
        else:
            below = f"{news.folder}/{news.name}/"
            for path in self.before:
                if path.startswith(below):
                    self._touch(path)

    def close(self) -> None:
        """Take in the rest, as far as that is quick, and watch no further."""
        self._until = time.monotonic() + MAX_SECONDS / 10
        with self._at_work:
            if self._kernel is not None:
                self._take_in(math.inf)
                self._kernel.close()
                self._kernel = None
                return
        now: dict[str, Signature] = {}
        until = time.monotonic() + MAX_SECONDS / 2
        for root in self._roots:
            now |= self._look(root, until)
        if self.incomplete is None:
            changed = {path for path, found in now.items() if self.before.get(path) != found}
            for path in sorted(changed | (self.before.keys() - now.keys())):
                self._touch(path)

    def _look(self, top: str, until: float) -> dict[str, Signature]:
        """The regular files below a folder; each folder is watched before it is read."""
        found: dict[str, Signature] = {}
        folders, seen = [top], 0
        while folders:
            folder = folders.pop()
            if folder == self._keep_out:
                continue
            seen += 1
            if seen > MAX_FOLDERS or len(found) > MAX_FILES or time.monotonic() > until:
                self._give_up(f"{top} holds more than is watched")
                break
            try:
                if self._kernel is not None:
                    self._kernel.add(folder)
                with os.scandir(folder) as entries:
                    for entry in entries:
                        _take(entry, folders, found)
            except FileNotFoundError:
                continue  # it has gone again
            except OSError as exc:
                self._give_up(f"{folder}: {exc.strerror}")
        return found

    def _touch(self, path: str) -> None:
        if len(self.touched) < MAX_CHANGED:
            self.touched[path] = None
        elif path not in self.touched:
            self._give_up(f"more than {MAX_CHANGED} files changed")

    def _give_up(self, reason: str) -> None:
        self.incomplete = self.incomplete or reason


def signature_of(path: str) -> Signature | None:
    """What a regular file is recognised by; None if there is none."""
    with suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            return Signature.of(found)
    return None


def _take(entry: os.DirEntry[str], folders: list[str], found: dict[str, Signature]) -> None:
    if entry.name in IGNORED or entry.name.startswith(UNFINISHED):
        return
    if entry.is_dir(follow_symlinks=False):
        folders.append(entry.path)
    elif entry.is_file(follow_symlinks=False):
        with suppress(FileNotFoundError):
            found[entry.path] = Signature.of(entry.stat(follow_symlinks=False))


def _is_below_another(root: str, roots: list[str]) -> bool:
    return any(_is_below(root, other) for other in roots)


def _is_below(path: str, folder: str) -> bool:
    # The root folder is not below itself, although its name begins with its name and a slash.
    return path != folder and path.startswith(folder.rstrip("/") + "/")
