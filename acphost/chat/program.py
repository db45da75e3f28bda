"""A plain chat model as an ACP agent on stdin and stdout: no tools, no files, no memory of its own.

The daemon hosts it like any agent, so a chat has the same queue, journal and stop. What was said
before comes with each prompt, from the daemon's journal.
"""

import os
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from acphost.chat.completion import ChatError, Endpoint
from acphost.chat.options import ChatOptions
from acphost.chat.stream import Finish, Text, Thought, Usage
from acphost.errors import AcpHostError, InvalidParamsError, MethodNotFoundError
from acphost.ids import mint
from acphost.rpc.codec import decode_message, encode_failure, encode_notification, encode_success
from acphost.rpc.failures import error_object
from acphost.rpc.framing import LineFramer
from acphost.wire.acp import TRANSCRIPT, TextBlock, lenient
from acphost.wire.jsonrpc import ErrorObject, Notification, Request, RequestId

_READ = 1 << 16
_MAX_LINE = 64 << 20
_INTERNAL = -32603
#: Words of endpoints for the end of an answer, as ACP has them.
_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


class _Prompt(msgspec.Struct, rename="camel"):
    session_id: str
    prompt: list[msgspec.Raw]
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class _Scoped(msgspec.Struct, rename="camel"):
    session_id: str


class Program:
    """Serves the host until its stdin ends."""

    def __init__(self, options: ChatOptions, version: str) -> None:
        self._options = options
        self._version = version
        self._endpoint = Endpoint(options)
        self._turns: dict[str, anyio.CancelScope] = {}
        self._methods = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/set_mode": self._nothing,
        }

    async def run(self) -> None:
        """Read, answer, and be gone with the host."""
        framer = LineFramer(_MAX_LINE)
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(0)
                data = os.read(0, _READ)
                for line in framer.feed(data) if data else framer.finish():
                    self._take(line, tasks)
                if not data:
                    break
            tasks.cancel_scope.cancel()
        await self._endpoint.close()

    def _take(self, line: bytes, tasks: TaskGroup) -> None:
        try:
            message = decode_message(line)
        except AcpHostError as exc:
            _write(encode_failure(None, error_object(exc)))
            return
        if isinstance(message, Request) and message.method == "session/prompt":
            tasks.start_soon(self._prompt, message.id, message.params)
        elif isinstance(message, Request):
            self._answer(message.id, message.method)
        elif isinstance(message, Notification) and message.method == "session/cancel":
            turn = self._turns.get(msgspec.json.decode(message.params, type=_Scoped).session_id)
            if turn is not None:
                turn.cancel()

    def _answer(self, request_id: RequestId, method: str) -> None:
        handler = self._methods.get(method)
        if handler is None:
            error = error_object(MethodNotFoundError(f"a chat has no method {method!r}"))
            _write(encode_failure(request_id, error))
        else:
            _write(encode_success(request_id, handler()))

    def _initialize(self) -> dict[str, object]:
        return {
            "protocolVersion": 1,
            "agentCapabilities": {"promptCapabilities": {"embeddedContext": True}},
            "agentInfo": {
                "name": "acphost-chat", "title": self._options.model, "version": self._version
            },
            "authMethods": [],
        }  # fmt: skip

    @staticmethod
    def _new() -> dict[str, object]:
        return {"sessionId": mint("chat")}

    @staticmethod
    def _nothing() -> dict[str, object]:
        return {}

    # -- a turn -----------------------------------------------------------------------------------

    async def _prompt(self, request_id: RequestId, params: msgspec.Raw) -> None:
        try:
            asked = msgspec.json.decode(params, type=_Prompt)
            messages = [*self._before(asked), {"role": "user", "content": _text(asked.prompt)}]
            _write(encode_success(request_id, await self._turn(asked.session_id, messages)))
        except ChatError as exc:
            _write(encode_failure(request_id, ErrorObject(code=_INTERNAL, message=str(exc))))
        except msgspec.DecodeError as exc:
            error = error_object(InvalidParamsError(f"session/prompt: {exc}"))
            _write(encode_failure(request_id, error))

    def _before(self, asked: _Prompt) -> list[dict[str, str]]:
        said = (asked.meta or {}).get(TRANSCRIPT) or []
        if self._options.system:
            said = [{"role": "system", "content": self._options.system}, *said]
        return msgspec.convert(said, list[dict[str, str]])

    async def _turn(self, session: str, messages: Sequence[dict[str, str]]) -> dict[str, object]:
        stop, usage = "end_turn", None
        tell = partial(_tell, session)
        with anyio.CancelScope() as self._turns[session]:
            try:
                async with aclosing(self._endpoint.complete(messages)) as deltas:
                    async for delta in deltas:
                        match delta:
                            case Text(text):
                                tell("agent_message_chunk", text)
                            case Thought(text):
                                tell("agent_thought_chunk", text)
                            case Finish(reason):
                                stop = _STOPS.get(reason, "end_turn")
                            case Usage():
                                usage = _usage(delta)
            finally:
                scope = self._turns.pop(session)
        if scope.cancelled_caught:
            stop = "cancelled"
        return {"stopReason": stop} if usage is None else {"stopReason": stop, "usage": usage}


def _tell(session: str, kind: str, text: str) -> None:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    _write(encode_notification("session/update", {"sessionId": session, "update": update}))


def _text(blocks: Sequence[msgspec.Raw]) -> str:
    """The prompt as one text; what a file says is quoted with its name."""
    parts = []
    for block in blocks:
        kind = msgspec.json.decode(block, type=dict[str, Any])
        if kind.get("type") == "text":
            parts.append(lenient(TextBlock, block).text)
        elif kind.get("type") == "resource":
            inner = kind.get("resource") or {}
            parts.append(f'<file uri="{inner.get("uri", "")}">\n{inner.get("text", "")}\n</file>')
        elif kind.get("type") == "resource_link":
            parts.append(f"[{kind.get('name', 'file')}]({kind.get('uri', '')})")
    return "\n\n".join(parts)


def _usage(told: Usage) -> dict[str, object]:
    """As ACP words it; what was not told is left out."""
    details = told.completion_tokens_details or {}
    cached = (told.prompt_tokens_details or {}).get("cached_tokens")
    figures = {
        "inputTokens": told.prompt_tokens,
        "outputTokens": told.completion_tokens,
        "totalTokens": told.total_tokens,
        "thoughtTokens": details.get("reasoning_tokens"),
        "cachedReadTokens": cached,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _write(line: bytes) -> None:
    """Whole lines to the host, which reads as fast as its disk allows; waiting for it is right."""
    while line:
        line = line[os.write(1, line) :]
