"""Extra folders for agents, by actor: a person's to give and to take back (contract section 1)."""

import os
from collections.abc import Mapping
from typing import NamedTuple

import anyio.to_thread
import msgspec

from acphost.errors import InvalidParamsError
from acphost.ids import Clock, mint
from acphost.journal.statements import save_grants
from acphost.journal.store import Store
from acphost.log import get_logger
from acphost.session.requests import check_directory
from acphost.wire.base import timestamp
from acphost.wire.grants import Grant, GrantAddParams

log = get_logger()

#: Of one actor.
MAX_GRANTS = 100


class Folders(NamedTuple):
    """What an actor has granted."""

    write: list[str]
    read: list[str]


class Grants:
    """All of them, in memory as they are in the store."""

    def __init__(self, store: Store, now: Clock) -> None:
        self._store = store
        self._now = now
        self._by_actor: dict[str, list[Grant]] = {}

    async def load(self) -> None:
        """Read what the store has."""
        stored: Mapping[str, bytes] = await self._store.reader.grants()
        self._by_actor = {
            actor_id: msgspec.json.decode(grants, type=list[Grant])
            for actor_id, grants in stored.items()
        }

    def of(self, actor_id: str) -> list[Grant]:
        """An actor's grants, the oldest first."""
        return list(self._by_actor.get(actor_id, ()))

    def folders(self, actor_id: str) -> Folders:
        """The folders themselves."""
        grants = self.of(actor_id)
        return Folders(
            [each.path for each in grants if each.access == "write"],
            [each.path for each in grants if each.access == "read"],
        )

    async def add(self, actor_id: str, params: GrantAddParams) -> Grant:
        """Grant a folder; one that was granted before is changed. Raises InvalidParamsError."""
        path = await anyio.to_thread.run_sync(_real, params.path, abandon_on_cancel=True)
        known = [each for each in self.of(actor_id) if each.path != path]
        if len(known) >= MAX_GRANTS:
            raise InvalidParamsError(f"{MAX_GRANTS} folders are granted; remove one - at `$`")
        grant = Grant(
            grant_id=mint("grant"), actor_id=actor_id, path=path, access=params.access,
            created_at=timestamp(self._now()),
        )  # fmt: skip
        await self._keep(actor_id, [*known, grant])
        log.info("granted", actor=actor_id, path=path, access=params.access)
        return grant

    async def remove(self, actor_id: str, grant_id: str) -> Grant:
        """Take a grant back; agents find the folder closed from their next request on.

        Raises InvalidParamsError for an id that the actor has not.
        """
        grants = self.of(actor_id)
        found = next((each for each in grants if each.grant_id == grant_id), None)
        if found is None:
            raise InvalidParamsError(f"no grant {grant_id!r} of {actor_id} - at `$.grantId`")
        await self._keep(actor_id, [each for each in grants if each is not found])
        log.info("grant_removed", actor=actor_id, path=found.path)
        return found

    async def _keep(self, actor_id: str, grants: list[Grant]) -> None:
        self._by_actor[actor_id] = grants
        writer = self._store.writer
        saved = save_grants(actor_id, msgspec.json.encode(grants))
        await writer.durable(writer.record([saved]))


def _real(path: str) -> str:
    return os.path.realpath(check_directory(path, "$.path"))
