"""What agents may put around their words: ids, batches, notifications, and many of everything."""

import json

from tests.support.daemon import facts, payload, running_daemon


async def test_every_kind_of_id_comes_back_as_it_was() -> None:
    """A text, a number in a text, zero, null, and numbers that no double, no 64 bits can hold."""
    ids = ['"a-1"', '"7"', "0", "null", "-5", str(2**53 + 1), str(2**63 - 1)]
    ids += [str(2**64), str(-(10**30))]
    steps = "".join(f"    PERM c1 yes:allow_once no:reject_once id={each}\n" for each in ids)
    rule = {"name": "all", "kinds": ["other"], "answer": "allow_once"}
    async with running_daemon(f"ON prompt\n    CALL c1 title=Go kind=other\n{steps}") as daemon:
        session = await daemon.session(policy=[rule])
        run = await daemon.ask(session, "go")

        assert run.status == "completed"
        told = [each["id"] for each in daemon.heard() if "method" not in each]
        assert told == [json.loads(each) for each in ids]
        assert [type(each) for each in told] == [type(json.loads(each)) for each in ids]


async def test_a_batch_is_refused_once_and_the_next_line_counts() -> None:
    """Whatever JSON is no object has one answer with a null id; the turn goes on."""
    script = r"""
ON prompt
    RAW '[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"y"}]\n'
    RAW '42\n'
    ASK x/unknown {} id="behind"
    MSG "ok"
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "go")

        assert await daemon.text(run) == "ok"
        refused = [each for each in daemon.heard() if "error" in each]
        assert [(each["id"], each["error"]["code"]) for each in refused] == [
            (None, -32600), (None, -32600), ("behind", -32601),
        ]  # fmt: skip


async def test_notifications_that_nobody_knows_have_no_answer() -> None:
    """Of the protocol, of a vendor, of anybody: silence, and the request behind them is refused."""
    script = """
ON prompt
    NOTIFY $/foo {"a": 1}
    NOTIFY _vendor/foo {"a": 1}
    NOTIFY session/foo {"a": 1}
    ASK _vendor/ask {} id="last"
    MSG "ok"
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "go")

        assert await daemon.text(run) == "ok"
        answers = [each for each in daemon.heard() if "method" not in each]
        assert [(each["id"], each["error"]["code"]) for each in answers] == [("last", -32601)]


async def test_the_same_number_both_ways_at_once() -> None:
    """The agent asks under the number that our open prompt has, and both get their own answer."""
    script = """
ON prompt
    CALL c1
    PERM c1 yes:allow_once no:reject_once id=${#ID} nowait as=question
    MSG "asked"
    AWAIT question
    MSG " ${OUTCOME}"
    END end_turn
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "yes")
        ended = await daemon.wait(run)

        assert ended.stop_reason == "end_turn"
        assert await daemon.text(run) == "asked yes"
        (prompt,) = daemon.heard("session/prompt")
        (answer,) = [each for each in daemon.heard() if "method" not in each]
        assert answer["id"] == prompt["id"]


async def test_an_agent_that_does_not_read_holds_up_no_other() -> None:
    """Megabytes wait for its stdin: another agent, and another session, go on meanwhile."""
    script = """
ON prompt "stop reading"
    STOPREADING
    MARK ${DIR}/begun
    GATE ${DIR}/go
    READ
"""
    async with running_daemon(script, others={"good": ""}) as daemon:
        deaf, waiting = await daemon.session(), await daemon.session()
        await daemon.ask(waiting, "hi")
        first = await daemon.send(deaf, "stop reading")
        await daemon.marked("begun")
        second = await daemon.send(waiting, "x" * (3 << 20))
        for _ in range(3):
            assert (await daemon.ask(await daemon.session("good"), "hi")).status == "completed"
        await daemon.is_running(second)
        daemon.open("go")

        assert (await daemon.wait(first)).status == "completed"
        assert (await daemon.wait(second)).status == "completed"
        assert daemon.prompts() == ["hi", "stop reading", "x" * (3 << 20)]


async def test_one_session_id_at_two_agents_is_two_sessions() -> None:
    """Each hears its own words, also when they speak at the same time."""
    script = 'ON new\n    NEW S1\nON prompt\n    GATE ${DIR}/go\n    MSG "%s"\n'
    async with running_daemon(script % "one", others={"other": script % "two"}) as daemon:
        one, two = await daemon.session(), await daemon.session("other")
        runs = [await daemon.send(each, "hi") for each in (one, two)]
        for run in runs:
            await daemon.is_running(run)
        daemon.open("go")

        ended = [await daemon.wait(run) for run in runs]
        assert [each.acp_session_id for each in ended] == ["S1", "S1"]
        assert [await daemon.text(run) for run in runs] == ["one", "two"]


async def test_a_broken_field_of_a_call_costs_that_field_only() -> None:
    """What is of the wrong type is passed over; lists replace lists; the rest of it counts."""
    script = """
ON prompt
    CALL c1 pending title=Edit kind=edit locations=[{"path": "/a"}]
    UPDATE {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": 5, "kind": ["x"], \
"status": "in_progress", "locations": "nowhere", "content": [7, {"type": "content"}]}
    PERM c1 yes:allow_once no:reject_once
    UPD c1 completed locations=[{"path": "/b"}]
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "go")
        question = await daemon.question(session)
        call = json.loads(bytes(question.request))["toolCall"]
        assert (call["title"], call["kind"]) == ("Edit", "edit")
        await daemon.client.respond(question.permission_id, "yes")
        ended = await daemon.wait(run)

        assert ended.status == "completed"
        calls = [event for event in await daemon.events(run) if event.kind.startswith("tool.")]
        assert [event.kind for event in calls] == [
            "tool.started", "tool.updated", "tool.completed",
        ]  # fmt: skip
        assert payload(calls[1])["title"] == 5  # as it came
        assert not any(facts(event).get("afterEnd") for event in calls)
