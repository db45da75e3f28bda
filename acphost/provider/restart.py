"""How often an agent that fails is started again: pure, the time is passed in."""

from collections import deque
from dataclasses import dataclass, field

#: First pause after a failed start, in milliseconds; it doubles with each further one.
FIRST_DELAY = 500
#: The longest pause, in milliseconds.
LAST_DELAY = 30_000
#: A process that lived this long was healthy: its end does not count as a failed start.
HEALTHY = 10_000


@dataclass(slots=True)
class RestartPolicy:
    """Allows `limit` failed starts within `window` milliseconds, each after twice the pause."""

    limit: int
    window: int
    _failures: deque[int] = field(default_factory=deque)

    def failed(self, now: int) -> None:
        """A start failed, or a process died young."""
        self._failures.append(now)
        self._forget(now)

    def ended(self, *, started: int, now: int) -> None:
        """A process that had started has gone by itself before it was of any use."""
        if now - started >= HEALTHY:
            self._failures.clear()
        else:
            self.failed(now)

    def reset(self) -> None:
        """It has answered a prompt, or its configuration has changed: a new chance."""
        self._failures.clear()

    def is_resting(self, now: int) -> bool:
        """Whether the limit is reached: nothing is started until a reset or a quiet window."""
        self._forget(now)
        return len(self._failures) >= self.limit

    def delay(self, now: int) -> int:
        """Milliseconds to wait before the next start."""
        self._forget(now)
        if not self._failures:
            return 0
        doublings = min(len(self._failures) - 1, 16)
        pause = min(FIRST_DELAY << doublings, LAST_DELAY)
        return max(0, self._failures[-1] + pause - now)

    def _forget(self, now: int) -> None:
        # The window counts from the latest failure: an agent that keeps failing keeps resting.
        if self._failures and now - self._failures[-1] > self.window:
            self._failures.clear()
