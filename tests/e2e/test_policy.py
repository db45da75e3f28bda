"""Rules answer for a person: in the same step as the question, by name, and never too much."""

import json
from pathlib import Path

import pytest

from acphost.errors import InvalidParamsError
from tests.support.daemon import Daemon, facts, payload, running_daemon
from tests.support.profiles import hosted
from tests.support.terminal import acphost

EDITS = """
ON prompt ~"edit (\\S+)"
    CALL c1 pending title="Edit" kind=edit rawInput={"path": "${1}"}
    PERM c1 yes:allow_once:Allow always:allow_always:Always no:reject_once:Deny title="Edit ${1}"
    MSG ${OUTCOME}
    UPD c1 completed
ON prompt ~"run (.+)"
    CALL c2 pending title="Run" kind=execute rawInput={"command": "${1}"}
    PERM c2 yes:allow_once:Allow no:reject_once:Deny
    MSG ${OUTCOME}
    UPD c2 completed
ON prompt "choose"
    PERM q1 one:allow_once:One two:allow_once:Two no:reject_once:None kind=edit
    MSG ${OUTCOME}
"""
IN_ROOT = {"name": "the project", "kinds": ["edit"], "paths": ["."], "answer": "allow_once"}
NO_KEYS = {"name": "no keys", "paths": [".env"], "answer": "reject_once"}
LOOK = {"name": "look", "commands": ["git status"], "answer": "allow_once"}
RULES = {"policy": {"rules": [NO_KEYS, IN_ROOT, LOOK]}}


async def asked_and(daemon: Daemon, session: str, text: str, option: str) -> str:
    """Send a prompt whose question a person must answer; returns what the agent was told."""
    run = await daemon.send(session, text)
    question = await daemon.question(session)
    await daemon.client.respond(question.permission_id, option)
    await daemon.wait(run)
    return await daemon.text(run)


async def test_a_rule_answers_in_the_same_step_and_is_named() -> None:
    """Question and answer are one unit; only the option of that kind, and nobody is `by`."""
    async with running_daemon(EDITS, host=RULES) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "edit notes.txt")

        assert await daemon.text(run) == "yes"
        requested, resolved = await daemon.events(
            run, "permission.requested", "permission.resolved"
        )
        assert int(resolved.offset) == int(requested.offset) + 1
        assert resolved.created_at == requested.created_at
        said = payload(resolved)
        assert (said["rule"], said["optionId"], said["by"]) == ("the project", "yes", None)
        (decision,) = await daemon.questions(session, "all")
        assert (decision.status, decision.rule) == ("resolved", "the project")
        request = json.loads(bytes(decision.request))
        assert request["subject"]["paths"] == [str((daemon.work / "notes.txt").resolve())]
        assert "waiting" not in [seen.kind for seen in daemon.seen]


async def test_the_first_rule_that_fits_counts() -> None:
    """A rejecting rule before an allowing one; the turn goes on."""
    async with running_daemon(EDITS, host=RULES) as daemon:
        run = await daemon.ask(await daemon.session(), "edit .env")

        assert await daemon.text(run) == "no"
        (resolved,) = await daemon.events(run, "permission.resolved")
        assert payload(resolved)["rule"] == "no keys"


async def test_what_leads_out_of_the_project_is_asked() -> None:
    """By `..`, by an absolute path, through a symbolic link: a person decides."""
    async with running_daemon(EDITS, host=RULES) as daemon:
        (daemon.work / "link").symlink_to("/etc")
        session = await daemon.session()
        for path in ("../outside", "/etc/passwd", "link/passwd", "$HOME/x"):
            assert await asked_and(daemon, session, f"edit {path}", "no") == "no"


async def test_a_command_is_allowed_as_one_command_only() -> None:
    """Words, not letters; a line with more than one command is asked."""
    async with running_daemon(EDITS, host=RULES) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "run git status -s")
        assert await daemon.text(run) == "yes"
        for command in ("git statusx", "git status; rm -rf x", "git status `rm x`", "git log"):
            assert await asked_and(daemon, session, f"run {command}", "no") == "no"


