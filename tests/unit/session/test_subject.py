"""What a permission request is about, wherever the agent has put it."""

import json
from pathlib import Path

import pytest
from msgspec import Raw

from acphost.session.calls import Call
from acphost.session.subject import MAX_PATHS, subject_of
from acphost.wire.acp import ToolReport
from acphost.wire.policy import PermissionSubject


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def told(asked: ToolReport, meant: Call | None = None, cwd: str = "/w") -> PermissionSubject:
    return subject_of(
        asked, meant, agent_id="a", tool=None, cwd=cwd, roots=[cwd], is_yes_or_no=True,
        resolve=lambda path: str(Path(path)),
    )  # fmt: skip


def of_input(value: object) -> PermissionSubject:
    return told(ToolReport(tool_call_id="c", kind="edit", raw_input=raw(value)))


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"path": "a.txt", "content": "path: /etc"}, ["/w/a.txt"]),
        ({"file_path": "/x/a"}, ["/x/a"]),
        ({"tool": "patch", "arguments": {"path": "/x/a"}}, ["/x/a"]),
        ({"source": "a", "destination": "b"}, ["/w/a", "/w/b"]),
        ({"files": ["a", "b"]}, ["/w/a", "/w/b"]),
        ({"edits": [{"filePath": "a"}, {"filePath": "b"}]}, ["/w/a", "/w/b"]),
        ({"uri": "file:///x/a%20b"}, ["/x/a b"]),
        ({"path": "~/.ssh"}, [str(Path("~/.ssh").expanduser())]),
        (
            {"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: /x/b\n"},
            ["/w/a", "/x/b"],
        ),
        ({"diff": "--- a/one\n+++ b/two\n@@ -1 +1 @@\n"}, ["/w/one", "/w/two"]),
    ],
)
def test_paths_are_found(value: object, paths: list[str]) -> None:
    found = of_input(value)
    assert (found.paths, found.has_unknown_paths) == (paths, False)


@pytest.mark.parametrize(
    "value",
    [
        {"path": "$HOME/x"},
        {"path": "`pwd`/x"},
        {"path": "~nobody-here/x"},
        {"path": "https://example.org/x"},
        {"patch": "what is this"},
        {"paths": [str(number) for number in range(MAX_PATHS + 1)]},
        {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"path": "/etc"}}}}}}}},
    ],
)
def test_what_cannot_be_told_is_said(value: object) -> None:
    assert of_input(value).has_unknown_paths


def test_locations_and_diffs_count() -> None:
    asked = ToolReport(
        tool_call_id="c",
        locations=raw([{"path": "/w/a", "line": 3}]),
        content=raw([{"type": "diff", "path": "/w/b", "newText": "x"}, {"type": "content"}, 5]),
    )
    assert told(asked).paths == ["/w/a", "/w/b"]


def test_what_the_request_leaves_out_is_known_from_the_call() -> None:
    call = Call("run", "c", 1)
    call.learn(ToolReport(tool_call_id="c", kind="edit", raw_input=raw({"path": "a"})))
    found = told(ToolReport(tool_call_id="c"), call)
    assert (found.kind, found.paths) == ("edit", ["/w/a"])


def test_a_call_that_was_too_long_to_remember_cannot_be_told() -> None:
    call = Call("run", "c", 1)
    call.learn(ToolReport(tool_call_id="c", raw_input=raw({"path": "a", "content": "x" * 70_000})))
    assert told(ToolReport(tool_call_id="c"), call).has_unknown_paths


def test_links_lead_where_they_lead(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to("/etc")
    asked = ToolReport(tool_call_id="c", raw_input=raw({"path": "out/passwd"}))
    found = subject_of(
        asked, None, agent_id="a", tool=None, cwd=str(work), roots=[str(work)], is_yes_or_no=True
    )
    assert found.paths == ["/etc/passwd"]


@pytest.mark.parametrize(
    ("value", "command"),
    [
        ({"command": "ls -l"}, "ls -l"),
        ({"cmd": "ls"}, "ls"),
        ({"command": "git", "args": ["log", "a b"]}, "git log 'a b'"),
        ({"command": ["bash", "-lc", "ls | sh"]}, "bash -lc 'ls | sh'"),
        ({"arguments": {"command": "ls"}}, "ls"),
        ({"command": "ls", "inner": {"command": "rm x"}}, "ls ; rm x"),
        ({"path": "x"}, None),
    ],
)
def test_commands_are_found(value: object, command: str | None) -> None:
    assert of_input(value).command == command


@pytest.mark.parametrize("path", ["a\x00b", "~\x00", "file://[", "file:///a%00b", "~a\x00/b"])
def test_what_is_no_path_is_no_error(path: str) -> None:
    """No rule is sure of such a call; a person is asked."""
    found = subject_of(
        ToolReport(tool_call_id="c", kind="edit", locations=raw([{"path": path}])),
        None, agent_id="a", tool=None, cwd="/w", roots=["/w"], is_yes_or_no=True,
    )  # fmt: skip
    assert found.has_unknown_paths


def test_a_link_that_is_exchanged_while_it_is_followed() -> None:
    def resolve(path: str) -> str:
        if path.endswith("swapped"):
            raise OSError(22, "Invalid argument")
        return path

    found = subject_of(
        ToolReport(tool_call_id="c", kind="edit", raw_input=raw({"path": "swapped"})),
        None, agent_id="a", tool=None, cwd="/w", roots=["/w"], is_yes_or_no=True, resolve=resolve,
    )  # fmt: skip
    assert (found.paths, found.has_unknown_paths) == (["/w/swapped"], True)
