"""Figures, and how they are shown to people and to programs."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median


class BenchError(Exception):
    """Something did not work, so there is nothing to compare."""


_COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, beside the bare loop's where it has one, and what it should be."""

    name: str
    unit: str
    ours: float
    bare: float | None = None
    #: What `bare` was measured on, if it is not the bare loop.
    beside: str = "bare loop"
    #: Compared with the ratio where there is one, else with `ours`: an operator and a number.
    target: tuple[str, float] | None = None
    #: Every round, in the order of the rounds.
    rounds: Sequence[float] = ()

    @property
    def ratio(self) -> float | None:
        """Ours by the other."""
        return None if self.bare is None else self.ours / self.bare

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        sign, limit = self.target
        return bool(_COMPARE[sign](self.ours if self.ratio is None else self.ratio, limit))

    def line(self) -> str:
        """For people."""
        parts = [f"  {self.name:<30}{_number(self.ours):>9} {self.unit:<10}"]
        if self.bare is not None and self.ratio is not None:
            parts.append(f"{self.beside} {_number(self.bare):>9}   ratio {self.ratio:.2f}")
        if self.target is not None:
            sign, limit = self.target
            parts.append(f"target {sign} {limit:g} {'met' if self.holds else 'MISSED'}")
        return "   ".join(parts).rstrip()


@dataclass(frozen=True, slots=True)
class Item:
    """One measurement of the bench with all its figures."""

    name: str
    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = field(default=())

    def lines(self) -> Iterable[str]:
        """For people."""
        yield f"{self.name}: {self.title}"
        yield from (figure.line() for figure in self.figures)
        yield from (f"  {note}" for note in self.notes)

    def data(self) -> dict[str, object]:
        """For programs."""
        figures = [
            asdict(figure) | {"ratio": figure.ratio, "holds": figure.holds}
            for figure in self.figures
        ]
        return {
            "name": self.name, "title": self.title, "figures": figures, "notes": list(self.notes),
        }  # fmt: skip


def compared(
    name: str,
    unit: str,
    ours: Sequence[float],
    bare: Sequence[float],
    *,
    target: tuple[str, float],
    beside: str = "bare loop",
) -> Figure:
    """The medians of two series that were measured in turns."""
    return Figure(
        name=name, unit=unit, ours=median(ours), bare=median(bare), beside=beside,
        target=target, rounds=tuple(ours),
    )  # fmt: skip


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
