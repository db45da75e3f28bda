"""Reads text files for an agent: a window of lines, exactly as it is in the file."""

import hashlib
import io
import os
from typing import NamedTuple

from acphost.errors import TooLargeError, UnsupportedContentError
from acphost.workspace.beneath import explained, open_regular, parent_of
from acphost.workspace.roots import Place

_CHUNK = 1 << 20


class Signature(NamedTuple):
    """By what a file is recognised as unchanged without reading it."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Signature":
        """That of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Window(NamedTuple):
    """A part of a text file, line ends and all."""

    text: str
    size: int
    signature: Signature


def read_window(place: Place, *, line: int | None, limit: int | None, max_bytes: int) -> Window:
    """`limit` lines from `line` (counted from 1); past the end there are none.

    What is before the window is passed over, never kept. Raises FileMissingError,
    PathNotGrantedError, PermissionDeniedError, TooLargeError, UnsupportedContentError.
    """
    path = place.path
    try:
        with parent_of(place) as folder:
            descriptor = open_regular(place.parts[-1], folder, path)
        with io.FileIO(descriptor) as file:
            signature = Signature.of(os.fstat(descriptor))
            data = _lines(file, (line or 1) - 1, limit, max_bytes, path)
    except OSError as exc:
        raise explained(exc, path) from exc
    try:
        return Window(data.decode(), len(data), signature)
    except UnicodeDecodeError as exc:
        raise UnsupportedContentError(
            f"{path} is not UTF-8 text (byte 0x{data[exc.start]:02x} in it); only text is served",
            path=path,
        ) from exc


def too_much(path: str, max_bytes: int) -> TooLargeError:
    """More of a file than one answer may have."""
    return TooLargeError(
        f"that is more than {max_bytes} bytes of {path}; ask for a part with `line` and `limit`",
        limit=max_bytes,
    )


def digest_of(place: Place, *, max_bytes: int | None = None) -> str | None:
    """The sha256 of a whole file; None if there is none, it is no regular one, or too large."""
    found = hashlib.sha256()
    try:
        with parent_of(place) as folder:
            descriptor = open_regular(place.parts[-1], folder, place.path)
        with io.FileIO(descriptor) as file:
            if max_bytes is not None and os.fstat(descriptor).st_size > max_bytes:
                return None
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except (OSError, UnsupportedContentError):
        return None
    return found.hexdigest()


def _lines(file: io.FileIO, skip: int, limit: int | None, max_bytes: int, path: str) -> bytes:
    kept = bytearray()
    while limit != 0 and (chunk := file.read(_CHUNK)):
        if skip:
            found = chunk.count(b"\n")
            if found < skip:
                skip -= found
                continue
            chunk, skip = chunk[_end_of(chunk, skip) :], 0
        if limit is not None:
            found = min(limit, chunk.count(b"\n"))
            limit -= found
            chunk = chunk if limit else chunk[: _end_of(chunk, found)]
        kept += chunk
        if len(kept) > max_bytes:
            raise too_much(path, max_bytes)
    return bytes(kept)


def _end_of(chunk: bytes, line: int) -> int:
    """Where the so manieth line of a chunk ends."""
    end = 0
    for _ in range(line):
        end = chunk.index(b"\n", end) + 1
    return end
