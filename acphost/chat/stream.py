"""The stream of an OpenAI-compatible `chat/completions`: lines in, deltas out. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec


class Text(NamedTuple):
    """A piece of the answer."""

    text: str


class Thought(NamedTuple):
    """A piece of the reasoning."""

    text: str


class Finish(NamedTuple):
    """The model is done; why, in the endpoint's word."""

    reason: str


class Usage(msgspec.Struct, frozen=True):
    """Tokens of this one completion; what the endpoint does not tell is None."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: dict[str, object] | None = None
    completion_tokens_details: dict[str, object] | None = None


class Refusal(NamedTuple):
    """The endpoint reports an error in the middle of a stream."""

    message: str


Delta = Text | Thought | Finish | Usage | Refusal


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    # Two spellings are about: of DeepSeek and vLLM, and of OpenRouter and newer servers.
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


_CHUNK = msgspec.json.Decoder(_Chunk)
_DONE = "[DONE]"


def read_line(line: str) -> Iterator[Delta]:
    """What one line of the stream says; comments, blank lines and foreign fields say nothing."""
    field, _, value = line.partition(":")
    value = value.strip()
    if field != "data" or not value or value == _DONE:
        return
    try:
        chunk = _CHUNK.decode(value)
    except msgspec.DecodeError:
        return  # of a server that says more than it should; the rest of the stream counts
    if isinstance(chunk.error, msgspec.Raw) and bytes(chunk.error) != b"null":
        yield Refusal(error_text(bytes(chunk.error)))
    for choice in chunk.choices:
        delta = choice.delta
        if thought := delta.reasoning_content or delta.reasoning:
            yield Thought(thought)
        if delta.content:
            yield Text(delta.content)
        if choice.finish_reason:
            yield Finish(choice.finish_reason)
    if chunk.usage is not None:
        yield chunk.usage


def error_text(body: bytes) -> str:
    """What an error body says to people: its message, or its first words."""
    try:
        said = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        inner = said.get("error", msgspec.Raw(body))
        return msgspec.json.decode(inner, type=_Error).message or _short(body)
    except msgspec.DecodeError:
        return _short(body)


def _short(body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    return text[:300]
