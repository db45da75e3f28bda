"""Tool calls: partial updates, reused ids, calls nobody announced, and what a question means."""

import json
from collections.abc import Sequence

from acphost.wire.event import Event
from acphost.wire.host import Run
from tests.support.daemon import Daemon, facts, payload, running_daemon
from tests.support.editor import editor
from tests.support.profiles import hosted


async def told_of(daemon: Daemon, run: Run, tool_call_id: str) -> list[Event]:
    """The events of one call."""
    return [
        event
        for event in await daemon.events(run)
        if event.kind.startswith("tool.") and payload(event)["toolCallId"] == tool_call_id
    ]


def keys(events: Sequence[Event]) -> set[str]:
    """The keys in them."""
    return {facts(event)["toolCallKey"] for event in events}


async def test_partial_updates_merge_and_nothing_ended_is_opened_again() -> None:
    """Calls known from their end or a question; null keeps; one key; later words are marked."""
    script = """
ON prompt
    UPD c9 completed content="x"
    PERM c8 a:allow_once d:reject_once nowait as=r1
    CALL c1 pending title=Edit kind=edit
    PERM c1 a:allow_once d:reject_once nowait as=r2
    UPDATE {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": null, "content": []}
    MARK ${DIR}/asked
    AWAIT r1 r2
    UPD c1 completed
    UPD c1 in_progress
    UPDATE {"sessionUpdate": "tool_call", "toolCallId": "c1", "rawInput": {"full": true}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        await daemon.marked("asked")
        await daemon.until(session, lambda seen: seen.status == "waiting", "waiting")
        questions = await daemon.questions(session)
        edit, unseen = sorted(questions, key=lambda each: each.tool_call_key or "")
        assert unseen.tool_call_key == f"{run.host_run_id}/c8/1"
        assert edit.tool_call_key == f"{run.host_run_id}/c1/1"
        # What the request leaves out is known from the call.
        call = json.loads(bytes(edit.request))["toolCall"]
        assert (call["title"], call["kind"]) == ("Edit", "edit")
        for question in (unseen, edit):
            await daemon.client.respond(question.permission_id, "a")
        await daemon.wait(run)

        (ended,) = await told_of(daemon, run, "c9")
        assert ended.kind == "tool.completed"
        calls = await told_of(daemon, run, "c1")
        assert [event.kind for event in calls] == [
            "tool.started", "tool.updated", "tool.completed", "tool.updated", "tool.updated",
        ]  # fmt: skip
        assert keys(calls) == {f"{run.host_run_id}/c1/1"}
        assert [facts(event).get("afterEnd", False) for event in calls] == [
            False, False, False, True, True,
        ]  # fmt: skip
        assert payload(calls[1])["title"] is None  # as it came
        assert await told_of(daemon, run, "c8") == []


async def test_an_id_that_is_used_again_is_another_call() -> None:
    """In one turn by its occurrence, over turns by the turn."""
    script = """
ON prompt
    CALL c1 pending title=One kind=read
    UPD c1 completed
    CALL c1 pending title=Two kind=read
    UPD c1 failed
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        first, second = await daemon.ask(session, "a"), await daemon.ask(session, "b")
        for run in (first, second):
            calls = await told_of(daemon, run, "c1")
            assert [facts(event)["toolCallKey"] for event in calls] == [
                f"{run.host_run_id}/c1/{occurrence}" for occurrence in (1, 1, 2, 2)
            ]
            assert [facts(event).get("occurrence") for event in calls] == [None, None, 2, 2]


