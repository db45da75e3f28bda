"""What each launch has started, looked up while its parents live: later nothing else may tell."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from acphost.transport import process_table
from acphost.transport.process_table import Entry
from acphost.transport.processes import Process


class Relative(NamedTuple):
    """A process that a launch has started, and its group."""

    pid: int
    birth: str
    group: int

    @property
    def process(self) -> Process:
        """It, so that no later user of its pid is taken for it."""
        return Process(self.pid, self.birth)


def remembered(text: str | None) -> list[Relative]:
    """What a ledger says was seen. Raises msgspec.DecodeError for what no ledger would say."""
    return msgspec.json.decode(text or "[]", type=list[Relative])


def relatives(known: Mapping[str, Iterable[Process]]) -> dict[str, list[Relative]]:
    """What lives of each launch below its known processes, and of these; the first is left out.

    One look at the system for all of them; it reads a file of each process there is: it blocks.
    """
    living = {each.pid: each for each in process_table.entries() if not each.is_dead}
    children: dict[int, list[Entry]] = {}
    for each in living.values():
        children.setdefault(each.parent, []).append(each)
    return {launch: _below(list(family), living, children) for launch, family in known.items()}


def _below(
    family: list[Process], living: Mapping[int, Entry], children: Mapping[int, list[Entry]]
) -> list[Relative]:
    found: dict[int, Entry] = {}
    waiting = [
        each.pid for each in family if each.pid in living and living[each.pid].identity == each
    ]
    for pid in waiting:
        found[pid] = living[pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    if family:
        found.pop(family[0].pid, None)
    return [Relative(each.pid, each.birth, each.group) for _, each in sorted(found.items())]
