"""The main job, tried out: a throwaway daemon, the bundled agent, and the demo's own checks."""

from collections.abc import Iterator

from acphost.demo.show import Fact, show
from acphost.doctor.finding import Diagnosis, fine, problem
from acphost.errors import StartError
from acphost.wire.event import Event

_CURE = "`acphost demo` shows it step by step; please report it"


class _Silent:
    """Keeps what was shown to itself."""

    def __init__(self) -> None:
        self.found: list[Fact] = []

    def heading(self, text: str) -> None:
        """A new scene begins."""

    def say(self, text: str) -> None:
        """The narrator speaks."""

    def event(self, event: Event) -> None:
        """An event reached a client."""

    def facts(self, facts: list[Fact]) -> None:
        """The end: what was shown."""
        self.found = facts


async def try_out() -> list[Diagnosis]:
    """Send, ask and permit, kill, recover, in a scratch folder that is gone afterwards."""
    theatre = _Silent()
    try:
        await show(theatre)
    except StartError as exc:
        return [problem("trial", str(exc), _CURE)]
    except TimeoutError:
        return [problem("trial", "a step did not come to its end", _CURE)]
    return list(_judged(theatre.found))


def _judged(facts: list[Fact]) -> Iterator[Diagnosis]:
    for fact in facts:
        if fact.holds:
            yield fine("trial", fact.text)
        else:
            yield problem("trial", f"not so: {fact.text}", _CURE)
