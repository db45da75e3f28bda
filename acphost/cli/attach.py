"""`acphost attach`: a session's conversation, as it was and as it goes on."""

import anyio

from acphost.cli.ask import Asker, has_terminal
from acphost.cli.daemon import find_session, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.follow import JsonLines, Viewer, follow, on_interrupt, state_teller
from acphost.cli.parser import Options
from acphost.cli.render import Renderer
from acphost.cli.screen import Pen, err, out, short
from acphost.client.client import Client
from acphost.wire.event import Event


def run(options: Options) -> int:
    """Run the command."""
    return anyio.run(_attach, options)


async def _attach(options: Options) -> int:
    after = options.after
    if after not in (None, "now") and not after.isdecimal():
        raise CommandError(f"--after takes a seq or now, not {after!r}", Exit.USAGE)
    aside = err()
    # Whoever follows a session wants to see it again when the daemon is back, however late.
    can_ask = has_terminal(aside) and not options.json
    async with reach(
        options, patience=None, can_ask=can_ask, on_state=state_teller(aside)
    ) as client:
        session = await find_session(client, options.session)
        await _follow(client, session.session_id, after, aside, as_json=options.json)
    return Exit.INTERRUPTED


async def _follow(
    client: Client, session_id: str, after: str | None, aside: Pen, *, as_json: bool
) -> None:
    asker = Asker(client, aside)
    # One stream for all of it: here the conversation is the result, not only the answer.
    pen = out()

    def on_live() -> None:
        aside.line(f"following session {short(session_id)}; Ctrl-C leaves it alone", "dim")

    view = JsonLines() if as_json else Viewer(Renderer(pen, pen), asker, on_live=on_live)
    async with anyio.create_task_group() as tasks:

        async def leave() -> None:
            tasks.cancel_scope.cancel()

        tasks.start_soon(on_interrupt, leave)
        tasks.start_soon(asker.run)
        async with client.subscribe(session_id=session_id, after=after) as events:
            await follow(events, view, is_last=_never)


def _never(_: Event) -> bool:
    return False
