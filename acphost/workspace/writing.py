"""Writes text files for an agent: whole or not at all, with the habits of the file that was there.

The new text is written beside the old one and put in its place by a rename in the same folder, so
that nobody ever sees half of it.
"""

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass

from acphost.errors import PermissionDeniedError
from acphost.workspace.beneath import check_regular, explained, open_regular, parent_of
from acphost.workspace.reading import Signature
from acphost.workspace.roots import Place

#: Begins the name of a file that is not finished; whoever watches a folder may overlook it.
UNFINISHED = ".acphost-"

_CHUNK = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did to a file; `before` and `after` are sha256 of the whole."""

    path: str
    before: str | None
    after: str
    size: int
    #: None: somebody else wrote it.
    signature: Signature | None
    #: The file was another one than when the agent read it last.
    was_stale: bool = False


@dataclass(frozen=True, slots=True)
class _Old:
    """The file that is replaced."""

    digest: str
    mode: int
    has_crlf: bool
    signature: Signature


def write_text(place: Place, text: str, *, seen: Signature | None = None) -> Written:
    """Put `text` into the file, which is made, with its folders, if it is missing.

    A file whose lines all end in CRLF keeps that; its mode is kept. `seen`: as the agent read it
    last. Raises PathNotGrantedError, PermissionDeniedError, StorageFullError, StorageError,
    UnsupportedContentError, TooLargeError.
    """
    path = place.path
    try:
        with parent_of(place, make=True) as folder:
            old = _look(place.parts[-1], folder, path)
            data = _encoded(text, old)
            signature = _replace(place.parts[-1], folder, data, old)
    except OSError as exc:
        raise explained(exc, path) from exc
    return Written(
        path=path,
        before=None if old is None else old.digest,
        after=hashlib.sha256(data).hexdigest(),
        size=len(data),
        signature=signature,
        was_stale=seen is not None and old is not None and seen != old.signature,
    )


def _look(name: str, folder: int, path: str) -> _Old | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    check_regular(found, path)
    if not found.st_mode & 0o222:
        # A rename would not ask; whoever made it read-only meant it.
        raise PermissionDeniedError(f"{path} is read-only")
    digest, feeds, with_return, last = hashlib.sha256(), 0, 0, b""
    descriptor = open_regular(name, folder, path)
    try:
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
            feeds += chunk.count(b"\n")
            with_return += chunk.count(b"\r\n") + (last == b"\r" and chunk[:1] == b"\n")
            last = chunk[-1:]
    finally:
        os.close(descriptor)
    return _Old(
        digest=digest.hexdigest(),
        mode=stat.S_IMODE(found.st_mode),
        has_crlf=0 < feeds == with_return,
        signature=Signature.of(found),
    )


def _encoded(text: str, old: _Old | None) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if old is not None and old.has_crlf:
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return data


def _replace(name: str, folder: int, data: bytes, old: _Old | None) -> Signature:
    unfinished = UNFINISHED + secrets.token_hex(8)
    descriptor = os.open(unfinished, _NEW, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if old is not None:
                os.fchmod(descriptor, old.mode)
            os.fsync(descriptor)
            signature = Signature.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise
    _sync_folder(folder)
    return signature


def _sync_folder(folder: int) -> None:
    """Make the rename last; a descriptor that was opened only to pass cannot be synced itself."""
    with suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
