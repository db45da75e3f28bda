"""Backups on demand, one at a time, beside the work of the daemon."""

import os
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from acphost.errors import InvalidParamsError
from acphost.journal.backup import Copied, back_up
from acphost.wire.daemon import BackupDone
from acphost.wire.params import BackupParams

#: Bytes of a file's name; the unfinished copy needs some more than the target.
MAX_NAME = 200


def secrets_folder(store: Path) -> Path:
    """Where the secrets of a store's sessions are."""
    return store.parent / "secrets"


def read_secrets(folder: Path) -> dict[str, bytes]:
    """Every file of the vault, by its name. It blocks."""
    if not folder.is_dir():
        return {}
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}


class Backups:
    """Makes the copies that clients ask for."""

    def __init__(self, store: Path, secrets: Path) -> None:
        self._store = store
        self._secrets = secrets
        self._one_at_a_time = anyio.Lock()

    async def make(self, params: BackupParams) -> BackupDone:
        """Copy the store. Raises InvalidParamsError, ConflictError, StorageError."""
        target = Path(params.path)
        if not target.is_absolute():
            raise InvalidParamsError("expected an absolute path - at `$.path`")
        if len(os.fsencode(target.name)) > MAX_NAME or "\0" in params.path:
            raise InvalidParamsError("expected the path of a file - at `$.path`")
        work = partial(self._copy, target, force=params.force, with_secrets=params.with_secrets)
        async with self._one_at_a_time:
            copied = await anyio.to_thread.run_sync(work)
        return BackupDone(
            path=str(target),
            bytes=copied.bytes,
            duration_ms=copied.milliseconds,
            secrets=copied.secrets,
        )

    def _copy(self, target: Path, *, force: bool, with_secrets: bool) -> Copied:
        if not target.parent.is_dir():
            raise InvalidParamsError(f"there is no folder {target.parent} - at `$.path`")
        secrets = read_secrets(self._secrets) if with_secrets else None
        return back_up(self._store, target, force=force, secrets=secrets)
