"""One completion from an OpenAI-compatible endpoint, tried once more where that is worth it."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import msgspec

from acphost.chat.options import ChatOptions
from acphost.chat.stream import Delta, Refusal, Text, Thought, error_text, read_line

#: Seconds before the one retry.
PAUSE = 1.0
#: An endpoint that is overloaded or broken may be well again in a moment.
_TRY_AGAIN = frozenset({429, *range(500, 600)})


class ChatError(Exception):
    """The endpoint did not answer; the message says what a person can do about it."""


class Nothing(Exception):  # noqa: N818  a way to the retry, never seen outside
    """The attempt came to nothing; `args` say why."""


class Endpoint:
    """Asks one model."""

    def __init__(self, options: ChatOptions) -> None:
        self._options = options
        timeout = httpx2.Timeout(30.0, read=options.read_timeout)
        self._client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False)

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    async def complete(self, messages: Sequence[dict[str, str]]) -> AsyncGenerator[Delta]:
        """The deltas of one answer.

        An answer that fails before it says anything is asked for once more. Raises ChatError.
        """
        for attempt in (1, 2):
            has_spoken = False
            try:
                async for delta in self._attempt(messages):
                    has_spoken = has_spoken or isinstance(delta, Text | Thought)
                    yield delta
            except Nothing as exc:
                if attempt == 2 or has_spoken:
                    raise ChatError(str(exc)) from exc
            else:
                if has_spoken:
                    return
                if attempt == 2:
                    raise ChatError("the endpoint gave an empty answer twice")
            await anyio.sleep(PAUSE)

    async def _attempt(self, messages: Sequence[dict[str, str]]) -> AsyncGenerator[Delta]:
        try:
            async with self._response(messages) as response:
                if response.status_code != 200:
                    await self._refuse(response)
                async for line in response.aiter_lines():
                    for delta in read_line(line):
                        if isinstance(delta, Refusal):
                            raise Nothing(f"the endpoint broke off: {delta.message}")
                        yield delta
        except httpx2.TransportError as exc:
            where = f"{self._options.base_url} cannot be reached or broke off"
            raise Nothing(f"{where}: {str(exc) or type(exc).__name__}") from exc

    @asynccontextmanager
    async def _response(self, messages: Sequence[dict[str, str]]) -> AsyncIterator[Any]:
        options = self._options
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if key := options.key():
            headers["authorization"] = f"Bearer {key}"
        body = {
            "model": options.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        url = f"{options.base_url.rstrip('/')}/chat/completions"
        async with self._client.stream(
            "POST", url, headers=headers, content=msgspec.json.encode(body)
        ) as response:
            yield response

    async def _refuse(self, response: Any) -> None:  # noqa: ANN401  of the library
        status = response.status_code
        said = error_text(await response.aread())
        if status in _TRY_AGAIN:
            raise Nothing(f"the endpoint answered {status}: {said}")
        if status in {401, 403}:
            wanted = self._options.api_key_env
            cure = f"look at {wanted}" if wanted else "name the variable of its key: api_key_env"
            raise ChatError(f"the endpoint refused the key ({status}): {said}; {cure}")
        raise ChatError(f"the endpoint answered {status}: {said}")
