"""`acphost status`: the daemon at a glance, or one session in full."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from acphost.cli.daemon import all_sessions, find_session, place_of, reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import size
from acphost.cli.screen import Pen, one_line, out, plain, short, table
from acphost.client.client import Client
from acphost.errors import StorageError, StorageFullError
from acphost.wire.host import Session, SessionStatus
from acphost.wire.status import RuntimeStatus

_TITLE = 200
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000

#: Where no agent works, and what is said of so many.
_AT_REST = {
    SessionStatus.IDLE: "",
    SessionStatus.HELD: "held",
    SessionStatus.AUTH_REQUIRED: "with an agent that wants a login",
    SessionStatus.FAILED: "with an agent that cannot be had",
}

#: By what the daemon finds all that agents start.
_CONTAINMENT = {
    "cgroup": "a control group for each agent",
    "subreaper": "process groups, and orphans come to the daemon",
    "mark": "process groups and a mark in the environment",
}


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_status, options)


async def _status(options: Options) -> int:
    async with reach(options) as client:
        if options.session is not None:
            session = await find_session(client, options.session)
            status = await client.status(session.session_id)
            if options.json:
                print_json(status)
            else:
                _print_session(out(), session, status)
        elif options.json:
            print_json({"socket": place_of(options), **await _everything(client)})
        else:
            await _print_daemon(client, options)
    return Exit.OK


async def _everything(client: Client) -> dict[str, object]:
    return {
        "host": client.info,
        "ping": await client.ping(),
        "stats": await client.stats(),
        "items": await client.statuses(),
    }


async def _print_daemon(client: Client, options: Options) -> None:
    pen, info, stats = out(), client.info, await client.stats()
    daemon = (
        ("daemon", f"{info.host_info.name} {info.host_info.version}, pid {info.host_info.pid}"),
        ("up", duration((await client.ping()).uptime_ms)),
        ("socket", place_of(options)),
        ("store", info.store_id),
        ("disk", _disk(stats)),
    )
    try:
        sessions = await all_sessions(client)
    except (StorageError, StorageFullError):
        # What the last daemon left cannot be put right before it can be written down.
        _pairs(pen, *daemon, ("sessions", "not to be told before the disk takes writes"))
        return
    agents = (await client.agents()).agents
    waiting = (await client.list_decisions()).items
    ready = [each.agent_id for each in agents if each.health.state == "ready"]
    shown = [each for each in sessions if each.status != SessionStatus.IDLE]
    config = stats.get("config")
    problem = config.get("problem") if isinstance(config, dict) else None
    _pairs(
        pen,
        *daemon,
        ("agents", f"{', '.join(ready) or 'none'} ready; {len(agents)} configured"),
        ("kept by", _CONTAINMENT.get(str(stats.get("containment")))),
        ("config", problem and f"mistakes, the last good one counts: {problem}"),
        ("sessions", _counted(sessions)),
        ("questions", f"{len(waiting)} open; `acphost permit` lists them" if waiting else "none"),
    )
    if shown:
        pen.line()
        for line in table(
            ("ID", "AGENT", "STATUS", "QUEUED", "WHY"),
            [
                (
                    short(each.session_id),
                    each.agent_id,
                    each.status,
                    str(each.queued_count or ""),
                    each.status_reason or "",
                )
                for each in shown
            ],
            pen.width,
        ):
            pen.line(line.rstrip())


def _disk(stats: Mapping[str, Any]) -> str | None:
    """What is wrong with where the journal is kept; None if nothing is."""
    storage, journal = stats.get("storage") or {}, stats.get("journal") or {}
    if storage.get("state") not in {None, "ok"}:
        return (
            f"cannot be written since {storage.get('since')}: {storage.get('reason')}; agents wait "
            "and sends are refused until it can"
        )
    if journal.get("agentsWait"):
        return f"too slow: {size(journal.get('uncommittedBytes', 0))} wait for it, and agents wait"
    if journal.get("walOverLimit"):
        held = "held open by a program that reads the store"
        return f"the write-ahead log has {size(journal.get('walBytes', 0))}, {held}"
    return None


def _print_session(pen: Pen, session: Session, status: RuntimeStatus) -> None:
    binding = status.acp.live_binding if status.acp is not None else None
    run, usage = status.active_run, status.usage.context
    model = status.model.resolved_model or "model unknown"
    _pairs(
        pen,
        ("session", session.session_id),
        ("title", session.title and one_line(session.title, _TITLE)),
        ("agent", f"{session.agent_id} ({status.runtime}), {model}"),
        ("folder", plain(session.cwd)),
        ("status", _because(status.status, status.status_reason)),
        ("run", f"{run.run_id} {run.status}" if run is not None else "none"),
        ("unknown", _unknown(session)),
        ("queue", _because(f"{status.queue.queued} waiting", status.queue.held, "held: ")),
        ("memory", _because(f"{status.continuity.code} ({status.mode})", status.continuity.reason)),
        ("process", f"pid {binding.pid}, {binding.status}" if binding is not None else "none"),
        ("can load", _yes_no(status.acp.supports_session_load) if status.acp is not None else None),
        ("last sign", status.last_sign_of_life_at),
        ("context", context_of(usage.used, usage.size)),
        ("tokens", _tokens(status)),
        ("cost", status.usage.cost),
        ("events", str(int(session.last_seq))),
    )
    for line in status.logs:
        pen.line(f"  {pen.safe(line)}", "dim")


def _unknown(session: Session) -> str | None:
    """What is known of a run whose outcome is not."""
    recovery = session.recovery
    if recovery is None:
        return None
    files = ", ".join(recovery.files_touched) or "no file that was named"
    return (
        f"the outcome of a run; its last event was {int(recovery.last_seq)}, it touched {files}: "
        f"`acphost recover {short(session.session_id)}`"
    )


def _tokens(status: RuntimeStatus) -> str | None:
    usage = status.usage
    if usage.session_tokens is None:
        return None
    last = "" if usage.last_run_tokens is None else f", {usage.last_run_tokens} of them last"
    return f"{usage.session_tokens}{last}"


def context_of(used: int | None, size: int | None) -> str | None:
    """How full the context is; None where that is unknown."""
    if used is None:
        return None
    return f"{used} tokens" if size is None else f"{used} of {size} tokens"


def _counted(sessions: Sequence[Session]) -> str:
    """How many there are, and how many of them are in a state that somebody should know of."""
    counts = Counter(each.status for each in sessions)
    busy = sum(count for status, count in counts.items() if status not in _AT_REST)
    aside = [
        f", {counts[status]} {words}"
        for status, words in _AT_REST.items()
        if words and counts[status]
    ]
    return f"{len(sessions)}, {busy} of them at work{''.join(aside)}"


def _pairs(pen: Pen, *pairs: tuple[str, str | None]) -> None:
    for name, value in pairs:
        if value is not None:
            pen.line(f"{pen.paint(f'{name:<10}', 'bold')} {pen.safe(value)}")


def _because(what: str, reason: str | None, word: str = "") -> str:
    return what if not reason else f"{what}: {word}{reason}"


def _yes_no(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def duration(milliseconds: int) -> str:
    """A length of time in its two largest units."""
    for unit, name, inner, inner_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "m"),
        (_MINUTE, "m", _SECOND, "s"),
    ):
        if milliseconds >= unit:
            return f"{milliseconds // unit}{name} {milliseconds % unit // inner}{inner_name}"
    return f"{milliseconds // _SECOND}s"
