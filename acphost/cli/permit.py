"""`acphost permit`: what agents ask for, and the answer."""

import sys

import anyio
import msgspec

from acphost.cli.ask import Option, choose, options_of
from acphost.cli.daemon import pick, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.forms import KIND, answer_form, show_form, title_of
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.render import how_decided, question_of
from acphost.cli.screen import Pen, age, err, one_line, out, short
from acphost.client.client import Client
from acphost.wire.host import Decision
from acphost.wire.params import PermissionListParams

_PAGE = 500


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_permit, options)


async def all_decisions(client: Client, session_id: str | None = None) -> list[Decision]:
    """Every question that was ever asked, page by page."""
    found: list[Decision] = []
    cursor: str | None = None
    while True:
        page = await client.list_decisions(
            PermissionListParams(session_id=session_id, status="all", cursor=cursor, limit=_PAGE)
        )
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


async def _permit(options: Options) -> int:
    async with reach(options) as client:
        if options.all:
            _list(await all_decisions(client), as_json=options.json)
            return Exit.OK
        pending = {each.permission_id: each for each in (await client.list_decisions()).items}
        if options.permission is None:
            _list(list(pending.values()), as_json=options.json)
            return Exit.OK
        decision = pending[pick(options.permission, pending, "open question")]
        if decision.kind == KIND:
            resolved = await answer_form(client, decision, options.option, options.values)
            _report(resolved, str(resolved.outcome), as_json=options.json)
            return Exit.OK
        option = _chosen(decision, options.option)
        resolved = await client.respond(decision.permission_id, option.option_id)
        _report(resolved, one_line(option.name, 200), as_json=options.json)
        return Exit.OK


def _report(resolved: Decision, answer: str, *, as_json: bool) -> None:
    if as_json:
        print_json(resolved)
    else:
        out().line(f"answered: {answer}")


def _list(pending: list[Decision], *, as_json: bool) -> None:
    if as_json:
        print_json({"items": pending})
    elif not pending:
        err().line("nobody asks for anything")
    else:
        for decision in pending:
            _show(out(), decision)


def _show(pen: Pen, decision: Decision) -> None:
    head = (
        f"{short(decision.permission_id)}  {one_line(_question(decision), 100)}"
        f"  (session {short(decision.session_id)}, {age(decision.created_at)})"
    )
    pen.line(head, "bold")
    if decision.status != "pending":
        pen.line(f"    {pen.safe(how_decided(decision))}")
        return
    if decision.kind == KIND:
        show_form(pen, decision)
    for option in _options(decision):
        pen.line(f"    {pen.safe(option.option_id):<16} {pen.safe(option.name)}")


def _chosen(decision: Decision, word: str | None) -> Option:
    options = _options(decision)
    if word is None:
        if not sys.stdin.isatty():
            raise CommandError(
                f"say which: {', '.join(option.option_id for option in options)}", Exit.USAGE
            )
        pen = err()
        _show(pen, decision)
        pen.write("  choose: ")
        word = sys.stdin.readline()
    option = choose(word, options)
    if option is None:
        offered = ", ".join(option.option_id for option in options)
        raise CommandError(f"{word.strip()!r} was not offered; there are: {offered}", Exit.USAGE)
    return option


def _options(decision: Decision) -> list[Option]:
    return options_of(msgspec.json.decode(decision.options))


def _question(decision: Decision) -> str:
    request = msgspec.json.decode(decision.request)
    if decision.kind == KIND:
        return title_of(request)
    return question_of({**request, "kind": decision.kind} if isinstance(request, dict) else {})
