"""The runs that wait for a session's agent, first come first served. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from acphost.errors import QueueFullError
from acphost.journal.rows import RunRow


@dataclass(slots=True)
class Waiting:
    """A run and the prompt it will send."""

    run: RunRow
    content: bytes
    #: The trace context that its request came with.
    trace: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class RunQueue:
    """FIFO by `queue_order`, which only grows, so that order survives in the store."""

    limit: int
    _waiting: list[Waiting] = field(default_factory=list)
    _last_order: int = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting)

    @property
    def head(self) -> Waiting | None:
        """The run whose turn it is next."""
        return self._waiting[0] if self._waiting else None

    def next_order(self) -> int:
        """The order of a run that joins now. Raises QueueFullError at the limit."""
        if len(self._waiting) >= self.limit:
            raise QueueFullError(
                f"{self.limit} runs wait already; cancel some or let the agent catch up"
            )
        return self._last_order + 1

    def join(self, waiting: Waiting) -> None:
        """Add a run at the end, or where its order puts it when read back from the store."""
        self._waiting.append(waiting)
        self._waiting.sort(key=lambda each: each.run.queue_order)
        self._last_order = max(self._last_order, waiting.run.queue_order)

    def leave(self, run_id: str) -> Waiting | None:
        """Take a run out, because it starts or was cancelled."""
        for index, each in enumerate(self._waiting):
            if each.run.run_id == run_id:
                return self._waiting.pop(index)
        return None

    def move(self, run_id: str, place: int) -> list[RunRow]:
        """Put a waiting run at a place, 0 for the head; returns the runs whose order that changed.

        The orders that were given stay the same ones, so that none is ever given twice.
        """
        moved = self._waiting.pop(self.place_of(run_id))
        orders = sorted(each.run.queue_order for each in (*self._waiting, moved))
        self._waiting.insert(place, moved)
        changed = []
        for each, order in zip(self._waiting, orders, strict=True):
            if each.run.queue_order != order:
                each.run.queue_order = order
                changed.append(each.run)
        return changed

    def place_of(self, run_id: str) -> int:
        """How many wait before a waiting run."""
        return next(n for n, each in enumerate(self._waiting) if each.run.run_id == run_id)

    def find(self, run_id: str) -> Waiting | None:
        """The waiting run of that id."""
        return next((each for each in self._waiting if each.run.run_id == run_id), None)