async def test_a_choice_is_never_answered_by_a_rule() -> None:
    """Several ways to say yes: no rule knows which."""
    rules = {"policy": {"rules": [{"name": "all", "kinds": ["edit"], "answer": "allow_once"}]}}
    async with running_daemon(EDITS, host=rules) as daemon:
        assert await asked_and(daemon, await daemon.session(), "choose", "two") == "two"


async def test_what_cannot_be_refused_is_never_answered_by_a_rule() -> None:
    """Leave that offers no way to say no is something to be read by a person."""
    script = """
ON prompt
    PERM c1 yes:allow_once:Understood kind=edit
    MSG ${OUTCOME}
"""
    rules = {"policy": {"rules": [{"name": "all", "kinds": ["edit"], "answer": "allow_once"}]}}
    async with running_daemon(script, host=rules) as daemon:
        assert await asked_and(daemon, await daemon.session(), "x", "yes") == "yes"


async def test_a_rule_that_says_ask_is_shown_with_the_question() -> None:
    """The search ends there, and a person is asked."""
    first = {"name": "look here", "kinds": ["edit"], "answer": "ask"}
    async with running_daemon(EDITS, host={"policy": {"rules": [first, IN_ROOT]}}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit a")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "yes")
        await daemon.wait(run)

        (requested,) = await daemon.events(run, "permission.requested")
        assert facts(requested)["policy"] == {"rule": "look here", "answer": "ask"}
        (resolved,) = await daemon.events(run, "permission.resolved")
        assert payload(resolved)["rule"] is None
        assert payload(resolved)["by"]["actorId"]


async def test_an_answer_that_is_not_offered_is_asked() -> None:
    """A rule picks an option of its kind, and never another one instead."""
    script = """
ON prompt
    PERM c1 always:allow_always:Always no:reject_once:Deny kind=edit
    MSG ${OUTCOME}
"""
    rules = {"policy": {"rules": [{"name": "e", "kinds": ["edit"], "answer": "allow_once"}]}}
    async with running_daemon(script, host=rules) as daemon:
        assert await asked_and(daemon, await daemon.session(), "x", "no") == "no"


async def test_a_session_may_have_rules_of_its_own() -> None:
    """They count before those of the configuration, survive a restart, and are shown."""
    own = {"name": "mine", "kinds": ["edit"], "answer": "reject_once"}
    async with running_daemon(EDITS, host=RULES) as daemon:
        session = await daemon.session(policy=[own])
        other = await daemon.session()
        assert await daemon.text(await daemon.ask(session, "edit a")) == "no"
        assert await daemon.text(await daemon.ask(other, "edit a")) == "yes"
        assert [rule.name for rule in (await daemon.get(session)).policy] == ["mine"]
        await daemon.restart()
        assert await daemon.text(await daemon.ask(session, "edit b")) == "no"


async def test_a_sessions_rules_are_checked() -> None:
    """A rule that would allow everything, a name twice, a word nobody knows: refused by place."""
    async with running_daemon(EDITS) as daemon:
        for rules, where in (
            ([{"name": "x", "answer": "allow_once"}], "$.policy[0]"),
            ([{"name": "x", "answer": "ask"}, {"name": "x", "answer": "ask"}], "$.policy[1]"),
            ([{"name": "x", "answer": "perhaps"}], "$.policy[0].answer"),
            ([{"name": "x", "answer": "ask", "kinds": ["write"]}], "$.policy[0].kinds[0]"),
        ):
            with pytest.raises(InvalidParamsError) as refused:
                await daemon.session(policy=rules)
            assert where in str(refused.value)


async def test_new_rules_count_for_new_questions_only() -> None:
    """An open question stays a person's when the configuration changes."""
    async with running_daemon(EDITS) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "edit a")
        question = await daemon.question(session)
        daemon.configure(policy={"rules": [IN_ROOT]})
        assert "policy.rules" in (await daemon.client.reload()).changed
        assert [each.permission_id for each in await daemon.questions(session)] == [
            question.permission_id
        ]
        await daemon.client.respond(question.permission_id, "no")
        await daemon.wait(run)

        assert await daemon.text(await daemon.ask(session, "edit b")) == "yes"


