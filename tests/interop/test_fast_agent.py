"""An agent of somebody else, hosted with no configuration but its command."""

import pytest

from tests.interop.peers import peer
from tests.support.daemon import Daemon, payload, running_daemon


@pytest.mark.timeout(120)  # it takes several seconds to start
async def test_fast_agent_answers_and_is_continued() -> None:
    """Its passthrough model says what it is told; after a reset the conversation goes on."""
    program = str(peer("fast-agent", "bin/fast-agent"))

    def prepare(daemon: Daemon) -> None:
        command = [program, "acp", "--model", "passthrough"]
        env = {"HOME": str(daemon.folder)}
        daemon.configure(agent={"command": command, "env": env, "init_timeout": 60})

    async with running_daemon(prepare=prepare) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "seven seals")
        assert (run.status, run.stop_reason) == ("completed", "end_turn")
        assert "seven seals" in await daemon.text(run)
        reset = {"sessionId": session, "next": "continue"}
        await daemon.client.request("runtime/reset", reset, dict)
        again = await daemon.ask(session, "eight ells")
        assert (again.status, again.continuity) == ("completed", "resumed")
        answer = await daemon.text(again)
        assert "eight ells" in answer
        # It tells its history again when it is resumed: counted, and never shown twice.
        assert "seven seals" not in answer
        (resumed,) = await daemon.history(session, "binding.resumed")
        assert payload(resumed)["replayCount"] == 2
