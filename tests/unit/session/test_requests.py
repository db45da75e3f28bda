"""What clients ask for, checked."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from acphost.errors import InvalidParamsError
from acphost.session import requests
from acphost.wire.params import RunCreateParams


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def params(**given: object) -> RunCreateParams:
    return RunCreateParams(request_id="r", **given)  # type: ignore[arg-type]


def prompt_of(asked: RunCreateParams) -> tuple[bytes, str]:
    return requests.prompt_of(asked.prompt, asked.text)


def test_text_becomes_one_block() -> None:
    content, preview = requests.prompt_of(None, "hi  \n there")
    assert json.loads(content) == [{"type": "text", "text": "hi  \n there"}]
    assert preview == "hi there"


def test_blocks_stay_as_they_are() -> None:
    block = Raw(b'{"type" : "text","text":"\\u0041", "n":1e400}')
    content, preview = requests.prompt_of([block, raw({"type": "image"})], None)
    assert bytes(block) in content
    assert preview == "A [image]"


def test_a_long_prompt_has_a_short_preview() -> None:
    _, preview = requests.prompt_of(None, "word " * 10_000)
    assert len(preview) == requests.PREVIEW_LENGTH
    assert preview.endswith("…")


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({}, "$"),
        ({"text": "a", "prompt": [raw({"type": "text", "text": "a"})]}, "$"),
        ({"text": ""}, "$.text"),
        ({"prompt": []}, "$.prompt"),
        ({"prompt": [raw({"type": "text"})]}, "$.prompt[0].text"),
        ({"prompt": [raw({"type": "text", "text": " "})]}, "$.prompt[0].text"),
        ({"text": " \n"}, "$.text"),
        ({"prompt": [raw({"type": "text", "text": "a"}), raw(5)]}, "$.prompt[1]"),
    ],
)
def test_a_prompt_that_says_nothing_is_refused(wrong: dict[str, object], where: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        prompt_of(params(**wrong))
    assert f"`{where}`" in str(refused.value)


@pytest.mark.parametrize(
    "name", ["pageText", "pageXml", "contextBlocks", "selectedText", "evidence"]
)
@pytest.mark.parametrize("field", ["editor_target", "run_target_snapshot"])
def test_page_text_is_refused_however_deep(name: str, field: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        requests.target_of(params(text="a", **{field: raw({"a": [{"b": {name: "x"}}]})}))
    assert f"a[0].b.{name}" in str(refused.value)


def test_targets_are_kept() -> None:
    assert requests.target_of(params(text="a")) is None
    kept = requests.target_of(params(text="a", editor_target=raw({"line": 1})))
    assert kept is not None
    assert json.loads(kept) == {"editorTarget": {"line": 1}}


KEYS = st.fixed_dictionaries(
    {
        "session_id": st.sampled_from([None, "s1", "s2"]),
        "workspace_id": st.sampled_from([None, "w"]),
        "document_id": st.sampled_from([None, "d"]),
    }
)


@given(KEYS, KEYS, st.sampled_from(["anna", "bert"]), st.sampled_from(["anna", "bert"]))
def test_keys_are_equal_only_for_the_same_request(
    one: dict[str, object], two: dict[str, object], actor: str, other: str
) -> None:
    keys = (
        requests.idempotency_key(actor, params(text="a", **one)),
        requests.idempotency_key(other, params(text="b", **two)),
    )
    assert (keys[0] == keys[1]) == (one == two and actor == other)


def test_a_fingerprint_is_of_what_was_meant_not_of_how_it_was_written() -> None:
    def of(**given: object) -> str:
        made = params(**given)
        return requests.fingerprint(prompt_of(made)[0], made, requests.target_of(made))

    same = of(prompt=[Raw(b'{"text":"a","type":"text"}')], editor_target=Raw(b'{"x":1,"y":2}'))
    assert same == of(text="a", editor_target=Raw(b'{ "y": 2, "x": 1 }'))
    assert same != of(text="b", editor_target=Raw(b'{"x":1,"y":2}'))
    assert same != of(text="a")
    assert same != of(text="a", editor_target=Raw(b'{"x":1,"y":2}'), context_refs=["c"])


def test_a_workspace_is_the_real_folder(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    assert requests.default_workspace(str(link)) == requests.default_workspace(
        str(tmp_path / "real")
    )
    assert len(requests.default_workspace("/")) == len("local:") + 16


@pytest.mark.parametrize("path", ["relative", "", "/no/such", "/etc/hostname", "/tmp/\0"])
def test_only_folders_that_exist(path: str) -> None:
    with pytest.raises(InvalidParamsError, match="cwd"):
        requests.check_directory(path, "$.cwd")


STDIO = {"name": "a", "command": "/bin/a", "args": [], "env": [{"name": "K", "value": "secret"}]}
HTTP = {
    "type": "http", "name": "b", "url": "https://x",
    "headers": [{"name": "Authorization", "value": "secret"}],
}  # fmt: skip


def test_secrets_of_mcp_servers_are_hidden() -> None:
    servers = [raw(STDIO), raw(HTTP)]
    requests.check_mcp_servers(servers)
    masked = requests.masked_servers(servers)
    assert b"secret" not in masked
    assert masked.count(b"***") == 2
    assert json.loads(masked)[0]["command"] == "/bin/a"
    assert requests.has_secrets(servers)
    assert not requests.has_secrets([raw({"name": "a", "command": "/bin/a", "env": []})])


@pytest.mark.parametrize(
    ("server", "where"),
    [
        ({**STDIO, "command": "relative"}, "command"),
        ({**STDIO, "env": {"K": "v"}}, "env"),
        ({**HTTP, "headers": {"A": "b"}}, "headers"),
        ({**HTTP, "url": ""}, "url"),
        ({"command": "/bin/a"}, "name"),
        (5, "mcpServers[0]"),
    ],
)
def test_servers_in_another_shape_are_refused(server: object, where: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        requests.check_mcp_servers([raw(server)])
    assert where in str(refused.value)
    assert "mcpServers[0]" in str(refused.value)


@pytest.mark.parametrize("path", ["/" + "a" * 300, "/tmp/\0", "/no/such/place"])
def test_a_directory_that_cannot_be_is_refused_with_its_path(path: str) -> None:
    with pytest.raises(InvalidParamsError):
        requests.check_directory(path, "$.cwd")
