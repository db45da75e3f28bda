"""`acphost send`: one message, its answer as it comes, and an exit code that tells how it ended."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from acphost.cli.ask import Asker, has_terminal
from acphost.cli.daemon import all_sessions, find_session, folder_of, reach, workspace_of
from acphost.cli.exits import CommandError, Exit
from acphost.cli.follow import JsonLines, Viewer, follow, on_interrupt, state_teller
from acphost.cli.parser import Options
from acphost.cli.render import Renderer, payload_of
from acphost.cli.screen import Pen, err, out, short
from acphost.cli.text import read_stdin, sendable
from acphost.client.choice import default_agent
from acphost.client.client import Client
from acphost.client.connecting import PATIENCE
from acphost.wire.event import TERMINAL_KINDS, Event, Kind
from acphost.wire.host import Run, RunStatus, SessionStatus

#: How long (seconds) nothing is said while a message waits; each further silence is twice as long.
_SPEAK_AFTER = 2.0


def run(options: Options) -> int:
    """Run the command."""
    text = _text(options.text)
    return anyio.run(_send, options, text)


def _text(words: list[str]) -> str:
    """The message: the words, or what stdin holds for `-` or for nothing in a pipe."""
    if words == ["-"] or (not words and not sys.stdin.isatty()):
        text = read_stdin()
    else:
        text = " ".join(words)
    if not text.strip():
        raise CommandError("nothing to send: give a TEXT, or - to read it from stdin", Exit.USAGE)
    return text


async def _send(options: Options, text: str) -> int:
    aside = err()
    can_ask = has_terminal(aside) and not options.json
    async with reach(
        options, patience=PATIENCE, can_ask=can_ask, on_state=state_teller(aside)
    ) as client:
        run = await _create(client, options, text, folder_of(options))
        aside.line(
            f"{run.agent_id} · session {run.session_id} · go on with:"
            f" acphost send --session {short(run.session_id)} …",
            "dim",
        )
        return await _watch(client, run, aside, as_json=options.json)


# -- where the message goes -----------------------------------------------------------------------


async def _create(client: Client, options: Options, text: str, folder: Path) -> Run:
    if options.session is not None:
        session = await find_session(client, options.session)
    elif options.latest:
        known = await all_sessions(
            client, workspace_id=workspace_of(folder), agent_id=options.agent
        )
        if not known:
            raise CommandError(f"no session in {folder} to go on with; leave out --continue")
        session = max(known, key=lambda each: each.updated_at)
    else:
        agent_id = options.agent or default_agent(await client.agents())
        return await client.create_run(text, agent_id=agent_id, cwd=sendable(folder))
    return await client.create_run(text, session_id=session.session_id, agent_id=options.agent)


# -- watching it ----------------------------------------------------------------------------------


class _Ending:
    """What Ctrl-C did so far."""

    def __init__(self, client: Client, run: Run, aside: Pen, leave: Callable[[], None]) -> None:
        self._client = client
        self._run = run
        self._aside = aside
        self._leave = leave
        self.was_cancelled_here = False
        self.has_left = False

    async def cancel(self) -> None:
        """The first Ctrl-C: stop the run, and see how it ends."""
        self.was_cancelled_here = True
        self._aside.line("stopping the run … (Ctrl-C again leaves it alone)", "yellow")
        await self._client.cancel(self._run.host_run_id)

    async def leave(self) -> None:
        """The second: go, whatever the agent does."""
        self.has_left = True
        self._aside.line("left; `acphost status` tells how it goes on", "yellow")
        self._leave()


async def _watch(client: Client, run: Run, aside: Pen, *, as_json: bool) -> int:
    asker = Asker(client, aside)
    renderer = Renderer(out(), aside, shows_user=False)
    last: Event | None = None
    async with anyio.create_task_group() as tasks:
        ending = _Ending(client, run, aside, tasks.cancel_scope.cancel)
        tasks.start_soon(partial(on_interrupt, ending.cancel, ending.leave))
        tasks.start_soon(asker.run)
        if not as_json:
            tasks.start_soon(_tell_why_it_waits, client, run, aside)
        async with client.subscribe(run_id=run.host_run_id) as events:
            view = JsonLines() if as_json else Viewer(renderer, asker)
            last = await follow(events, view, is_last=_is_last)
        tasks.cancel_scope.cancel()
    renderer.finish()
    if ending.has_left or last is None:
        return Exit.INTERRUPTED
    if last.kind == Kind.ERROR:
        aside.line(f"the message waits; log in with: acphost agents login {run.agent_id}", "yellow")
        return Exit.NOT_PERMITTED
    if last.kind == Kind.RUN_CANCELLED and ending.was_cancelled_here:
        return Exit.INTERRUPTED
    return Exit.OK if last.kind == Kind.RUN_COMPLETED else Exit.FAILURE


async def _tell_why_it_waits(client: Client, run: Run, aside: Pen) -> None:
    """Until the agent has the message: say what stands in its way, ever more seldom."""
    began, pause = anyio.current_time(), _SPEAK_AFTER
    while True:
        await anyio.sleep(pause)
        pause *= 2
        if (await client.run(run.host_run_id)).status != RunStatus.PENDING:
            return
        session = await client.session(run.session_id)
        waited = int(anyio.current_time() - began)
        if session.status == SessionStatus.STARTING:
            why = f"{run.agent_id} is starting, and has not answered yet"
        elif session.status == SessionStatus.HELD:
            release = f"acphost queue {short(run.session_id)} release"
            why = f"the queue is held ({session.status_reason}); `{release}` ends that"
        else:
            why = "another message of this session is being answered first"
        aside.line(f"{why} ({waited} s)", "dim")


def _is_last(event: Event) -> bool:
    """The end of the run, or that its agent wants a login: that may take a person a while."""
    if event.kind == Kind.ERROR:
        return payload_of(event).get("code") == "auth_required"
    return event.kind in TERMINAL_KINDS
