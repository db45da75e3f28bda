"""Prompt content held against what an agent takes (guide rule 19, A33). Pure.

Text and links always go. What an agent does not take is refused, but for an embedded text: that
says the same as plain text, and a link where there is nothing but bytes behind an address.
"""

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acphost.errors import UnsupportedContentError
from acphost.wire.acp import PromptCapabilities
from acphost.wire.base import AcpStruct


class Fitted(NamedTuple):
    """A prompt as the agent gets it, and which of its blocks were turned into something simpler."""

    blocks: list[Raw]
    simplified: list[int]


class _Resource(AcpStruct, frozen=True):
    uri: str = ""
    mime_type: str | None = None
    text: str | UnsetType = UNSET


class _Block(AcpStruct, frozen=True):
    type: str = ""
    resource: _Resource = _Resource()


def fit(content: bytes, takes: PromptCapabilities) -> Fitted:
    """The blocks of a prompt for an agent that takes this. Raises UnsupportedContentError."""
    blocks = msgspec.json.decode(content, type=list[Raw])
    fitted: list[Raw] = []
    simplified: list[int] = []
    for index, raw in enumerate(blocks):
        block = _read(raw)
        if _is_taken(block.type, takes):
            fitted.append(raw)
            continue
        simpler = _simpler(block)
        if simpler is None:
            raise UnsupportedContentError(
                f"the agent takes no {_NAMES.get(block.type, repr(block.type))}"
                f" - at `$.prompt[{index}]`",
                index=index,
                type=block.type,
            )
        fitted.append(Raw(msgspec.json.encode(simpler)))
        simplified.append(index)
    return Fitted(fitted, simplified)


_NAMES = {"image": "images", "audio": "audio", "resource": "embedded files"}


def _read(raw: Raw) -> _Block:
    try:
        return msgspec.json.decode(raw, type=_Block)
    except msgspec.ValidationError:
        return _Block()


def _is_taken(kind: str, takes: PromptCapabilities) -> bool:
    match kind:
        case "text" | "resource_link":
            return True
        case "image":
            return takes.image
        case "audio":
            return takes.audio
        case "resource":
            return takes.embedded_context
    return False


def _simpler(block: _Block) -> dict[str, object] | None:
    """What says the same with less; None if there is no such thing."""
    resource = block.resource
    if block.type != "resource":
        return None
    if isinstance(resource.text, str):
        uri = resource.uri.replace('"', "%22")
        text = f'<resource uri="{uri}">\n{resource.text}\n</resource>'
        return {"type": "text", "text": text}
    if not resource.uri.startswith(("file://", "http://", "https://")):
        return None
    name = resource.uri.rstrip("/").rpartition("/")[2] or resource.uri
    link: dict[str, object] = {"type": "resource_link", "uri": resource.uri, "name": name}
    if resource.mime_type is not None:
        link["mimeType"] = resource.mime_type
    return link


#: What `_meta` may hold for programs that follow a request over borders (guide rule 48).
_TRACE = ("traceparent", "tracestate", "baggage")


class _Created(msgspec.Struct):
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


def trace_of(created: bytes) -> dict[str, str]:
    """The trace context of a run by the payload of its `run.created`."""
    try:
        return trace_context(msgspec.json.decode(created, type=_Created).meta)
    except msgspec.DecodeError:
        return {}


def trace_context(meta: Raw | UnsetType) -> dict[str, str]:
    """The trace context in a request's `_meta`: it goes on to the agent, and nothing else does."""
    try:
        given = msgspec.json.decode(
            meta if isinstance(meta, Raw) else b"{}", type=dict[str, object]
        )
    except msgspec.DecodeError:
        return {}
    return {name: value for name in _TRACE if isinstance(value := given.get(name), str)}
