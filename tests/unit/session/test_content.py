"""Prompt content held against what an agent takes."""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from acphost.errors import UnsupportedContentError
from acphost.session.content import fit, trace_context
from acphost.wire.acp import PromptCapabilities

TEXT = {"type": "text", "text": "hi", "_meta": {"a": 1}}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 5}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
INLINE = {
    "type": "resource",
    "resource": {"uri": 'file:///a "b"', "text": "x\ny", "mimeType": "t/p"},
}
BLOB = {
    "type": "resource",
    "resource": {"uri": "file:///d/c.bin", "blob": "AA==", "mimeType": "a/b"},
}
EVERYTHING = PromptCapabilities(image=True, audio=True, embedded_context=True)


NOTHING = PromptCapabilities()


def fitted(*blocks: object, takes: PromptCapabilities = NOTHING) -> tuple[Any, list[int]]:
    found = fit(json.dumps(blocks).encode(), takes)
    return [json.loads(bytes(block)) for block in found.blocks], found.simplified


def test_what_is_taken_goes_as_it_is() -> None:
    blocks = [TEXT, LINK, IMAGE, AUDIO, INLINE, BLOB]
    assert fitted(*blocks, takes=EVERYTHING) == (blocks, [])
    assert fitted(TEXT, LINK) == ([TEXT, LINK], [])


def test_an_embedded_text_becomes_text_and_bytes_behind_an_address_a_link() -> None:
    blocks, simplified = fitted(TEXT, INLINE, BLOB)
    assert simplified == [1, 2]
    assert blocks[1] == {
        "type": "text", "text": '<resource uri="file:///a %22b%22">\nx\ny\n</resource>',
    }  # fmt: skip
    assert blocks[2] == {
        "type": "resource_link", "uri": "file:///d/c.bin", "name": "c.bin", "mimeType": "a/b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (IMAGE, "takes no images"),
        (AUDIO, "takes no audio"),
        ({"type": "resource", "resource": {"uri": "mem://1", "blob": "AA=="}}, "embedded files"),
        ({"type": "resource"}, "embedded files"),
        ({"type": "hologram"}, "'hologram'"),
    ],
)
def test_what_is_not_taken_is_refused_with_its_place(block: object, words: str) -> None:
    with pytest.raises(UnsupportedContentError, match=words) as caught:
        fitted(TEXT, block)
    assert "$.prompt[1]" in str(caught.value)


def test_only_the_trace_context_of_a_request_goes_on() -> None:
    meta = {"traceparent": "00-1-2-01", "tracestate": "x=y", "baggage": 5, "cwd": "/evil"}
    assert trace_context(Raw(json.dumps(meta).encode())) == {
        "traceparent": "00-1-2-01", "tracestate": "x=y",
    }  # fmt: skip
    for nothing in (UNSET, Raw(b"null"), Raw(b"[]"), Raw(b'"traceparent"')):
        assert trace_context(nothing) == {}
