"""What is done in the background: ended runs are sealed, old sessions and free memory given up."""

from collections.abc import Callable

import anyio

from acphost.archive.retention import Doomed, Keeper, Rules
from acphost.archive.seal import Sealer
from acphost.daemon.memory import give_memory_back
from acphost.errors import StorageError
from acphost.ids import epoch_ms
from acphost.journal.store import Store
from acphost.session.house import House
from acphost.settings.model import Settings
from acphost.wire.base import timestamp
from acphost.wire.daemon import RetentionDone, RetentionItem


class Upkeep:
    """The sealer and the keeper, by the settings of the moment."""

    def __init__(self, store: Store, house: House, settings: Callable[[], Settings]) -> None:
        self._store = store
        self._sealer = Sealer(store, settle=lambda: settings().journal.seal_after, now=epoch_ms)

        def rules() -> Rules:
            retention = settings().journal.retention
            return Rules(retention.max_age_days, retention.max_bytes)

        self._keeper = Keeper(
            store, rules=rules, is_at_rest=house.is_at_rest, forget=house.forget, now=epoch_ms
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sealer.run)
            tasks.start_soon(self._keeper.run)
            tasks.start_soon(give_memory_back, lambda: self._store.writer.head)

    async def retention(self, *, dry_run: bool) -> RetentionDone:
        """Delete what goes by the rules now, or only tell."""
        doomed = await (self._keeper.plan() if dry_run else self._keeper.apply())
        rules = self._keeper.rules
        return RetentionDone(
            dry_run=dry_run,
            max_age_days=rules.max_age_days,
            max_bytes=rules.max_bytes,
            used_bytes=(await self._store.reader.space()).used_bytes,
            bytes=sum(each.holding.bytes for each in doomed),
            sessions=list(map(_item, doomed)),
        )

    async def figures(self) -> dict[str, int]:
        """How much room the journal takes; nothing while it cannot be read."""
        try:
            space = await self._store.reader.space()
        except StorageError:
            return {}
        return {
            "bytes": space.bytes,
            "freeBytes": space.free_bytes,
            "segments": space.segments,
            "sealedEvents": space.sealed_events,
            "sealedBytes": space.sealed_bytes,
            "sealedRawBytes": space.sealed_raw_bytes,
        }


def _item(doomed: Doomed) -> RetentionItem:
    holding, cause = doomed
    return RetentionItem(
        session_id=holding.session_id,
        agent_id=holding.agent_id,
        title=holding.title,
        updated_at=timestamp(holding.updated_at),
        bytes=holding.bytes,
        cause=cause,
    )
