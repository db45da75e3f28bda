"""Which sessions are deleted by age and size: whole ones only, the longest unused first."""

from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

import anyio

from acphost.archive.seal import give_back
from acphost.errors import StorageError
from acphost.ids import Clock
from acphost.journal.space import Holding
from acphost.journal.store import Store
from acphost.log import get_logger

log = get_logger()

_DAY_MS = 86_400_000
_HOUR = 3600.0


class Rules(NamedTuple):
    """What may be kept; None is without limit."""

    max_age_days: float | None = None
    max_bytes: int | None = None

    @property
    def are_set(self) -> bool:
        """Whether anything is ever deleted."""
        return self != Rules()


class Cause(StrEnum):
    """Why a session goes."""

    AGE = "age"
    SIZE = "size"


class Doomed(NamedTuple):
    """A session that goes, and why."""

    holding: Holding
    cause: Cause


def choose(holdings: Iterable[Holding], rules: Rules, *, used_bytes: int, now: int) -> list[Doomed]:
    """What goes by these rules, of sessions in the order of their last use."""
    doomed: list[Doomed] = []
    left = used_bytes
    for holding in holdings:
        if rules.max_age_days is not None and _is_older(holding, rules.max_age_days, now):
            cause = Cause.AGE
        elif rules.max_bytes is not None and left > rules.max_bytes:
            cause = Cause.SIZE
        else:
            continue
        doomed.append(Doomed(holding, cause))
        left -= holding.bytes
    return doomed


def _is_older(holding: Holding, days: float, now: int) -> bool:
    return now - holding.updated_at > days * _DAY_MS


class Keeper:
    """Applies the rules from time to time, and when it is asked to."""

    def __init__(
        self,
        store: Store,
        *,
        rules: Callable[[], Rules],
        is_at_rest: Callable[[str], bool],
        forget: Callable[[str, Cause], Awaitable[bool]],
        now: Clock,
        pause: float = _HOUR,
    ) -> None:
        """`is_at_rest` knows what the store does not: whether a session has a live agent.

        `forget` deletes a session, unless it has begun to do something meanwhile. `pause`: seconds
        between two looks.
        """
        self._store = store
        self._rules = rules
        self._is_at_rest = is_at_rest
        self._forget = forget
        self._now = now
        self._pause = pause

    @property
    def rules(self) -> Rules:
        """What is configured."""
        return self._rules()

    async def run(self) -> None:
        """Apply the rules now and every hour, until cancelled.

        By its age a session goes only if it was as old the hour before: a clock that is wrong for
        a while, as it may be after a start without network, deletes nothing.
        """
        was_old: set[str] = set()
        while True:
            try:
                plan = await self.plan()
                old = {each.holding.session_id for each in plan if each.cause is Cause.AGE}
                await self._delete(
                    each
                    for each in plan
                    if each.holding.session_id in was_old or each.cause is not Cause.AGE
                )
                was_old = old
            except StorageError as exc:
                log.warning("retention_failed", reason=str(exc))
            await anyio.sleep(self._pause)

    async def plan(self) -> list[Doomed]:
        """What would go now."""
        reader, rules = self._store.reader, self._rules()
        if not rules.are_set:
            return []
        used = (await reader.space()).used_bytes
        free = [each for each in await reader.holdings() if self._is_at_rest(each.session_id)]
        return choose(free, rules, used_bytes=used, now=self._now())

    async def apply(self) -> list[Doomed]:
        """Delete what goes by the rules, and give its room back; returns what is gone."""
        return await self._delete(await self.plan())

    async def _delete(self, plan: Iterable[Doomed]) -> list[Doomed]:
        gone = [
            doomed for doomed in plan if await self._forget(doomed.holding.session_id, doomed.cause)
        ]
        if gone:
            log.info(
                "retention", sessions=len(gone), bytes=sum(each.holding.bytes for each in gone)
            )
            await give_back(self._store)
        return gone
