"""An agent tried out in a scratch folder: which of its promises it keeps (guide sections 3, 4).

Each promise is tried on the protocol as a session would use it, in as few processes as will do. It
costs two short prompts, unless they are not wanted.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

import anyio
import msgspec

from acphost.errors import AcpHostError, PermissionDeniedError, RemoteError
from acphost.ids import AcpSessionId
from acphost.provider.connection import AgentConnection, AgentGoneError, method_not_found
from acphost.provider.process import AgentProcess
from acphost.provider.switchboard import AgentRequest
from acphost.provider.traits import LoadStatus, Rung
from acphost.wire.acp import PromptResult, UpdateTag, lenient
from acphost.wire.agents import Promise, PromiseResult
from acphost.wire.jsonrpc import RequestId

#: Seconds for an answer that needs no model.
PATIENCE = 20.0
#: Seconds for one that does.
MODEL_PATIENCE = 120.0
SHORT = "Answer with the single word: ready"
LONG = "Count from 1 to 300 in words, one number on a line, without any tool."
STRANGER = AcpSessionId("00000000-0000-4000-8000-000000000000")
NO_METHOD = "acphost/probe"
#: Lines that are no requests: half an object, and a batch, which ACP has none of.
GARBAGE = (b'{"jsonrpc":"2.0","id":\n', b"[]\n")
CANCELLED = {"outcome": {"outcome": "cancelled"}}
_CONVERSATION = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"}
)
_TAG = msgspec.json.Decoder(UpdateTag)

Launch = Callable[[], Awaitable[AgentProcess]]


class _Ear:
    """Hears what the agent says while it is tried; lets it do nothing."""

    def __init__(self) -> None:
        self.heard = 0
        self.spoke = anyio.Event()

    def on_updates(
        self, updates: Sequence[msgspec.Raw], at: int, exact: list[bytes] | None = None
    ) -> None:
        """Count what belongs to a conversation."""
        for update in updates:
            try:
                self.heard += _TAG.decode(update).session_update in _CONVERSATION
            except msgspec.DecodeError:
                continue
        if self.heard:
            self.spoke.set()

    def on_extension(self, method: str, params: msgspec.Raw, at: int) -> None:
        """Not of interest."""

    def on_request(self, asked: AgentRequest, at: int) -> None:
        """Nothing is allowed in a probe."""
        if asked.method == "session/request_permission":
            asked.answer(CANCELLED)
        elif asked.method.startswith(("fs/", "terminal/")):
            # It was offered, as to every process of the agent: no is another answer than unknown.
            asked.refuse(PermissionDeniedError("nothing is allowed while the agent is tried out"))
        else:
            asked.refuse(method_not_found(asked.method))

    def on_stray(self, what: str, payload: bytes, at: int) -> None:
        """Not of interest."""

    awaits_people: ClassVar = False

    def on_withdrawn(self, connection: AgentConnection, request_id: RequestId) -> bool:
        """Nothing is ever open."""
        return False

    def on_gone(self, gone: AgentGoneError) -> None:
        """Whoever waits for an answer is told."""


class Probe:
    """One trial of one agent."""

    #: What is tried in a process of its own after the first, and the request it takes.
    _REOPENING: ClassVar = {Promise.LOAD: "session/load", Promise.RESUME: "session/resume"}

    def __init__(self, launch: Launch, cwd: str, *, with_prompts: bool) -> None:
        self._launch = launch
        self._params: dict[str, object] = {"cwd": cwd, "mcpServers": []}
        self._with_prompts = with_prompts
        self._results: dict[Promise, PromiseResult] = {}
        self.name = self.version = ""

    async def run(self) -> list[PromiseResult]:
        """Try everything; what could not be tried says why.

        Raises AgentUnavailableError if the agent cannot even be started.
        """
        process = await self._launch()
        try:
            self.name = process.greeting.agent_info.name
            self.version = process.greeting.agent_info.version
            self._note(Promise.INITIALIZE, holds=True)
            session = await self._begin(process)
            if session is not None:
                await self._talk(process, session)
            # Last: some do not survive it.
            await self._be_rude(process)
        finally:
            await _end(process)
        capabilities = process.greeting.agent_capabilities
        offered = {
            Promise.LOAD: capabilities.load_session,
            Promise.RESUME: Rung.RESUME in process.traits.ladder(capabilities),
        }
        for promise, is_offered in offered.items():
            if not is_offered:
                self._note(promise, note="not offered, or not to be trusted by what is known of it")
            elif session is None or not self._holds(Promise.PROMPT):
                self._note(promise, note="there was no conversation to continue")
            else:
                await self._reopen(promise, session)
        untried = PromiseResult(promise=Promise.INITIALIZE, holds=None, note="not tried")
        return [
            self._results.get(promise, msgspec.structs.replace(untried, promise=promise))
            for promise in Promise
        ]

    # -- one process ------------------------------------------------------------------------------

    async def _begin(self, process: AgentProcess) -> AcpSessionId | None:
        self._ear = _Ear()
        try:
            with anyio.fail_after(MODEL_PATIENCE):
                session, _ = await process.new_session(self._ear, self._params)
        except (AcpHostError, TimeoutError) as exc:
            self._note(Promise.NEW_SESSION, holds=False, note=_why(exc))
            return None
        self._note(Promise.NEW_SESSION, holds=True)
        return session

    async def _be_rude(self, process: AgentProcess) -> None:
        """What no host would do, and some client will."""
        unknown = await self._refusal(process, NO_METHOD, {})
        self._note(Promise.UNKNOWN_METHOD, holds=unknown is None, note=unknown)
        if process.greeting.agent_capabilities.load_session:
            params = {"sessionId": STRANGER, **self._params}
            stranger = await self._refusal(process, "session/load", params)
            self._note(Promise.UNKNOWN_SESSION, holds=stranger is None, note=stranger)
        for line in GARBAGE:
            process.connection.send_line(line)
        after = await self._refusal(process, NO_METHOD, {})
        self._note(Promise.BAD_INPUT, holds=after is None, note=after)

    async def _refusal(self, process: AgentProcess, method: str, params: object) -> str | None:
        """None if the request is answered with an error, as it should be; else what happened."""
        try:
            with anyio.fail_after(PATIENCE):
                answer = await process.connection.call(method, params)
        except RemoteError:
            return None
        except (AcpHostError, TimeoutError) as exc:
            return _why(exc)
        return f"`{method}` was answered as if it were right: {bytes(answer)[:80]!r}"

    async def _talk(self, process: AgentProcess, session: AcpSessionId) -> None:
        if not self._with_prompts:
            self._note(Promise.PROMPT, note="no prompts were wanted")
            self._note(Promise.CANCEL, note="no prompts were wanted")
            return
        stop, why = await self._prompt(process, session, SHORT)
        self._note(Promise.PROMPT, holds=stop is not None, note=why or stop)
        if stop is None:
            return
        stop, why = await self._prompt(process, session, LONG, is_stopped=True)
        if stop == "end_turn":
            self._note(Promise.CANCEL, note="the turn was over before it could be stopped")
        else:
            self._note(Promise.CANCEL, holds=stop == "cancelled", note=why or stop)

    async def _prompt(
        self, process: AgentProcess, session: AcpSessionId, text: str, *, is_stopped: bool = False
    ) -> tuple[str | None, str | None]:
        """The stop reason, or why there is none."""
        self._ear.spoke = anyio.Event()
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        try:
            with anyio.fail_after(MODEL_PATIENCE):
                async with anyio.create_task_group() as tasks:
                    if is_stopped:
                        tasks.start_soon(self._stop_once_it_speaks, process, session)
                    answer = await process.connection.call("session/prompt", params)
                    tasks.cancel_scope.cancel()
            return lenient(PromptResult, answer).stop_reason, None
        except* (AcpHostError, TimeoutError, msgspec.DecodeError) as group:
            why = _why(group.exceptions[0])
        return None, why

    async def _stop_once_it_speaks(self, process: AgentProcess, session: AcpSessionId) -> None:
        await self._ear.spoke.wait()
        process.connection.notify("session/cancel", {"sessionId": session})

    # -- another process --------------------------------------------------------------------------

    async def _reopen(self, promise: Promise, session: AcpSessionId) -> None:
        ear = _Ear()
        process = await self._launch()
        method = self._REOPENING[promise]
        try:
            with anyio.fail_after(MODEL_PATIENCE):
                answer = await process.reopen(method, session, ear, self._params)
        except (AcpHostError, TimeoutError) as exc:
            self._note(promise, holds=False, note=_why(exc))
            return
        finally:
            heard = ear.heard
            await _end(process)
        holds = process.traits.judge_opened(answer) is LoadStatus.LOADED
        self._note(promise, holds=holds)
        told = f"{heard} messages were told again"
        if promise is Promise.LOAD:
            self._note(Promise.LOAD_REPLAYS, holds=heard > 0, note=told)
        else:
            self._note(Promise.RESUME_IS_SILENT, holds=heard == 0, note=told)

    # -- notes ------------------------------------------------------------------------------------

    def _note(
        self, promise: Promise, *, holds: bool | None = None, note: str | None = None
    ) -> None:
        self._results[promise] = PromiseResult(promise=promise, holds=holds, note=note)

    def _holds(self, promise: Promise) -> bool:
        found = self._results.get(promise)
        return found is not None and found.holds is True


async def _end(process: AgentProcess) -> None:
    with anyio.CancelScope(shield=True):
        process.stop()
        await process.ended.wait()


def _why(error: BaseException) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)
