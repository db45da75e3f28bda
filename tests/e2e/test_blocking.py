"""A call that keeps the daemon's loop waiting is found by every test that has a daemon."""

import json

from tests.support.daemon import Daemon, running_daemon

SLOW = """
import time
from pathlib import Path
from acphost.provider.traits import Traits

class Slow(Traits):
    def environment(self, env):
        time.sleep(0.001)
        Path("/tmp").stat()
        return super().environment(env)
"""


def with_a_slow_runtime(daemon: Daemon) -> None:
    """Code of a user's own is carried out in the loop; what it waits for, all wait for."""
    (daemon.folder / "runtimes").mkdir()
    (daemon.folder / "runtimes" / "slow.py").write_text(SLOW)
    daemon.configure(agent={"runtime": "slow"})


async def test_what_waits_in_the_loop_is_told_with_its_place() -> None:
    """Else the watch over the daemons of all other tests would be worth nothing."""
    async with running_daemon(prepare=with_a_slow_runtime, check=False) as daemon:
        assert (await daemon.ask(await daemon.session(), "hi")).status == "completed"
        lines = [json.loads(line) for line in daemon.log().splitlines() if "blocking_call" in line]
        assert {line["call"] for line in lines} == {"time.sleep", "os.stat"}
        assert all("acphost/provider/pool.py" in line["at"] for line in lines)
        assert any("blocking_call" in problem for problem in daemon.left_behind())
