"""`acphost set`: what can be set in a session's agent, and setting it."""

from collections.abc import Sequence

import anyio
from msgspec import UNSET

from acphost.cli.daemon import all_sessions, pick, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import Pen, err, out
from acphost.wire.controls import Control
from acphost.wire.host import Session


def run(options: Options) -> int:
    """Run the command."""
    wishes = read_wishes(options.settings)
    session = anyio.run(_set, options, wishes)
    if options.json:
        print_json(session)
    else:
        _show(out(), session)
    return Exit.OK


def read_wishes(words: Sequence[str]) -> dict[str, str | None]:
    """`KEY=VALUE` each; an empty value is none. Raises CommandError."""
    wishes: dict[str, str | None] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise CommandError(f"{word!r} is not KEY=VALUE", Exit.USAGE)
        wishes[key] = value or None
    return wishes


async def _set(options: Options, wishes: dict[str, str | None]) -> Session:
    async with reach(options) as client:
        sessions = {each.session_id: each for each in await all_sessions(client)}
        session_id = pick(options.session, sessions, "session")
        if not wishes:
            return await client.session(session_id)
        return await client.configure(
            session_id,
            mode=wishes.pop("mode", UNSET),
            model=wishes.pop("model", UNSET),
            options=wishes,
        )


def _show(pen: Pen, session: Session) -> None:
    controls = session.settable or []
    if not controls:
        err().line("nothing can be set, as far as is known: the agent tells when it has started")
    for control in controls:
        pen.line(_head(pen, control), "bold")
        for choice in control.choices:
            mark = "*" if choice.value == control.value else " "
            text = "" if choice.name == choice.value else f"  {choice.name}"
            pen.line(pen.safe(f"  {mark} {choice.value}{text}"))
    if session.status_reason:
        err().line(session.status_reason)


def _head(pen: Pen, control: Control) -> str:
    head = f"{control.key} = {_word(control.value)}"
    if control.chosen is not None and control.chosen != control.value:
        head += f"  (chosen: {_word(control.chosen)}, set when the agent starts)"
    return pen.safe(head if control.kind == "select" else f"{head}  (true or false)")


def _word(value: str | bool | None) -> str:
    if value is None:
        return "?"
    return value if isinstance(value, str) else str(value).lower()