async def test_what_is_left_open_is_closed_and_a_late_word_still_counts() -> None:
    """Of unknown outcome at the end of the turn, also where the agent dies; a late end is told."""
    script = """
ON prompt "leave"
    CALL c1 pending title=One
    CALL c2 in_progress title=Two
    END end_turn
    UPD c1 completed
ON prompt
    CALL c3 pending title=Three
    EXIT 1
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "leave")
        await daemon.has_event(session, "tool.completed")
        first = await told_of(daemon, run, "c1")
        assert [event.kind for event in first] == ["tool.started", "tool.failed", "tool.completed"]
        assert first[1].synthetic
        assert facts(first[1])["outcome"] == "unknown"
        assert facts(first[2])["late"] is True
        assert keys(first) == {f"{run.host_run_id}/c1/1"}

        died = await daemon.ask(session, "die")
        assert died.status == "interrupted"
        third = await told_of(daemon, died, "c3")
        assert [event.kind for event in third] == ["tool.started", "tool.failed"]


async def test_reasonix_questions_are_about_the_call_they_mean() -> None:
    """`gate-1` in two sessions at once, answered the other way round; each names its own call."""
    async with hosted("reasonix") as daemon:
        sessions = [await daemon.session(), await daemon.session()]
        runs = []
        for session in sessions:
            await daemon.ask(session, "say 1")
            params = {"sessionId": session, "configOption": {"tool_approval": "read-only"}}
            await daemon.client.request("session/configure", params, dict)
            runs.append(await daemon.send(session, 'bash {"command": "ls"}'))
        questions = [await daemon.question(session) for session in sessions]
        for question, option in zip(
            reversed(questions), ("reject_once", "allow_once"), strict=True
        ):
            await daemon.client.respond(question.permission_id, option)
        for run, question in zip(runs, questions, strict=True):
            await daemon.wait(run)
            (requested,) = await daemon.events(run, "permission.requested")
            assert payload(requested)["toolCall"]["toolCallId"] == "gate-1"
            (started,) = await daemon.events(run, "tool.started")
            assert question.tool_call_key == facts(started)["toolCallKey"]
            subject = json.loads(bytes(question.request))["subject"]
            assert (subject["tool"], subject["command"]) == ("bash", "ls")
        assert len(await daemon.events(runs[0], "tool.completed")) == 1
        assert len(await daemon.events(runs[1], "tool.failed")) == 1


def shown(text: str) -> dict[str, object]:
    """An item of what a call shows."""
    return {"type": "content", "content": {"type": "text", "text": text}}


async def test_what_is_seen_after_updates_is_the_call_as_it_stands() -> None:
    """Lists replace, null keeps, bad items are dropped alone: in a question, and to an editor."""
    one, two = shown("one"), shown("two")
    diff = {"type": "diff", "path": "/a", "oldText": None, "newText": "b"}
    updates: list[dict[str, object]] = [
        {"sessionUpdate": "tool_call", "title": "Edit", "kind": "edit", "content": [one, two],
         "locations": [{"path": "/a", "line": 1}], "status": "pending"},
        {"status": "in_progress", "content": None, "title": None, "locations": None},
        {"content": [3, diff, {"no": "type"}], "kind": 5, "status": ["odd"]},
        {"content": "not a list", "locations": [{"path": "/b"}]},
    ]  # fmt: skip
    whole = [{"sessionUpdate": "tool_call_update", "toolCallId": "c1", **each} for each in updates]
    steps = "".join(f"    UPDATE {json.dumps(each)}\n" for each in whole)
    ending = """    PERM c1 a:allow_once d:reject_once
    UPD c1 completed
    UPDATE {"sessionUpdate": "tool_call_update", "toolCallId": "c2", "content": [%s]}
    UPDATE {"sessionUpdate": "tool_call_update", "toolCallId": "c2", "content": []}
    MSG done
"""
    script = f"ON prompt\n{steps}{ending % json.dumps(one)}"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        question = await daemon.question(session)
        asked = json.loads(bytes(question.request))
        assert (asked["toolCall"]["title"], asked["toolCall"]["kind"]) == ("Edit", "edit")
        assert sorted(asked["subject"]["paths"]) == ["/a", "/b"]
        await daemon.client.respond(question.permission_id, "a")
        await daemon.wait(run)

        async with editor(daemon) as zed:
            await zed.load(session)
            calls = [
                each
                for each in zed.updates(session)
                if each["sessionUpdate"] in ("tool_call", "tool_call_update")
            ]
        first, second = calls
        assert first == {
            "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit", "kind": "edit",
            "status": "completed", "content": [diff], "locations": [{"path": "/b"}],
        }  # fmt: skip
        assert (second["title"], second["content"]) == ("c2", [])
