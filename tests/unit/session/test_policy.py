"""Rules: what fits, and what never does."""

from pathlib import Path

import pytest

from acphost.session.policy import decide, plain_argv
from acphost.wire.policy import PermissionSubject, PolicyRule, Verdict

ROOT = "/home/ada/project"


def rule(answer: Verdict = "allow_once", name: str = "r", **named: list[str]) -> PolicyRule:
    return PolicyRule(name=name, answer=answer, **named)  # type: ignore[arg-type]


def subject(**told: object) -> PermissionSubject:
    given = {"agent_id": "hermes", "roots": [ROOT], **told}
    return PermissionSubject(**given)  # type: ignore[arg-type]


def answer(asked: PermissionSubject, *rules: PolicyRule) -> str:
    return decide(asked, rules, resolve=lambda path: path).answer


def test_without_a_rule_a_person_is_asked() -> None:
    assert decide(subject(), []) == ("ask", None)


def test_the_first_rule_that_fits_decides() -> None:
    rules = [rule("ask", "one", kinds=["edit"]), rule("allow_once", "two", agents=["hermes"])]
    assert decide(subject(kind="edit"), rules).rule is rules[0]
    assert decide(subject(kind="read"), rules).rule is rules[1]


def test_all_that_a_rule_names_must_fit() -> None:
    both = rule(agents=["hermes"], tools=["terminal", "patch"])
    assert answer(subject(tool="patch"), both) == "allow_once"
    assert answer(subject(tool="write_file"), both) == "ask"
    assert answer(subject(agent_id="reasonix", tool="patch"), both) == "ask"


def test_a_choice_between_several_ways_is_a_persons() -> None:
    assert answer(subject(kind="read", is_yes_or_no=False), rule(kinds=["read"])) == "ask"


@pytest.mark.parametrize(
    ("paths", "fits"),
    [
        ([f"{ROOT}/src/a.py"], True),
        ([f"{ROOT}/src"], True),
        ([f"{ROOT}/src/a.py", f"{ROOT}/README"], False),
        ([f"{ROOT}/src-old/a.py"], False),
        (["/etc/passwd"], False),
        ([], False),
    ],
)
def test_to_allow_all_paths_must_lie_there(paths: list[str], fits: bool) -> None:
    asked = subject(kind="edit", paths=paths)
    assert answer(asked, rule(paths=["src"])) == ("allow_once" if fits else "ask")


def test_to_reject_one_path_is_enough() -> None:
    asked = subject(kind="edit", paths=[f"{ROOT}/a", f"{ROOT}/.env"])
    assert answer(asked, rule("reject_once", paths=[".env"])) == "reject_once"


def test_what_cannot_be_told_for_certain_is_never_allowed() -> None:
    asked = subject(kind="edit", paths=[f"{ROOT}/a"], has_unknown_paths=True)
    assert answer(asked, rule(paths=["."])) == "ask"
    reject = rule("reject_once", paths=["/etc"])
    allow = rule(kinds=["edit"])
    assert decide(asked, [reject, allow]) == ("ask", reject)


def test_a_command_is_not_allowed_by_the_paths_beside_it() -> None:
    asked = subject(kind="execute", command="rm -rf /", paths=[f"{ROOT}/a"])
    assert answer(asked, rule(paths=["."])) == "ask"
    assert answer(subject(kind="execute", paths=[f"{ROOT}/a"]), rule(paths=["."])) == "ask"


def test_a_command_does_not_carry_leave_for_other_folders() -> None:
    asked = subject(kind="execute", command="make", paths=["/etc"])
    assert answer(asked, rule(commands=["make"])) == "ask"
    assert answer(asked, rule(commands=["make"], paths=["/etc"])) == "allow_once"


def test_symbolic_links_and_dots_are_followed_in_the_rule_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    asked = subject(roots=[str(tmp_path)], paths=[str(tmp_path / "real" / "a")], kind="edit")
    assert decide(asked, [rule(paths=["x/../link"])]).answer == "allow_once"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git  status -s",
        "git 'status'",
        'git "status" --porcelain',
        "bash -lc 'git status'",
        "/bin/sh -c 'git status -s'",
    ],
)
def test_a_command_fits_word_by_word(command: str) -> None:
    asked = subject(kind="execute", command=command)
    assert answer(asked, rule(commands=["git log", "git status"])) == "allow_once"


@pytest.mark.parametrize(
    "command",
    [
        "git stash",
        "git statusx",
        "git",
        "./git status",
        "X=1 git status",
        "git status; rm -rf x",
        "git status && rm x",
        "git status & rm x",
        "git status | sh",
        "git status $(rm x)",
        "git status `rm x`",
        'git status "$(rm x)"',
        "git status > /etc/x",
        "git status < x",
        "git status\nrm x",
        "git\nstatus",
        "git status \\\n; rm x",
        "git status 'unfinished",
        "git status ; bash -c 'git status'",
        "bash -lc 'git status; rm x'",
        "bash -lc 'git status' | sh",
        "bash -c 'git status';rm",
        "bash\n-c 'git status'",
        "bash -c \"bash -c 'git status;rm'\"",
        "echo git status",
        "",
    ],
)
def test_a_command_that_is_or_may_be_another_is_not_allowed(command: str) -> None:
    asked = subject(kind="execute", command=command or None)
    assert answer(asked, rule(commands=["git status"])) == "ask"


@pytest.mark.parametrize(
    "command",
    ["rm x", "cd y && rm -r x", "true;rm x", "bash -c 'true; rm x'", "echo `rm x`", "x 'rm x"],
)
def test_to_reject_one_of_several_commands_is_enough(command: str) -> None:
    asked = subject(kind="execute", command=command)
    expected = "ask" if command == "x 'rm x" else "reject_once"
    assert answer(asked, rule("reject_once", commands=["rm"])) == expected


def test_the_words_of_a_plain_command() -> None:
    assert plain_argv(" make -j 2 ") == ["make", "-j", "2"]
    assert plain_argv("make; rm") is None


def test_rules_that_cannot_be_meant() -> None:
    assert rule().problem is not None
    assert rule("reject_once").problem is None
    assert rule(name="timeout", kinds=["read"]).problem is not None
    assert rule(kinds=["read"]).problem is None
