"""The one promise: what was accepted is kept, what was shown is true, nothing is left running."""

import os
import random
from collections.abc import Callable

import pytest

from tests.crash.load import SCRIPT
from tests.crash.ordeal import Ordeal
from tests.support.config import Table
from tests.support.daemon import running_daemon

#: Kills in one run of this test; `make crash N=200` asks for more.
KILLS = int(os.environ.get("ACPHOST_CRASH_KILLS", "5"))
#: So many of them hit one store; then another is begun.
CHAPTER = 20
SEED = int(os.environ.get("ACPHOST_CRASH_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
CHAPTERS = [
    pytest.param(number, min(CHAPTER, KILLS - begin), id=f"chapter-{number}")
    for number, begin in enumerate(range(0, KILLS, CHAPTER))
]
HOST: Table = {"journal": {"seal_after": 0}}
#: What waits goes on by itself after every other store's kills.
QUEUES: tuple[Table, ...] = ({}, {"queue": {"on_interrupted": "continue"}})
#: A dying agent is not to come to rest.
AGENT = {"restart": {"limit": 1000, "window": 1}}


# Some seconds each, where nothing else is going on.
@pytest.mark.timeout(60 + 40 * min(KILLS, CHAPTER))
@pytest.mark.parametrize(("chapter", "kills"), CHAPTERS)
async def test_random_kills_lose_repeat_and_leave_nothing(
    chapter: int, kills: int, record_property: Callable[[str, object], None]
) -> None:
    """Floods, queues, questions, backups and sealing, cut anywhere; one store goes through all."""
    host = {**HOST, **QUEUES[chapter % 2]}
    async with running_daemon(SCRIPT, agent=AGENT, host=host, check=False, follow=False) as daemon:
        await daemon.stop()
        ordeal = Ordeal(daemon, SEED + chapter)
        for _ in range(kills):
            await ordeal.life()
        daemon.wrapper = []
        await daemon.start(is_followed=False)
        await daemon.client.backup(str(daemon.folder / "backup.db"), force=True)
        await daemon.stop()
        ordeal.finish()
    record_property("told", f"crash: seed {SEED + chapter}, {kills} kills on one store")
    record_property("tally", dict(ordeal.tally))
