"""What a run has changed, told at its end (contract section 9).

Three witnesses: the host's own writes, the watcher over the session's folders, and what tool calls
say. The watcher is at work only while a run is.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
import msgspec
from anyio import CapacityLimiter
from anyio.abc import TaskGroup
from anyio.lowlevel import RunVar

from acphost.journal.event import Draft
from acphost.journal.reader import Reader
from acphost.journal.rows import RunRow, SessionRow
from acphost.session.claims import Claim
from acphost.session.consents import Consents
from acphost.session.scribe import note
from acphost.session.turn import Turn
from acphost.wire.base import AcpStruct
from acphost.wire.event import Kind
from acphost.wire.receipt import ChangedFile, Receipt, Refresh
from acphost.workspace.reading import Signature, digest_of
from acphost.workspace.roots import Roots, place_of
from acphost.workspace.tree import TreeWatch, signature_of
from acphost.workspace.writing import Written

#: Files in one receipt.
MAX_LISTED = 500
#: Of all of them together, so many bytes are digested: it happens while everything waits.
MAX_DIGESTED = 8 << 20
#: Files whose digest is remembered for the next receipt.
MAX_KNOWN = 5000
#: So many events before the one that ends a run its receipt is looked for.
NEAR_THE_END = 4
#: The kernel's news is taken in so often at most.
PAUSE = 0.02


_TAKING_IN: RunVar[CapacityLimiter] = RunVar("taking in what watched folders tell")


def _one_at_a_time() -> CapacityLimiter:
    try:
        return _TAKING_IN.get()
    except LookupError:
        _TAKING_IN.set(limiter := CapacityLimiter(1))
        return limiter


class _Place(AcpStruct, frozen=True):
    path: str | None = None
    relative_path: str | None = None


class _Target(AcpStruct, frozen=True):
    editor_target: _Place = _Place()


class Receipts:
    """Keeps the account of one session's run."""

    def __init__(
        self,
        row: SessionRow,
        tasks: TaskGroup,
        consents: Consents,
        *,
        is_watching: Callable[[], bool],
        roots: Callable[[], Awaitable[Roots]],
        keep_out: Path,
    ) -> None:
        """Changes below `keep_out` are not told."""
        self._row = row
        self._tasks = tasks
        self._consents = consents
        self._is_watching = is_watching
        self._roots = roots
        self._keep_out = keep_out
        self._watch: TreeWatch | None = None
        self._written: dict[str, Written] = {}
        self._had_command = False
        self._known: dict[str, tuple[Signature, str]] = {}

    # -- while it runs ----------------------------------------------------------------------------

    async def begin(self, turn: Turn) -> None:
        """Look at the folders before the agent is told anything."""
        self._written, self._had_command = {}, False
        if not self._is_watching():
            return
        roots = await self._roots()
        watch = await anyio.to_thread.run_sync(_opened, roots, self._keep_out)
        if turn.over.is_set():
            watch.close()
            return
        self._watch = watch
        self._tasks.start_soon(self._follow, watch)

    async def _follow(self, watch: TreeWatch) -> None:
        """Take in what the kernel tells before it has too much of it."""
        while (kernel := watch.kernel) is not None:
            try:
                await kernel.stirred()
            except anyio.ClosedResourceError:
                return
            # One for all sessions: many that watch the same folder are not to crowd out the loop.
            await anyio.to_thread.run_sync(watch.take_in, limiter=_one_at_a_time())
            await anyio.sleep(PAUSE)

    def note_written(self, written: Written) -> None:
        """The host has written a file for the agent."""
        first = self._written.get(written.path)
        if first is not None:
            was_stale = written.was_stale or first.was_stale
            written = replace(written, before=first.before, was_stale=was_stale)
        self._written[written.path] = written

    def note_command(self) -> None:
        """The host has run a command for the agent."""
        self._had_command = True

    # -- the end ----------------------------------------------------------------------------------

    def end(self, turn: Turn) -> Draft | None:
        """The receipt of the run as an event; None if nothing was changed."""
        watch, self._watch = self._watch, None
        if watch is not None:
            if watch.kernel is not None:
                watch.kernel.release()
            watch.close()
        claims = self._by_real_path(turn.claims.files)
        if watch is not None:
            # Of these only the watcher can tell whether they came to anything.
            left_open = self._by_real_path(turn.claims.left_open())
            seen = {path: claim for path, claim in left_open.items() if path in watch.touched}
            claims = seen | claims
        files, cut = self._files(watch, claims)
        if not files:
            return None
        incomplete = watch.incomplete if watch is not None else "the folders were not watched"
        was_stale = any(each.was_stale for each in self._written.values())
        receipt = Receipt(
            host_run_id=turn.run.run_id,
            changed_files=files,
            conflict="external-change-conflict" if was_stale else "none",
            refresh=self._refresh(turn.run, files, is_clean=not was_stale),
            incomplete=incomplete or cut,
        )
        return note(Kind.CHANGED_FILES, msgspec.to_builtins(receipt), run=turn.run)

    def _files(
        self, watch: TreeWatch | None, claims: dict[str, Claim]
    ) -> tuple[list[ChangedFile], str | None]:
        touched = {} if watch is None else watch.touched
        found: list[ChangedFile] = []
        budget = MAX_DIGESTED
        for path in dict.fromkeys([*self._written, *touched, *claims]):
            claim = claims.get(path)
            is_only_claimed = path not in self._written and path not in touched
            if is_only_claimed and watch is not None and watch.covers(path):
                continue  # whoever watches knows better
            if len(found) == MAX_LISTED:
                return found, f"more than {MAX_LISTED} files changed"
            old = None if watch is None else watch.before.get(path)
            one, spent = self._one(path, old, claim, budget)
            budget -= spent
            if one is not None:
                found.append(one)
        return found, None

    def _one(
        self, path: str, old: Signature | None, claim: Claim | None, budget: int
    ) -> tuple[ChangedFile | None, int]:
        """What became of a file, and how many bytes were looked at to tell."""
        written, now = self._written.get(path), signature_of(path)
        had_been = old is not None
        if written is not None:
            had_been = written.before is not None
        elif claim is not None and old is None:
            had_been = not claim.is_new
        if now == old or (now is None and not had_been):
            return None, 0
        after, spent = None, 0
        if now is not None and now.size <= budget:
            after, spent = digest_of(place_of(path), max_bytes=budget), now.size
        before = self._before(path, old, claim, after)
        if now is not None and after is not None:
            self._remember(path, now, after)
        if before is not None and before == after:
            return None, spent
        by = self._by(path, claim)
        is_certain = by == "tool"
        if written is not None:
            is_certain = after == written.after or (now is not None and now == written.signature)
        return ChangedFile(
            path=path,
            change="deleted" if now is None else "modified" if had_been else "created",
            by=by,
            before=_named(before),
            after=_named(after),
            certain=is_certain,
        ), spent

    def _before(
        self, path: str, old: Signature | None, claim: Claim | None, after: str | None
    ) -> str | None:
        written = self._written.get(path)
        if written is not None:
            return written.before
        known = self._known.get(path)
        if known is not None and known[0] == old:
            return known[1]
        # A diff whose new text is the whole file shows the whole old one too.
        if claim is not None and after is not None and claim.after == after:
            return claim.before
        return None

    def _by(self, path: str, claim: Claim | None) -> Literal["tool", "fs", "terminal", "agent"]:
        if path in self._written:
            return "fs"
        # Some agents name a file only where they ask for it.
        if claim is not None or self._consents.cover("edit", path):
            return "tool"
        return "terminal" if self._had_command else "agent"

    def _remember(self, path: str, signature: Signature, digest: str) -> None:
        self._known.pop(path, None)
        self._known[path] = (signature, digest)
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def _refresh(self, run: RunRow, files: list[ChangedFile], *, is_clean: bool) -> Refresh:
        current = self._current_file(run)
        touches = current is not None and any(each.path == current for each in files)
        return Refresh(
            touches_current_file=touches,
            should_refresh_editor=touches and is_clean,
            affected_parents=sorted({str(Path(each.path).parent) for each in files}),
        )

    def _current_file(self, run: RunRow) -> str | None:
        """The file that the run's editor target names, if it names one by its path."""
        if run.target is None:
            return None
        try:
            target = msgspec.json.decode(run.target, type=_Target).editor_target
        except msgspec.DecodeError:
            return None
        path = target.path or target.relative_path
        return None if path is None else self._real(path)

    def _by_real_path(self, claims: dict[str, Claim]) -> dict[str, Claim]:
        found = [(self._real(path), claim) for path, claim in claims.items() if path]
        return {path: claim for path, claim in found if path is not None}

    def _real(self, path: str) -> str | None:
        """Where a path leads; None for one that cannot be that of a file."""
        try:
            return os.path.realpath(Path(self._row.cwd, path))
        except (OSError, ValueError):
            return None


async def receipt_of(reader: Reader, run: RunRow) -> Receipt | None:
    """What an ended run has told of its changes; it is among the last that it said."""
    if run.terminal_seq is None:
        return None
    rows = await reader.events_after_seq(
        run.session_key, max(0, run.terminal_seq - 1 - NEAR_THE_END), limit=NEAR_THE_END,
        max_bytes=4 << 20, upto_seq=run.terminal_seq - 1, run_key=run.key,
    )  # fmt: skip
    for row in reversed(rows):
        if row.kind == Kind.CHANGED_FILES:
            return msgspec.json.decode(row.payload, type=Receipt)
    return None


def _opened(roots: Roots, keep_out: Path) -> TreeWatch:
    watch = TreeWatch(roots.folders, keep_out=os.path.realpath(keep_out))
    watch.open()
    return watch


def _named(digest: str | None) -> str | None:
    return None if digest is None else f"sha256:{digest}"
