"""One session in this editor: what happened and happens in it is followed and shown.

All of it comes through one subscription, in the order of the journal. So a turn's updates stand
before its answer, and a restart of the daemon is a pause and nothing else: the cursor goes on.
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import partial

import anyio
import msgspec
from msgspec import Raw

from acphost.errors import (
    AcpHostError,
    AlreadyResolvedError,
    ConnectionLostError,
    DaemonUnreachableError,
    InvalidParamsError,
    PermissionNotFoundError,
)
from acphost.frontdoor.dialogs import ASKED, SETTLED, Dialogs, Soon, form_answer
from acphost.frontdoor.editor import Editor, Reply
from acphost.frontdoor.history import History
from acphost.frontdoor.link import Link
from acphost.frontdoor.options import BINDINGS, Options
from acphost.frontdoor.outcomes import login_wanted, outcome_of
from acphost.frontdoor.prompts import Prompt, Prompts
from acphost.frontdoor.updates import Projector, extension, host_message, turn_ended
from acphost.ids import mint
from acphost.wire.acp_agent import EditorCapabilities
from acphost.wire.event import TERMINAL_KINDS, Event, Kind
from acphost.wire.host import Cursor, Run
from acphost.wire.params import RunCreateParams

#: What says how a session stands, without what was said in it.
STATE_KINDS = [
    *BINDINGS,
    *ASKED,
    *SETTLED,
    *TERMINAL_KINDS,
    Kind.RUN_STARTED,
    Kind.SESSION_MODE_UPDATED,
    Kind.SESSION_CONFIG_UPDATED,
    Kind.SESSION_COMMANDS_UPDATED,
    Kind.USAGE_UPDATED,
]


class Past(Enum):
    """How much of what was is told before what is."""

    #: All of it, before the answer: session/load.
    TOLD = auto()
    #: All of it, behind the answer: a session that existed, opened as if it were new.
    TOLD_LATER = auto()
    #: Only how things stand: session/new, resume.
    KNOWN = auto()


class Attachment:
    """A session that this editor has open."""

    def __init__(
        self,
        session_id: str,
        editor: Editor,
        capabilities: EditorCapabilities,
        options: Options,
        link: Link,
        soon: Soon,
    ) -> None:
        self.session_id = session_id
        self.options = options
        self._editor = editor
        self._link = link
        self._soon = soon
        self._projector = Projector(capabilities)
        self._history: History | None = None
        self._past = Past.KNOWN
        self._dialogs = Dialogs(
            editor, session_id, capabilities.elicitation_modes,
            choose=self._choose, fill=self._fill, soon=soon,
        )  # fmt: skip
        self._prompts = Prompts()
        self._is_live = False
        self._running: str | None = None
        self._scope = anyio.CancelScope()
        #: What is written around each update.
        self._head = (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":'
            % msgspec.json.encode(session_id)
        )

    # -- following --------------------------------------------------------------------------------

    async def follow(self, past: Past, on_open: Callable[[], None]) -> None:
        """Tell the past, call `on_open`, then follow until closed; a new call ends the one before.

        Raises what the daemon refuses with, before `on_open`.
        """
        self._scope.cancel()
        self._dialogs.close()
        self._is_live = False
        with anyio.CancelScope() as self._scope:
            if past is Past.TOLD_LATER:
                on_open()
            cursor, store_id = await self._tell_past(past)
            if past is not Past.TOLD_LATER:
                on_open()
            self._is_live = True
            self._tell_latest()
            self._dialogs.show_all()
            await self._tell_present(cursor, store_id)

    async def _tell_past(self, past: Past) -> tuple[Cursor | None, str | None]:
        self._history, self._past = History(), past
        kinds = list(map(str, STATE_KINDS)) if past is Past.KNOWN else None
        client = await self._link.client()
        async with client.subscribe(session_id=self.session_id, kinds=kinds) as events:
            while not events.caught_up:
                for event in (await events.next_batch()).events:
                    self._take(event)
                await self._editor.room()
            self._let_go()
            return events.cursor, events.store_id

    async def _tell_present(self, cursor: Cursor | None, store_id: str | None) -> None:
        """Follow from there on, whatever becomes of the daemon."""
        while True:
            try:
                client = await self._link.next_client()
                async with client.subscribe(
                    session_id=self.session_id, after=cursor, store_id=store_id
                ) as events:
                    while True:
                        batch = await events.next_batch()
                        for event in batch.events:
                            self._take(event)
                        cursor = batch.cursor
                        await self._editor.room()
            except (ConnectionLostError, DaemonUnreachableError) as exc:
                # It was waited for as long as makes sense. Whoever asks next makes a new start.
                self._prompts.fail_all(exc)
            except AcpHostError as exc:
                # Another journal, or a session that was deleted: there is nothing to go on with.
                self._prompts.fail_all(exc)
                return

    @property
    def is_waiting(self) -> bool:
        """Whether a prompt of this editor is not answered yet."""
        return bool(self._prompts.open)

    def leave(self) -> None:
        """The editor closes the session: what it has waiting or running here ends."""
        self._scope.cancel()
        self._dialogs.close()
        for prompt in self._prompts.open:
            self._cancel_prompt(prompt)
            prompt.reply.give({"stopReason": "cancelled"})

    # -- events -----------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event.kind:
            case Kind.MESSAGE_DELTA | Kind.THOUGHT_DELTA if self._is_live:
                self._show(event.payload)
            case Kind.RUN_CREATED:
                self._prompts.created(event)
            case Kind.RUN_STARTED:
                self._running = event.host_run_id
            case kind if kind in TERMINAL_KINDS:
                self._end(event)
            case Kind.ERROR:
                self._take_error(event)
            case kind if kind in ASKED or kind in SETTLED:
                self._dialogs.take(event, is_live=self._is_live)
            case Kind.NOTICE if not self._is_live:
                pass  # it was meant for the moment
            case Kind.MESSAGE_USER if self._is_live and self._prompts.is_own(event.host_run_id):
                pass  # the editor has shown it when it was typed
            case _:
                self._take_other(event)

    def _take_other(self, event: Event) -> None:
        changed = self.options.take(event)
        if changed is not None and self._is_live:
            self._show(changed)
        for update in self._projector.updates(event):
            self._show(update)
        # Like any agent's, it is for who listens: the past does not tell it again.
        told = extension(event, self.session_id) if self._is_live else None
        if told is not None:
            self._editor.post(told)

    def _end(self, event: Event) -> None:
        if self._running == event.host_run_id:
            self._running = None
        outcome = outcome_of(event)
        is_own = self._prompts.is_own(event.host_run_id)
        if outcome.words is not None and (outcome.error is None or not (self._is_live and is_own)):
            self._show(host_message(outcome.words))
        self._let_go()
        if not self._prompts.ended(event.host_run_id, outcome) and self._is_live:
            self._show(turn_ended(event))

    def _take_error(self, event: Event) -> None:
        """An agent that wants a login: the editor is told so, and sends again after it."""
        wanted = login_wanted(event)
        if wanted is not None and self._prompts.ended(event.host_run_id, wanted):
            self._cancel_run(event.host_run_id)

    # -- out --------------------------------------------------------------------------------------

    def _show(self, update: Raw) -> None:
        """Write an update, or keep it among the past."""
        if self._is_live or self._history is None:
            self._write(update)
        else:
            self._history.add(update)

    def _write(self, update: Raw) -> None:
        self._editor.post(b"%b%b}}\n" % (self._head, bytes(update)))

    def _let_go(self) -> None:
        """A run is over, or the past: what was kept of it is told if it is to be told at all."""
        for update in () if self._history is None else self._history.taken():
            if self._past is not Past.KNOWN:
                self._write(update)

    def _tell_latest(self) -> None:
        """How plan, usage and commands stand: behind the answer, as from any agent."""
        history, self._history = self._history, None
        if history is not None:
            for update in history.latest():
                self._write(update)

    # -- what the editor asks for -----------------------------------------------------------------

    async def prompt(self, blocks: list[Raw], meta: Raw | None, reply: Reply) -> None:
        """Send a prompt; it is answered when its run is over, however many wait before it."""
        prompt = Prompt(mint("client_req"), reply)
        reply.is_long = True
        reply.on_cancel = partial(self._cancel_prompt, prompt)
        self._prompts.add(prompt)
        try:
            client = await self._link.client()
            given = RunCreateParams(
                request_id=prompt.request_id, session_id=self.session_id, prompt=blocks,
                meta=msgspec.UNSET if meta is None else meta,
            )  # fmt: skip
            run = await client.request("run/create", given, Run, repeat=True)
        except BaseException:
            self._prompts.drop(prompt)
            raise
        self._prompts.accepted(prompt, run.host_run_id)

    def cancel(self) -> None:
        """`session/cancel`: what this editor has waiting, and the turn that runs, whoever's."""
        waiting = [
            prompt
            for prompt in self._prompts.open
            if prompt.run_id is None or prompt.run_id != self._running
        ]
        self._soon(partial(self._stop, waiting, self._running))

    async def _stop(self, waiting: list[Prompt], running: str | None) -> None:
        """First what waits, or it would start when the turn has ended."""
        client = await self._link.client()
        for prompt in waiting:
            await prompt.known.wait()
            if prompt.run_id is not None:
                await client.cancel(prompt.run_id)
        if running is not None:
            await client.cancel(running)

    def _cancel_run(self, run_id: str | None) -> None:
        self._soon(partial(self._stop, [], run_id))

    def _cancel_prompt(self, prompt: Prompt) -> None:
        self._soon(partial(self._stop, [prompt], None))

    async def _choose(self, question_id: str, option_id: str) -> None:
        client = await self._link.client()
        try:
            await client.respond(question_id, option_id)
        except (AlreadyResolvedError, PermissionNotFoundError):
            return  # somebody was first; the journal tells everybody who
        except InvalidParamsError:
            self._dialogs.show_again(question_id)

    async def _fill(self, question_id: str, answer: Raw) -> None:
        client = await self._link.client()
        params = {"elicitationId": question_id, **form_answer(answer)}
        try:
            await client.request("elicitation/respond", params, Raw)
        except (AlreadyResolvedError, PermissionNotFoundError):
            return
