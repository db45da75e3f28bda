"""`acphost queue`: what waits in a session, in which order, and what it will say."""

import sys

import anyio
import msgspec
from anyio import to_thread

from acphost.cli.daemon import find_session, pick, reach
from acphost.cli.exits import CommandError, Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.scratchpad import edited
from acphost.cli.screen import age, err, one_line, out, short, table
from acphost.client.client import Client
from acphost.wire.host import QueuedRun, Session, SessionStatus

_PREVIEW = 60


def run(options: Options) -> int:
    """Run the command."""
    if options.action in ("edit", "move") and options.run is None:
        raise CommandError(f"which run? acphost queue SESSION {options.action} RUN …", Exit.USAGE)
    session, items = anyio.run(_queue, options)
    if options.json:
        print_json({"items": items})
        return Exit.OK
    pen, aside = out(), err()
    is_held = session.status == SessionStatus.HELD
    held = items[0].held_reason if items else session.status_reason if is_held else None
    if held:
        release = f"acphost queue {short(session.session_id)} release"
        aside.line(f"held: {aside.safe(held)}; `{release}` lets it go on")
    if session.recovery is not None:
        recover = f"acphost recover {short(session.session_id)}"
        aside.line(f"a run is of unknown outcome; `{recover}` shows it")
    if not items:
        aside.line("nothing waits")
        return Exit.OK
    rows = [
        (
            str(each.position),
            short(each.run_id),
            age(each.created_at),
            one_line(each.preview, _PREVIEW),
        )
        for each in items
    ]
    for line in table(("BEHIND", "RUN", "SENT", "TEXT"), rows):
        pen.line(line)
    return Exit.OK


async def _queue(options: Options) -> tuple[Session, list[QueuedRun]]:
    async with reach(options) as client:
        session = await find_session(client, options.session)
        if options.action == "hold":
            await client.queue_hold(session.session_id, "held by hand")
        elif options.action == "release":
            await client.queue_release(session.session_id)
        elif options.action in ("edit", "move"):
            await _change(client, session.session_id, options)
        items = (await client.queue_list(session.session_id)).items
        return await client.session(session.session_id), items


async def _change(client: Client, session_id: str, options: Options) -> None:
    """Change the text of what waits, or its place."""
    items = (await client.queue_list(session_id)).items
    found = pick(options.run, [each.run_id for each in items], "waiting run")
    item = next(each for each in items if each.run_id == found)
    if options.action == "move":
        place = _place(options.words, items)
        await client.queue_move(found, place, expected_rev=item.rev)
    else:
        text = await to_thread.run_sync(_new_text, options.words, item)
        await client.queue_edit(found, text, expected_rev=item.rev)


def _place(words: list[str], items: list[QueuedRun]) -> int:
    """The position that is meant: `first`, `last`, or a number as the list shows it."""
    (word,) = words or ["first"]
    if word in ("first", "last"):
        return items[0 if word == "first" else -1].position
    if not word.isdecimal():
        raise CommandError(f"no place {word!r}: first, last, or a number as listed", Exit.USAGE)
    return int(word)


def _new_text(words: list[str], item: QueuedRun) -> str:
    """What was given, what stdin holds for -, or what comes out of an editor."""
    if words == ["-"]:
        return sys.stdin.read()
    if words:
        return " ".join(words)
    blocks = msgspec.json.decode(item.payload, type=list[dict[str, object]])
    if [block.get("type") for block in blocks] != ["text"]:
        raise CommandError("it is more than a text; give the new text after RUN to replace it all")
    return edited(str(blocks[0].get("text", "")))
