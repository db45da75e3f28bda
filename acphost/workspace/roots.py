"""Which files an agent may reach through the host: those below the roots of its session.

A path counts as what it leads to, links resolved. Checking a path and opening it are two steps, so
`beneath` follows no link at all on the way from the root: what was swapped in between is not found.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acphost.errors import InvalidParamsError, PathNotGrantedError, TooLargeError

#: Of a path that other programs can use; folder by folder one could go deeper.
MAX_PATH = 4095
CURE = "grant it with `acphost grants add`, or name it in the session's additionalDirectories"


@dataclass(frozen=True, slots=True)
class Place:
    """A path below a root, without links in it when it was looked up."""

    root: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where that is."""
        return str(Path(self.root, *self.parts))

    @property
    def relative(self) -> str:
        """The path from the root."""
        return "/".join(self.parts)


class Roots:
    """The folders of one session; every method may touch the disk."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(dict.fromkeys(folders))

    @property
    def folders(self) -> list[str]:
        """The real paths of the roots, each once."""
        return list(dict.fromkeys(os.path.realpath(folder) for folder in self._folders))

    def locate(self, path: str) -> Place:
        """What a path leads to.

        Raises InvalidParamsError for one that is not absolute, PathNotGrantedError for one that
        leads out of every root.
        """
        real = real_path(path)
        for root in self.folders:
            if real == root or real.startswith(root.rstrip("/") + "/"):
                return Place(root, tuple(part for part in real[len(root) :].split("/") if part))
        led = "" if real == os.path.normpath(path) else f" (it leads to {real})"
        raise PathNotGrantedError(
            f"{path} is outside of the session's folders{led}; {CURE}",
            path=path,
            roots=self.folders,
        )


def real_path(path: str) -> str:
    """Where an absolute path leads.

    Raises InvalidParamsError, PathNotGrantedError, TooLargeError.
    """
    if not path.startswith("/"):
        raise InvalidParamsError(f"expected an absolute path, got {path!r} - at `$.path`")
    if len(path.encode(errors="replace")) > MAX_PATH:
        raise TooLargeError(f"a path has {MAX_PATH} bytes at most: {path[:200]}…")
    try:
        return os.path.realpath(path)
    except ValueError as exc:  # a NUL in it
        raise InvalidParamsError(f"{path!r}: {exc} - at `$.path`") from exc
    except OSError as exc:  # a link has become something else while it was read
        raise PathNotGrantedError(
            f"{path} cannot be followed: something on the way is being changed", path=path
        ) from exc


def place_of(real: str) -> Place:
    """A file that may be reached although it is in no root: its folder is the root."""
    folder, _, name = real.rpartition("/")
    return Place(folder or "/", (name,) if name else ())
