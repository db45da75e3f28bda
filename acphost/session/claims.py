"""What the tool calls of a turn say they have changed. Pure, but for the digests.

An agent's word is no proof: the watcher over the folders has the last one wherever it can see.
"""

import hashlib
from typing import NamedTuple

import msgspec
from msgspec import Raw, UnsetType

from acphost.wire.acp import ToolReport
from acphost.wire.base import AcpStruct
from acphost.wire.event import Kind

#: Tools of these kinds change what they name as their places.
_CHANGING = frozenset({"edit", "delete", "move"})
#: A longer text is not looked at.
MAX_TEXT = 4 << 20
MAX_CLAIMS = 1000


class Claim(NamedTuple):
    """A file that a call names; digests of the texts of its diff, if it shows any."""

    before: str | None = None
    after: str | None = None
    is_new: bool = False


class _Item(AcpStruct, frozen=True):
    type: str = ""
    path: str = ""
    old_text: str | None = None
    new_text: str | None = None


class Claims:
    """By path, of the calls that have completed; what failed has, by its own word, done nothing."""

    def __init__(self) -> None:
        self.files: dict[str, Claim] = {}
        self._open: dict[str, dict[str, Claim]] = {}
        self._kinds: dict[str, str] = {}

    def take(self, kind: str, report: ToolReport) -> None:
        """A call was announced, changed or ended."""
        call = report.tool_call_id
        if call not in self._open and len(self._open) >= MAX_CLAIMS:
            return
        if report.kind is not None:
            self._kinds[call] = report.kind
        named = self._open.setdefault(call, {})
        if isinstance(report.locations, Raw) and self._kinds.get(call) in _CHANGING:
            for item in _items(report.locations):
                named.setdefault(item.path, Claim())
        if isinstance(report.content, Raw):
            for item in _items(report.content):
                if item.type == "diff":
                    named[item.path] = _of_diff(item)
        if kind == Kind.TOOL_COMPLETED:
            self.files |= named
            self.files.pop("", None)
        if kind in (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED) or len(self.files) > MAX_CLAIMS:
            self._open.pop(call, None)
            self._kinds.pop(call, None)

    def left_open(self) -> dict[str, Claim]:
        """What calls have named that never ended: some agents do not say how an edit ended."""
        return {path: claim for named in self._open.values() for path, claim in named.items()}


def _of_diff(item: _Item) -> Claim:
    return Claim(_digest(item.old_text), _digest(item.new_text), item.old_text is None)


def _digest(text: str | None) -> str | None:
    if text is None or len(text) > MAX_TEXT:
        return None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _items(raw: Raw | UnsetType) -> list[_Item]:
    """Those that can be read; one that cannot does not spoil the others."""
    try:
        pieces = msgspec.json.decode(raw, type=list[Raw] | None) if isinstance(raw, Raw) else None
    except msgspec.DecodeError:
        return []
    found = []
    for piece in pieces or ():
        try:
            found.append(msgspec.json.decode(piece, type=_Item))
        except msgspec.DecodeError:
            continue
    return found
