"""`acphost policy test`: what the rules would have answered to all that agents have asked."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from acphost.cli.daemon import all_sessions, find_session, reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.permit import all_decisions
from acphost.cli.render import how_decided
from acphost.cli.screen import err, one_line, out, short, table
from acphost.session.policy import decide
from acphost.wire.host import Decision
from acphost.wire.policy import PermissionSubject, PolicyRule

_WHAT = 60


class Tried(msgspec.Struct, frozen=True, rename="camel"):
    """A request of the past, what the rules say to it, and what was really answered."""

    permission_id: str
    session_id: str
    host_run_id: str | None
    created_at: str
    agent_id: str
    tool: str | None
    kind: str | None
    what: str
    rule: str | None
    answer: str
    status: str
    outcome: str | None
    #: The kind of the option that was chosen.
    really: str | None
    really_by: str

    @property
    def differs(self) -> bool:
        """Whether the rules would answer otherwise than was answered."""
        return self.answer != "ask" and self.really is not None and self.really != self.answer


def run(options: Options) -> int:
    """Run the command."""
    rules = _rules(options)
    tried, untold = anyio.run(_try_all, options, rules)
    if options.json:
        print_json({"items": tried, "rules": [rule.name for rule in rules], "untold": untold})
    else:
        _print(tried, untold)
    return Exit.OK


def _rules(options: Options) -> list[PolicyRule]:
    from acphost.settings.load import load_rules, load_settings

    if options.rules is not None:
        return load_rules(Path(options.rules).expanduser().absolute())
    return load_settings(flags=vars(options), environ=os.environ).policy.rules


async def _try_all(options: Options, rules: Sequence[PolicyRule]) -> tuple[list[Tried], int]:
    """Every request with what the rules say; and how many were not told well enough to try."""
    async with reach(options) as client:
        wanted = None
        if options.session is not None:
            wanted = (await find_session(client, options.session)).session_id
        own: dict[str, list[PolicyRule]] = {}
        if options.rules is None:
            for session in await all_sessions(client):
                own[session.session_id] = session.policy
        tried = [
            _try(decision, [*own.get(decision.session_id, ()), *rules])
            for decision in await all_decisions(client, wanted)
        ]
    return [each for each in tried if each is not None], tried.count(None)


class _Request(msgspec.Struct):
    subject: PermissionSubject | None = None


def _try(decision: Decision, rules: Sequence[PolicyRule]) -> Tried | None:
    subject = msgspec.json.decode(decision.request, type=_Request).subject
    if subject is None:
        return None
    options: list[dict[str, Any]] = msgspec.json.decode(decision.options)
    offered = {option.get("optionId"): option.get("kind") for option in options}
    decided = decide(subject, rules)
    # A rule picks an option of its kind, where one is offered; otherwise a person is asked.
    can_answer = list(offered.values()).count(decided.answer) == 1
    return Tried(
        permission_id=decision.permission_id,
        session_id=decision.session_id,
        host_run_id=decision.host_run_id,
        created_at=decision.created_at,
        agent_id=subject.agent_id,
        tool=subject.tool,
        kind=subject.kind,
        what=subject.command or ", ".join(subject.paths) or "",
        rule=decided.rule.name if decided.rule is not None else None,
        answer=decided.answer if can_answer else "ask",
        status=decision.status,
        outcome=decision.outcome,
        really=offered.get(decision.option_id) if decision.option_id is not None else None,
        really_by=how_decided(decision),
    )


def _print(tried: list[Tried], untold: int) -> None:
    pen = out()
    rows = [
        (
            short(each.permission_id),
            each.agent_id,
            each.tool or each.kind or "",
            one_line(each.what, _WHAT),
            each.rule or "-",
            each.answer,
            ("! " if each.differs else "") + each.really_by,
        )
        for each in tried
    ]
    if rows:
        columns = ("ID", "AGENT", "TOOL", "WHAT", "RULE", "WOULD ANSWER", "REALLY")
        head, *lines = table(columns, rows)
        pen.line(head, "bold")
        for line in lines:
            pen.line(pen.safe(line.rstrip()))
    count = dict.fromkeys(("allow_once", "reject_once", "ask"), 0)
    for each in tried:
        count[each.answer] += 1
    said = ", ".join(f"{number} {answer}" for answer, number in count.items())
    differing = sum(each.differs for each in tried)
    err().line(f"{len(tried)} requests: {said}; {differing} otherwise than was answered")
    if untold:
        err().line(f"{untold} more were kept by an older version, without what rules look at")