async def test_rules_are_silent_once_the_turn_is_being_stopped() -> None:
    """Cancelled is the answer then, whatever a rule would have said."""
    script = """
ON prompt
    MARK ${DIR}/begun
    STAY
ON cancel
    PERM c1 a:allow_once d:reject_once kind=edit rawInput={"path": "a"}
    MSG ${OUTCOME}
    END cancelled
"""
    async with running_daemon(script, host=RULES) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        await daemon.marked("begun")
        await daemon.cancel(run)
        await daemon.wait(run)
        assert await daemon.text(run) == "cancelled"


async def test_rules_are_tried_on_what_was_asked(tmp_path: Path) -> None:
    """`acphost policy test`: what each rule would have said, beside what was really answered."""
    async with running_daemon(EDITS) as daemon:
        session = await daemon.session()
        assert await asked_and(daemon, session, "edit a", "no") == "no"
        assert await asked_and(daemon, session, "run git status", "yes") == "yes"
        assert await asked_and(daemon, session, "run rm x", "no") == "no"
        other = await daemon.session(policy=[NO_KEYS])
        await daemon.ask(other, "edit .env")

        rules = tmp_path / "rules.toml"
        rules.write_text(
            '[[policy.rules]]\nname = "p"\nkinds = ["edit"]\npaths = ["."]\nanswer = "allow_once"\n'
            '[[policy.rules]]\nname = "g"\ncommands = ["git"]\nanswer = "allow_once"\n'
        )
        words = ["policy", "test", *daemon.flags[:2], "--json"]
        told = json.loads((await acphost(daemon.socket, *words, "--rules", str(rules))).out)
        assert told["rules"] == ["p", "g"]
        found = [
            (each["what"], each["rule"], each["answer"], each["really"]) for each in told["items"]
        ]
        work = daemon.work.resolve()
        assert found == [
            (f"{work}/a", "p", "allow_once", "reject_once"),
            ("git status", "g", "allow_once", "allow_once"),
            ("rm x", None, "ask", "reject_once"),
            (f"{work}/.env", "p", "allow_once", "reject_once"),
        ]
        assert 'by rule "no keys"' in told["items"][3]["reallyBy"]

        own = await acphost(daemon.socket, *words, "--session", other)
        (item,) = json.loads(own.out)["items"]
        assert (item["rule"], item["answer"]) == ("no keys", "reject_once")

        shown = await acphost(daemon.socket, *words[:-1], "--rules", str(rules))
        assert "git status" in shown.out
        assert "4 requests: 3 allow_once, 0 reject_once, 1 ask; 2 otherwise" in shown.err

        rules.write_text('[[policy.rules]]\nname = "p"\n')
        bad = await acphost(daemon.socket, *words, "--rules", str(rules))
        assert bad.code == 78
        assert 'lacks "answer"' in bad.err


async def test_who_answered_is_listed() -> None:
    """`acphost permit --all`: how, by whom or which rule, and when."""
    async with running_daemon(EDITS, host=RULES) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "edit a")
        await asked_and(daemon, session, "run rm x", "no")
        listed = await acphost(daemon.socket, "permit", "--all")

        assert 'yes by rule "the project"' in listed.out
        assert "no by acphost.client (uid:" in listed.out


@pytest.mark.parametrize(
    ("runtime", "text", "asked_as", "tool"),
    [
        ("hermes", 'write_file {"path": "WORK/x.txt"}', "edit-approval-1", "write_file"),
        ("hermes", 'terminal {"command": "rm x"}', "perm-check-1", "terminal"),
    ],
)
async def test_hermes_questions_are_about_the_call_they_mean(
    runtime: str, text: str, asked_as: str, tool: str
) -> None:
    """The question has an id of its own; the decision names the call that was announced."""
    async with hosted(runtime) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, text.replace("WORK", str(daemon.work)))
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "deny")
        await daemon.wait(run)

        (requested,) = await daemon.events(run, "permission.requested")
        assert payload(requested)["toolCall"]["toolCallId"] == asked_as
        (started,) = await daemon.events(run, "tool.started")
        key = facts(started)["toolCallKey"]
        assert question.tool_call_key == facts(requested)["toolCallKey"] == key
        assert key == f"{run.host_run_id}/{payload(started)['toolCallId']}/1"
        assert json.loads(bytes(question.request))["subject"]["tool"] == tool
