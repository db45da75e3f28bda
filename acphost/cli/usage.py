"""`acphost usage`: what sessions have used; what nobody has told stays empty."""

import anyio

from acphost.cli.daemon import all_sessions, find_session, reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import Pen, out, short, table
from acphost.cli.status import context_of
from acphost.wire.host import Session
from acphost.wire.usage import UsageProjection

_HEAD = ("ID", "AGENT", "TOKENS", "LAST RUN", "CONTEXT", "COST")


def run(options: Options) -> int:
    """Run the command."""
    found = anyio.run(_usage, options)
    if options.json:
        usages = [usage for _, usage in found]
        print_json(usages[0] if options.session is not None else {"items": usages})
    elif options.session is not None:
        _print_one(out(), found[0][1])
    else:
        _print_all(out(), found)
    return Exit.OK


async def _usage(options: Options) -> list[tuple[Session, UsageProjection]]:
    async with reach(options) as client:
        if options.session is not None:
            sessions = [await find_session(client, options.session)]
        else:
            sessions = await all_sessions(client)
        return [(each, await client.usage(each.session_id)) for each in sessions]


def _print_all(pen: Pen, found: list[tuple[Session, UsageProjection]]) -> None:
    rows = [
        (
            short(session.session_id),
            session.agent_id,
            _number(usage.session.tokens),
            _number(usage.run.total),
            context_of(usage.context.used, usage.context.size) or "",
            usage.session.cost or "",
        )
        for session, usage in found
    ]
    head, *lines = table(_HEAD, rows)
    pen.line(head, "bold")
    for line in lines:
        pen.line(line.rstrip())


def _print_one(pen: Pen, usage: UsageProjection) -> None:
    run_, session = usage.run, usage.session
    told = (
        ("session", usage.session_id),
        ("context", context_of(usage.context.used, usage.context.size)),
        ("tokens", _parts(session.tokens, prompt=session.prompt, completion=session.completion,
                          cached=session.cache_hit)),
        ("cost", session.cost),
        ("last run", _parts(run_.total, prompt=run_.prompt, completion=run_.completion,
                            reasoning=run_.reasoning, cached=run_.cache)),
        ("its cost", run_.cost),
    )  # fmt: skip
    for name, value in told:
        pen.line(f"{pen.paint(f'{name:<10}', 'bold')} {pen.safe(value or 'unknown')}")
    if session.carryover:
        pen.line(f"{'':<10} {session.carryover} tokens before the agent was last started")
    for share in usage.by_model:
        cost = f", {share.cost}" if share.cost else ""
        model = pen.safe(share.model or "model unknown")
        pen.line(f"{'':<10} {model}: {_number(share.tokens)} tokens{cost}")


def _parts(total: int | None, **parts: int | None) -> str | None:
    if total is None:
        return None
    told = ", ".join(f"{name} {count}" for name, count in parts.items() if count is not None)
    return f"{total} ({told})" if told else str(total)


def _number(count: int | None) -> str:
    return "" if count is None else str(count)
