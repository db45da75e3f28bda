"""What was allowed in a turn, and what that covers."""

import pytest
from msgspec import Raw

from acphost.session.consents import Consents


def consents(*requests: bytes) -> Consents:
    found = Consents()
    for request in requests:
        found.add(Raw(request))
    return found


@pytest.mark.parametrize(
    "call",
    [
        b'{"kind":"edit","locations":[{"path":"/r/a"},{"path":"/r/b"}]}',
        b'{"kind":"edit","content":[{"type":"diff","path":"/r/a","newText":"x"}]}',
        b'{"content":[{"type":"diff","path":"/r/a","newText":"x"}]}',
        b'{"kind":"edit","rawInput":{"arguments":{"path":"/r/a"}}}',
        b'{"kind":"edit","locations":[7,{"path":"/r/a"}],"rawInput":null}',
    ],
)
def test_an_edit_is_covered_where_its_file_was_named(call: bytes) -> None:
    found = consents(b'{"toolCall":%b}' % call)

    assert found.cover("edit", "/r/a", "a")
    assert not found.cover("edit", "/r/aa")
    assert not found.cover("execute", "/r/a")


def test_a_command_is_covered_as_a_line_or_as_words() -> None:
    found = consents(
        b'{"toolCall":{"kind":"execute","rawInput":{"command":"make test"}}}',
        b'{"toolCall":{"kind":"execute","rawInput":{"command":["git","status"]}}}',
    )

    assert found.cover("execute", "make test")
    assert found.cover("execute", "git status")
    assert not found.cover("execute", "git")


def test_a_text_that_only_mentions_something_covers_nothing() -> None:
    """What nobody was asked about is not allowed by standing in a description or a content."""
    found = consents(
        b'{"toolCall":{"kind":"edit","rawInput":{"path":"/r/a","content":"/r/b"}}}',
        b'{"toolCall":{"kind":"execute","rawInput":{"command":["echo","rm -rf x"],"why":"rm y"}}}',
    )

    assert not found.cover("edit", "/r/b")
    assert not found.cover("execute", "rm -rf x")
    assert not found.cover("execute", "rm y")
    assert not found.cover("execute", "echo rm -rf x")
    assert found.cover("execute", "echo 'rm -rf x'")


def test_to_read_a_file_is_not_to_write_it() -> None:
    found = consents(b'{"toolCall":{"kind":"read","locations":[{"path":"/r/a"}]}}')

    assert not found.cover("edit", "/r/a")


def test_nothing_is_covered_once_the_turn_is_over_or_by_what_cannot_be_read() -> None:
    found = consents(b'{"toolCall":{"kind":"edit","locations":[{"path":"/r/a"}]}}', b"[]", b"{")
    found.clear()

    assert not found.cover("edit", "/r/a")
    assert not consents(b'{"toolCall":{"kind":"edit"}}').cover("edit", "")
