"""Secrets that clients hand over, in 0600 files beside the store (contract section 11)."""

import os
from pathlib import Path

import anyio.to_thread


class Vault:
    """One file per session, holding what the store only has masked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def home(self) -> Path:
        """The daemon's own folder, with the store in it."""
        return self._folder.parent

    async def keep(self, session_id: str, secret: bytes) -> None:
        """Durable once it returns."""
        await anyio.to_thread.run_sync(self._write, session_id, secret)

    async def read(self, session_id: str) -> bytes | None:
        """What was kept for a session; None if nothing was."""
        return await anyio.to_thread.run_sync(self._read, session_id)

    async def forget(self, session_id: str) -> None:
        """Delete what was kept for a session."""
        await anyio.to_thread.run_sync(self._delete, session_id)

    async def kept(self) -> list[str]:
        """The sessions that something is kept for."""
        return await anyio.to_thread.run_sync(self._list)

    def _write(self, session_id: str, secret: bytes) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{session_id}.json"
        unfinished = path.with_suffix(".new")
        descriptor = os.open(
            unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def _delete(self, session_id: str) -> None:
        (self._folder / f"{session_id}.json").unlink(missing_ok=True)

    def _list(self) -> list[str]:
        return [path.stem for path in self._folder.glob("*.json")]

    def _read(self, session_id: str) -> bytes | None:
        try:
            return (self._folder / f"{session_id}.json").read_bytes()
        except FileNotFoundError:
            return None
