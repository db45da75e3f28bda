"""The one promise: what was accepted is kept, what was shown is true, nothing is left running."""

import os
import random

import pytest

from tests.crash.ordeal import SCRIPT, Ordeal
from tests.support.daemon import running_daemon

#: Kills in one run of this test; `make crash N=200` asks for more.
KILLS = int(os.environ.get("ACPHOST_CRASH_KILLS", "5"))
SEED = int(os.environ.get("ACPHOST_CRASH_SEED", "0")) or random.SystemRandom().randrange(1 << 30)


@pytest.mark.timeout(60 + 10 * KILLS)
async def test_random_kills_lose_repeat_and_leave_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Floods, queues, questions and sealing, cut anywhere; one store goes through all of it."""
    async with running_daemon(SCRIPT, host={"journal": {"seal_after": 0}}, check=False) as daemon:
        ordeal = Ordeal(daemon, SEED)
        for _ in range(KILLS):
            await ordeal.round()
        await daemon.stop()
        tally = ordeal.finish()
    with capsys.disabled():
        print(f"\n{tally}")
