"""Notices that an agent has gone quiet in mid-turn, and that it speaks again.

There is no limit on a turn: some agents try again for ever when their model's server fails, and say
nothing meanwhile. People are told, and decide.
"""

from collections.abc import Callable

import anyio

from acphost.provider.traits import Traits
from acphost.session.scribe import Scribe
from acphost.session.state import SessionState
from acphost.session.turn import Turn
from acphost.wire.base import timestamp

#: Says something about an agent to whoever follows the host.
TellState = Callable[[dict[str, object]], None]


class Watchman:
    """Keeps an ear on the turns of one session."""

    def __init__(
        self, state: SessionState, scribe: Scribe, traits: Traits, tell: TellState
    ) -> None:
        self._state = state
        self._scribe = scribe
        self._traits = traits
        self._tell = tell

    def is_quiet(self, threshold: float) -> bool:
        """Whether nothing was heard for longer than that, and nothing excuses it."""
        return self._state.is_quiet(threshold, self._traits.may_take_long)

    async def watch(self, turn: Turn, threshold: float) -> None:
        """Tell of each silence in a turn, and of its end, until cancelled."""
        while True:
            # Not before the threshold has passed since the last sign, however long that is ago.
            left = turn.heard + int(threshold * 1000) - self._state.ticks()
            await anyio.sleep(max(left + 1, 10 if left > 0 else int(threshold * 1000)) / 1000)
            if not self.is_quiet(threshold):
                continue
            turn.sound = anyio.Event()
            turn.is_quiet = True
            self._announce(turn, "quiet", threshold)
            await turn.sound.wait()
            turn.is_quiet = False
            self._announce(turn, "ready", threshold)

    def _announce(self, turn: Turn, word: str, threshold: float) -> None:
        self._scribe.write([])
        row = self._state.row
        told: dict[str, object] = {
            "agentId": row.agent_id,
            "state": word,
            "sessionId": row.session_id,
            "hostRunId": turn.run.run_id,
            "lastSignOfLifeAt": timestamp(turn.last_sign),
        }
        if word == "quiet":
            told["quietAfter"] = threshold
            told["reason"] = row.status_reason
            told["cure"] = "wait, or stop the run"
        self._tell(told)
