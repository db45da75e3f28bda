"""Lives of a daemon that end at a named point."""

import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

from acphost.archive.fsck import check_store
from acphost.errors import ConnectionLostError
from tests.support.daemon import Daemon

_LETHAL = Path(__file__).with_name("lethal.py")
#: Asked for more kills than the short run has, the points are tried one by one, not by sample.
IS_LONG = "ACPHOST_CRASH_KILLS" in os.environ


class Points:
    """The points of one kind, tried one after the other; `kills` and `passed` tell how many."""

    def __init__(self, daemon: Daemon, pattern: str) -> None:
        self._daemon = daemon
        self._pattern = pattern
        self._note = daemon.path("point")
        self.kills: list[str] = []
        self.left_out = 0

    def arm(self, count: int) -> None:
        """The next life ends at that point."""
        self._note.unlink(missing_ok=True)
        self._daemon.wrapper = [sys.executable, str(_LETHAL), self._pattern, str(count)]
        self._daemon.wrapper.append(str(self._note))

    def disarm(self) -> None:
        """The next life is like any other."""
        self._daemon.wrapper = []

    @property
    def was_reached(self) -> bool:
        """Whether the last life ended there, or is just about to."""
        return self._note.exists()

    def count(self) -> None:
        """Take note of a kill."""
        self.kills.append(self._note.read_text())

    def numbers(self, most: int) -> Iterator[int]:
        """Which points are tried: all there are, in a short run two of about `most`."""
        if IS_LONG:
            yield from range(1, 1000)
            raise AssertionError("there is no end of points")
        chosen = most // 3, most * 2 // 3
        self.left_out = most - len(chosen)
        yield from chosen

    async def lives(
        self,
        most: int,
        begin: Callable[[], None],
        *,
        all_there: bool = False,
        spur: Callable[[], Awaitable[object]] | None = None,
    ) -> AsyncIterator[int]:
        """Lives that ended at their points, each begun by `begin`; it ends with the first that
        did not, or, where a point may come long after the start, behind `most`, all of them there.

        `spur` asks the daemon for what leads there, where it does not come by itself.
        """
        for number in self.numbers(most):
            if all_there and number > most:
                break
            begin()
            self.arm(number)
            came_up = await self._daemon.comes_up()
            if came_up and spur is not None:
                with suppress(ConnectionLostError):
                    await spur()
            if came_up and not all_there and not self.was_reached:
                await self._daemon.kill()
                break
            await self._daemon.exit_code()
            self.count()
            yield number

    def report(self, what: str) -> str:
        """A line about it."""
        rest = f"; {self.left_out} more points in `make crash`" if self.left_out else ""
        return f"crash: {len(self.kills)} kills in {what}{rest}"


class SavedState:
    """The state directory as it was at one moment, to be put back again and again."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._copy = daemon.folder / "saved"
        shutil.copytree(daemon.state, self._copy)

    def put_back(self) -> None:
        """Make it the state directory once more."""
        shutil.rmtree(self._daemon.state)
        shutil.copytree(self._copy, self._daemon.state)


def sound(daemon: Daemon) -> None:
    """Whatever a kill left must be a store without a finding."""
    report = check_store(daemon.journal.path)
    assert report.is_clean, report.findings
