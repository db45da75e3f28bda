"""`acphost recover`: the runs whose outcome nobody knows, what they did, and what can be done."""

from typing import NamedTuple

import anyio
import msgspec

from acphost.cli.daemon import pick, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import age, err, one_line, out, short, table
from acphost.client.client import Client
from acphost.client.connecting import PATIENCE
from acphost.wire.host import Run, RunStatus
from acphost.wire.params import RunListParams

_PREVIEW = 60
#: So many files are named in a table.
_FILES = 3


class _Cut(NamedTuple):
    """A run that was cut, what it was asked, and what came last."""

    run: Run
    text: str
    last: str


def run(options: Options) -> int:
    """Run the command."""
    if options.action != "show" and options.target is None:
        raise CommandError(f"which run? acphost recover RUN {options.action}", Exit.USAGE)
    cut, done = anyio.run(_recover, options)
    if options.json:
        print_json({"items": [each.run for each in cut]} if done is None else done)
    elif done is not None:
        said = "is over" if options.action == "dismiss" else f"is tried again as {done.host_run_id}"
        out().line(f"run {short(cut[0].run.host_run_id)} {said}")
    elif cut:
        _print(cut)
    else:
        err().line("no run is of unknown outcome")
    return Exit.OK


async def _recover(options: Options) -> tuple[list[_Cut], Run | None]:
    async with reach(options, patience=PATIENCE) as client:
        runs = await _unresolved(client)
        if options.target is not None:
            runs = [_chosen(runs, options.target)]
        cut = [await _looked_at(client, each) for each in runs]
        if options.action == "dismiss":
            return cut, await client.dismiss(runs[0].host_run_id)
        if options.action == "resume":
            run_id, anew = runs[0].host_run_id, options.with_history
            return cut, await client.resume(run_id, with_history=anew)
        return cut, None


async def _unresolved(client: Client) -> list[Run]:
    """Every interrupted run that is still to be decided about, the newest first."""
    asked, found = RunListParams(status=RunStatus.INTERRUPTED, limit=200), list[Run]()
    while True:
        page = await client.list_runs(asked)
        for each in page.items:
            if each.dismissed_at is None:
                found.append(await client.run(each.host_run_id))
        if page.next_cursor is None:
            return [each for each in found if each.recovery is not None]
        asked = msgspec.structs.replace(asked, cursor=page.next_cursor)


def _chosen(runs: list[Run], wanted: str) -> Run:
    """The run of that id, or the latest of the session of that id."""
    by_id = {each.session_id: each for each in reversed(runs)}
    by_id |= {each.host_run_id: each for each in runs}
    return by_id[pick(wanted, by_id, "run of unknown outcome, or session with one,")]


async def _looked_at(client: Client, cut: Run) -> _Cut:
    (first, *_) = (await client.run_events(cut.host_run_id, limit=1)).events
    said = msgspec.json.decode(first.payload).get("prompt") or []
    texts = [str(block["text"]) for block in said if block.get("type") == "text"]
    # The last of its own: after it only its end was written.
    end = int(cut.terminal_seq or cut.last_seq or 0)
    before = (await client.run_events(cut.host_run_id, after_seq=max(0, end - 100))).events
    kinds = [each.kind for each in before if not each.synthetic and int(each.seq or 0) < end]
    return _Cut(cut, " ".join(texts), kinds[-1] if kinds else "")


def _print(cut: list[_Cut]) -> None:
    pen, rows = out(), list[tuple[str, ...]]()
    for run, text, last in cut:
        recovery = run.recovery
        files = recovery.files_touched if recovery is not None else []
        more = f" +{len(files) - _FILES}" if len(files) > _FILES else ""
        rows.append((
            short(run.host_run_id), short(run.session_id), age(run.ended_at or run.updated_at),
            run.error_code or "", one_line(text, _PREVIEW), last,
            one_line(", ".join(files[:_FILES]) + more, 2 * _PREVIEW),
        ))  # fmt: skip
    head, *lines = table(
        ("RUN", "SESSION", "CUT", "WHY", "TEXT", "LAST EVENT", "FILES"), rows, pen.width
    )
    pen.line(head, "bold")
    for line in lines:
        pen.line(line.rstrip())
    aside, name = err(), short(cut[0].run.host_run_id)
    aside.line(f"`acphost recover {name} resume` sends it once more, as a run of its own; with")
    aside.line("`--with-history` to an agent that is told the history; `dismiss`: it was seen to")
