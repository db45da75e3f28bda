"""Whatever an agent says: kept, in its place, and never fatal."""

import base64
import json
import os
import signal
from typing import Any

import pytest

from acphost.wire.daemon import Pong
from tests.support.daemon import facts, payload, running_daemon
from tests.support.terminal import acphost


async def test_noise_between_the_lines() -> None:
    """Banners, blank lines, escapes, one of them on the line of an answer: the text is exact."""
    script = """
RAW "Loaded cached credentials.\\n\\n"
INIT
NEW S1
PROMPT as=p
RAW "[tool] thinking...\\n"
RAW "\\e]0;title\\x07"
MSG "ok"
RAW "\\e[2K\\r\\n"
END
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.status == "completed"
        assert await daemon.text(run) == "ok"
        stats: Any = await daemon.client.stats()
        assert [agent["anomalies"] for agent in stats["agents"]] == [4]
        noise = [
            payload(event)["text"]
            for event in await daemon.history(run.session_id, "evidence")
            if facts(event)["evidence"] == "stdout_noise"
        ]
        assert noise == ["Loaded cached credentials.", "[tool] thinking...", "\x1b[2K"]


async def test_every_request_is_answered() -> None:
    """What this host does not offer is refused at once; the notification beside it is kept."""
    script = """
ON prompt
    ASK session/other {"sessionId": "${SESSION}", "message": "?"} id="a1" save=${DIR}/one
    ASK x/unknown {} id=7 save=${DIR}/two
    NOTIFY x/n {"what": 1}
    MSG "ok"
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert await daemon.text(run) == "ok"
        for name in ("one", "two"):
            assert json.loads(await daemon.marked(name))["error"]["code"] == -32601
        kept = [payload(event) for event in await daemon.events(run, "evidence")]
        assert {"method": "x/n", "params": {"what": 1}} in kept


async def test_ids_are_compared_by_type_and_value() -> None:
    """An answer under a text id, an agent's request with our id, a second answer, stray ones."""
    script = """
ON prompt
    ANSWER {"stopReason": "refusal"} id="${ID}"
    PERM c1 a:allow_once d:reject_once id=${#ID}
    MSG ${OUTCOME}
    SEND {"jsonrpc": "2.0", "id": 999, "result": {}}
    SEND {"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "parse"}}
    END end_turn
    END max_tokens
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "a")
        ended = await daemon.wait(run)

        assert ended.stop_reason == "end_turn"
        assert await daemon.text(run) == "a"
        await daemon.client.request("host/ping", {}, Pong)
        strays = [
            payload(event)
            for event in await daemon.history(session, "evidence")
            if facts(event)["evidence"] == "stray_answer"
        ]
        assert [stray["id"] for stray in strays[1:3]] == [999, None]
        assert strays[2]["error"] == {"code": -32700, "message": "parse"}
        # The answer under a text id, and the second answer to the prompt.
        assert isinstance(strays[0]["id"], str)
        assert strays[3]["result"] == {"stopReason": "max_tokens"}


async def test_updates_before_the_session_is_known() -> None:
    """Said ahead of the answer to `session/new`: in the journal once the id is known."""
    script = """
ON new
    UPDATE {"sessionUpdate": "available_commands_update", "availableCommands": []} session=S1
    UPDATE {"sessionUpdate": "available_commands_update", "availableCommands": []} session=NOBODY
    NEW S1
    SESSION S1
    UPDATE {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")

        assert len(await daemon.history(session, "session.commands.updated")) == 1
        assert len(await daemon.history(session, "session.mode.updated")) == 1


async def test_updates_after_the_turn() -> None:
    """Tied to the ended run and marked late; the session does not go back to running."""
    script = """
ON prompt "hi"
    CALL c1 in_progress
    END
    MSG "tail"
    UPD c1 completed
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        await daemon.has_event(session, "tool.completed")

        late = [event for event in await daemon.events(run) if facts(event).get("late")]
        assert [event.kind for event in late] == ["message.delta", "tool.completed"]
        abandoned, corrected = await daemon.events(run, "tool.failed", "tool.completed")
        assert abandoned.synthetic
        assert facts(abandoned)["outcome"] == "unknown"
        assert not corrected.synthetic
        assert (await daemon.get(session)).status == "idle"


async def test_words_before_and_between_turns() -> None:
    """A greeting ahead of any prompt, and a remark long after a turn: both are in the journal."""
    script = """
ON new
    NEW S1
    SESSION S1
    MSG "welcome"
ON prompt "one"
    MSG "first"
    END
    GATE ${DIR}/go
    UPDATE {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "by the way"}}
    MARK ${DIR}/said
ON prompt
    MSG "second"
"""  # noqa: E501
    async with running_daemon(script) as daemon:
        session = await daemon.session(start=True)
        await daemon.has_event(session, "message.delta")
        first = await daemon.ask(session, "one")
        daemon.open("go")
        await daemon.marked("said")
        second = await daemon.ask(session, "two")

        told = await daemon.history(session, "message.delta")
        assert [payload(event)["content"]["text"] for event in told] == [
            "welcome", "first", "by the way", "second",
        ]  # fmt: skip
        assert [event.host_run_id for event in told] == [
            None, first.host_run_id, first.host_run_id, second.host_run_id,
        ]  # fmt: skip
        assert await daemon.text(second) == "second"


async def test_each_session_of_a_process_hears_its_own() -> None:
    """A word for another live session goes there, not to the one whose turn it is."""
    script = """
ON prompt "one"
    MSG "for two" session=${OTHER:-none}
    MSG "for one"
ON prompt "who"
    SET OTHER ${SESSION} scope=process
    MSG "me"
"""
    async with running_daemon(script) as daemon:
        one, two = await daemon.session(), await daemon.session()
        await daemon.ask(two, "who")
        run = await daemon.ask(one, "one")

        assert await daemon.text(run) == "for one"
        said = [payload(event)["content"]["text"]
                for event in await daemon.history(two, "message.delta")]  # fmt: skip
        assert said == ["me", "for two"]


ODD = [
    '{"sessionUpdate": "future_kind", "x": [1]}',
    '{"sessionUpdate": "agent_message_chunk", "content": null}',
    '{"sessionUpdate": "agent_message_chunk"}',
    '{"sessionUpdate": "agent_message_chunk", "content": "text"}',
    '{"sessionUpdate": "tool_call", "title": "no id"}',
    '{"no": "tag"}',
    '{"sessionUpdate": 5}',
]


async def test_what_nobody_knows_is_kept_whole() -> None:
    """Unknown kinds, missing fields, wrong types: each is evidence, none harms the next."""
    odd = "\n".join(f"    UPDATE {update}" for update in ODD)
    script = f"""
ON prompt
{odd}
    UPDATE {{"sessionUpdate": "plan"}}
    UPDATE {{"sessionUpdate": "agent_message_chunk", "content": {{"type": "hologram", "z": 1}}}}
    SEND {{"jsonrpc": "2.0", "method": "session/update"}}
    SEND {{"method": "session/update", "params": {{"sessionId": 5, "update": {{}}}}}}
    MSG "ok"
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")

        assert run.status == "completed"
        kept = [payload(event) for event in await daemon.events(run, "evidence")]
        for update in ODD:
            assert json.loads(update) in kept
        said = [payload(event)["content"] for event in await daemon.events(run, "message.delta")]
        assert said == [{"type": "hologram", "z": 1}, {"type": "text", "text": "ok"}]
        assert len(kept) == len(ODD) + 2


async def test_calls_left_open_are_closed_as_unknown() -> None:
    """At the end of the turn, and at the death of the agent: no call spins for ever."""
    script = """
ON prompt "one"
    CALL c1
    CALL c2 in_progress
ON prompt "two"
    CALL c3
    EXIT 1
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        first = await daemon.ask(session, "one")
        second = await daemon.ask(session, "two")

        assert (first.status, second.status) == ("completed", "interrupted")
        closed = await daemon.events(first, "tool.failed")
        assert [payload(event)["toolCallId"] for event in closed] == ["c1", "c2"]
        assert all(event.synthetic for event in closed)
        assert len(await daemon.events(second, "tool.failed")) == 1
        assert (await daemon.kinds(first))[-1] == "run.completed"


async def test_a_finished_call_is_not_opened_again() -> None:
    """An update that comes after the end of a call leaves it ended; nothing is closed twice."""
    script = """
ON prompt
    UPD c9 completed content="x"
    CALL c1 pending title="Edit" kind=edit
    UPD c1 completed
    UPD c1 in_progress
"""
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        ends = await daemon.events(run, "tool.completed", "tool.failed")
        assert [payload(event)["toolCallId"] for event in ends] == ["c9", "c1"]
        assert not any(event.synthetic for event in ends)


async def test_line_separators_are_no_line_ends() -> None:
    """U+2028 and its kin inside a text, lines that end in CR LF: one message, exactly that text."""
    text = "a\u2028b\u2029c\u0085d\x1ce"
    call = json.dumps(
        {"sessionUpdate": "tool_call", "toolCallId": "c", "title": text, "status": "completed",
         "content": [{"type": "content", "content": {"type": "text", "text": text}}]},
        ensure_ascii=False,
    )  # fmt: skip
    message = '{"method":"session/update","params":{"sessionId":"${SESSION}","update":CALL}}'
    message = message.replace("CALL", call)
    script = 'EOL crlf\nON prompt\n    MSG "a\\u2028b\\u2029c\\u0085d\\x1ce"\n    MSG ${PROMPT}\n'
    escaped = "".join(
        letter if letter.isascii() and letter != "\\" else f"\\u{ord(letter):04x}"
        for letter in message
    )
    script += f"    RAW '{escaped}\\r\\n'\n"
    async with running_daemon(script) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        run = await daemon.ask(session, text)

        assert await daemon.text(run) == text + text
        assert daemon.prompts() == [text]
        result = await wire.result("run/events", {"hostRunId": run.host_run_id})
        said = [event for event in result["events"] if event["kind"] == "message.delta"]
        assert said[0]["payload"]["content"]["text"] == text
        (call,) = [event for event in result["events"] if event["kind"] == "tool.completed"]
        assert call["payload"]["title"] == text
        assert call["payload"]["content"][0]["content"]["text"] == text
        renamed = await wire.result("session/rename", {"sessionId": session, "title": text})
        assert renamed["title"].replace(" ", "") == "abcde" or renamed["title"] == text


async def test_bytes_that_are_no_text() -> None:
    """Bad UTF-8, a cut surrogate, a NUL, a character in two writes: stored, shown, read again."""
    message = (
        '{"method":"session/update","params":{"sessionId":"${SESSION}","update":'
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}'
    )
    texts = [r"caf\xE9", r"\\ud800", r"nul\\u0000end"]
    lines = "".join(f"    RAW '{message % text}\\n'\n" for text in texts)
    script = f'ON prompt\n{lines}    RAW "\\xFF\\xFE\\n"\n    MSG "ok"\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        await daemon.restart()

        assert run.status == "completed"
        async with daemon.wire() as wire:
            params = {"hostRunId": run.host_run_id, "raw": True}
            result = await wire.result("run/events", params)
        said = [event for event in result["events"] if event["kind"] == "message.delta"]
        texts = [event["payload"]["content"]["text"] for event in said]
        assert texts == ["caf\ufffd", "\ufffd", "nul\0end", "ok"]
        assert [event.get("host", {}).get("lossy", False) for event in said] == [
            True,
            True,
            False,
            False,
        ]
        assert b"caf\xe9" in base64.b64decode(said[0]["payloadBase64"])


@pytest.mark.parametrize("border", [65_536, 131_072])
@pytest.mark.parametrize("before", [1, 2])
async def test_a_character_cut_in_two_at_the_border_of_a_read_is_whole(
    border: int, before: int
) -> None:
    """One or two of the three bytes of a euro sign end a full read; the others come later."""
    head = (
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S1","update":'
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
    )
    euro = ["\\xe2", "\\x82", "\\xac"]
    pad = border - before - len(head)
    script = f"""
ON new
    NEW S1
ON prompt
    RAW '{head}{"x" * pad}{"".join(euro[:before])}'
    MARK ${{DIR}}/half
    GATE ${{DIR}}/go
    RAW '{"".join(euro[before:])}"}}}}}}}}\\n'
"""
    async with running_daemon(script) as daemon:
        run = await daemon.send(await daemon.session(), "hi")
        await daemon.marked("half")
        daemon.open("go")
        assert (await daemon.wait(run)).status == "completed"

        assert await daemon.text(run) == "x" * pad + "€"
        (event,) = await daemon.events(run, "message.delta")
        assert facts(event) == {}


async def test_what_is_nested_deeply_is_readable_by_all_or_taken_by_nobody() -> None:
    """Readers give up at different depths: over the host's own limit it is noise, under it told."""
    fits, too_deep = 500, 600

    def update(levels: int) -> str:
        return f'{{"sessionUpdate": "nested", "x": {"[" * levels}{"]" * levels}}}'

    message = '{"method":"session/update","params":{"sessionId":"${SESSION}","update":%s}}'
    lines = "".join(f"    RAW '{message % update(levels)}\\n'\n" for levels in (fits, too_deep))
    async with running_daemon(f"ON prompt\n{lines}    MSG ok\n") as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        await daemon.restart()

        assert (run.status, await daemon.text(run)) == ("completed", "ok")
        kept = [payload(event) for event in await daemon.history(session, "evidence")]
        assert json.loads(update(fits)) in kept
        refused = [each["text"] for each in kept if "[" * too_deep in str(each.get("text"))]
        assert len(refused) == 1


async def test_text_that_is_hard_to_show_is_kept_exactly() -> None:
    """Ten thousand combining marks, a turned file name, a NUL in title and tool id."""
    marks, name = "e" + "\u0301" * 10_000, "photo\u202egpj.exe"
    script = f"""
ON prompt
    MSG "{marks}"
    UPDATE {{"sessionUpdate": "tool_call", "toolCallId": "a\\u0000b", "title": "{name}\\u0000!", \
"status": "completed"}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        await daemon.restart()

        assert await daemon.text(run) == marks
        (call,) = await daemon.events(run, "tool.started", "tool.completed")
        assert payload(call)["title"] == f"{name}\0!"
        assert payload(call)["toolCallId"] == "a\0b"
        shown = await acphost(daemon.socket, "attach", session, "--no-follow")
        assert "\u202e" not in shown.out + shown.err
        assert "\0" not in shown.out + shown.err


async def test_calls_are_put_together_whatever_comes_first() -> None:
    """An update and a question ahead of their call, nulls, repeats: nothing is lost or reopened."""
    script = """
ON prompt
    UPD c9 completed content=[{"type":"content","content":{"type":"text","text":"x"}}]
    PERM c8 a:allow_once
    UPDATE {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit", "kind": "edit", \
"status": "pending"}
    PERM c1 a:allow_once d:reject_once nowait as=q
    UPDATE {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": null, \
"content": [{"type": "diff", "path": "/f", "newText": "y"}]}
    MARK ${DIR}/updated
    AWAIT q
    UPD c1 completed
    UPD c1 in_progress
    UPDATE {"sessionUpdate": "tool_call", "toolCallId": "c1", "rawInput": {"full": true}}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        first = await daemon.question(session)
        await daemon.client.respond(first.permission_id, "a")
        await daemon.marked("updated")
        await daemon.until(session, lambda seen: seen.status == "waiting", "waiting")
        second = await daemon.question(session)
        assert second.permission_id != first.permission_id
        await daemon.client.respond(second.permission_id, "a")
        assert (await daemon.wait(run)).status == "completed"

        async def calls() -> list[tuple[str, str]]:
            kinds = ("tool.started", "tool.updated", "tool.completed", "tool.failed")
            return [(e.kind, payload(e)["toolCallId"]) for e in await daemon.events(run, *kinds)]

        seen = await calls()
        assert seen[0] == ("tool.completed", "c9")
        of_one = [kind for kind, call in seen if call == "c1"]
        assert of_one[:3] == ["tool.started", "tool.updated", "tool.completed"]
        # c1 has ended, and what is said of it afterwards opens nothing that had to be closed.
        assert ("tool.failed", "c1") not in seen
        await daemon.restart()
        assert await calls() == seen


async def test_long_lines_arrive_whole() -> None:
    """Far beyond what a pipe or a stream reader holds: every character is in the journal."""
    sizes = {"65535": 65_535, "65536": 65_536, "70000": 70_000, "1M": 1 << 20, "16M": 16 << 20}
    script = "".join(f'ON prompt "{size}"\n    BIG {size}\n' for size in sizes)
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        for size, length in sizes.items():
            assert (await daemon.ask(session, size)).status == "completed"
            *_, said = [row for row in daemon.journal.rows() if row.kind == "message.delta"]
            assert said.body["content"]["text"] == "x" * length, size


@pytest.mark.anew
async def test_a_line_over_the_limit_ends_that_connection_only() -> None:
    """The turn says why; memory is bounded; another agent's session does not notice."""
    over = "ON prompt\n    BIG 3M\n    STAY\n"
    endless = 'ON prompt\n    RAW "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" times=2000000\n    STAY\n'
    limits = {"limits": {"max_line_bytes": 2 << 20}}
    async with running_daemon(over, others={"endless": endless, "good": ""}, host=limits) as daemon:
        before = daemon.memory()
        for agent in ("fake", "endless"):
            run = await daemon.ask(await daemon.session(agent), "hi")
            assert run.status == "interrupted"
            assert run.error is not None
            assert "longer than" in run.error

        assert daemon.memory() - before < 50 << 20
        assert (await daemon.ask(await daemon.session("good"), "hi")).status == "completed"


@pytest.mark.anew
async def test_the_limit_that_is_shipped_holds_for_a_line_without_an_end_too() -> None:
    """A hundred megabytes without a newline: refused at 64 MiB, and memory with it."""
    endless = f"ON prompt\n    RAW {'x' * 1000} times=100000\n    STAY\n"
    async with running_daemon(endless, others={"good": ""}) as daemon:
        before = daemon.memory()
        run = await daemon.ask(await daemon.session(), "hi")
        assert run.status == "interrupted"
        assert "longer than" in (run.error or "")
        assert daemon.peak_memory() - before < (64 + 50) << 20
        assert (await daemon.ask(await daemon.session("good"), "hi")).status == "completed"


async def test_a_long_message_of_a_client() -> None:
    """A megabyte of prompt reaches the agent, character by character."""
    text = "abcdefgh" * (1 << 17)
    async with running_daemon("") as daemon:
        run = await daemon.client.create_run(text, session_id=await daemon.session())
        await daemon.wait(run)

        assert daemon.prompts() == [text]


async def test_silence_only_changes_the_status() -> None:
    """Past the agent's threshold it is shown as quiet; the turn goes on as long as it likes."""
    script = """
ON prompt
    MSG "a"
    MARK ${DIR}/begun
    GATE ${DIR}/go
    CALL c1 in_progress
    GATE ${DIR}/on
    UPD c1 completed
    PERM c2 a:allow_once
    MSG "b"
"""
    async with running_daemon(script, agent={"quiet_after": 0.2}) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "hi")
        quiet = await daemon.is_status(session, "quiet")
        assert quiet.active_run_id == run.host_run_id
        assert (await daemon.status(session)).last_sign_of_life_at is not None
        daemon.open("go")
        await daemon.has_event(session, "tool.started")
        await daemon.is_status(session, "running")  # a tool may take its time
        daemon.open("on")
        question = await daemon.question(session)
        assert (await daemon.get(session)).status == "waiting"
        await daemon.client.respond(question.permission_id, "a")
        assert (await daemon.wait(run)).status == "completed"


async def test_one_sessions_life_is_not_anothers() -> None:
    """Two turns in one process: the silent one is quiet, the one that talks is not."""
    script = """
ON prompt "silent"
    GATE ${DIR}/go
ON prompt
    REPEAT 10000
        MSG "."
        PAUSE 20
"""
    async with running_daemon(script, agent={"quiet_after": 0.5}) as daemon:
        silent, talking = await daemon.session(), await daemon.session()
        run = await daemon.send(silent, "silent")
        other = await daemon.send(talking, "talk")
        await daemon.is_status(silent, "quiet")

        await daemon.is_status(talking, "running")
        assert (await daemon.get(silent)).status == "quiet"
        daemon.open("go")
        assert (await daemon.wait(run)).status == "completed"
        await daemon.cancel(other)
        await daemon.wait(other)


async def test_five_megabytes_of_stderr_in_mid_turn() -> None:
    """It is always read, and bounded."""
    script = 'ON prompt\n    ERR "0123456789abcdef0123456789abcde\\n" times=160000\n    MSG "ok"\n'
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "hi")

        assert run.status == "completed"
        assert await daemon.text(run) == "ok"


async def test_all_pipes_full_at_once() -> None:
    """The agent writes megabytes, on stdout and stderr, before it reads what we have for it."""
    script = """
ON prompt "first"
    STOPREADING
    MARK ${DIR}/begun
    GATE ${DIR}/go
    REPEAT 64
        BIG 64K
        ERR "0123456789abcdef0123456789abcde\\n" times=2000
    READ
    PERM c1 a:allow_once
"""
    async with running_daemon(script) as daemon:
        session, other = await daemon.session(), await daemon.session()
        first = await daemon.send(session, "first")
        await daemon.marked("begun")
        second = await daemon.client.create_run("x" * (2 << 20), session_id=other)
        daemon.open("go")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "a")

        assert (await daemon.wait(first)).status == "completed"
        assert (await daemon.wait(second)).status == "completed"


async def test_an_endless_title_is_short_in_lists_and_whole_in_its_event() -> None:
    """Lists carry one line; nothing of what the agent said is lost."""
    script = """
ON prompt
    UPDATE {"sessionUpdate": "session_info_update", "title": "${LONG}\\nend"}
"""
    long = "t" * 200_000
    async with running_daemon(f"SET LONG {long}\n{script}") as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")

        (listed,) = (await daemon.client.list_sessions()).items
        assert listed.title == "t" * 300
        (event,) = await daemon.history(session, "session.info.updated")
        assert payload(event)["title"] == long + "\nend"


async def test_message_ids_stay_with_their_pieces() -> None:
    """With an id, with null, without: every piece is told in order, as it came."""
    script = """
ON prompt
    UPDATE {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": {"type": "text", "text": "a"}}
    UPDATE {"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": {"type": "text", "text": "b"}}
    UPDATE {"sessionUpdate": "agent_message_chunk", "messageId": null, "content": {"type": "text", "text": "c"}}
    MSG "d"
"""  # noqa: E501
    async with running_daemon(script) as daemon:
        run = await daemon.ask(await daemon.session(), "x")
        pieces = [payload(event) for event in await daemon.events(run, "message.delta")]
        assert [piece["content"]["text"] for piece in pieces] == ["a", "b", "c", "d"]
        assert [piece.get("messageId", "none") for piece in pieces] == ["m1", "m2", None, "none"]


async def test_words_of_every_enumeration_that_nobody_knows() -> None:
    """Of tools, plans, options and ends: kept as they came, nothing breaks, the turn ends."""
    script = """
ON prompt
    CALL c1 someday title=Dance kind=dance content=[{"type": "hologram"}, 5]
    UPD c1 vanished
    PLAN "dreaming:later"
    PERM c1 a:allow_sometimes d:reject_politely
    MSG ${OUTCOME}
    END exhausted
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "x")
        question = await daemon.question(session)
        await daemon.client.respond(question.permission_id, "a")
        ended = await daemon.wait(run)

        assert (ended.status, ended.stop_reason) == ("completed", "exhausted")
        assert await daemon.text(run) == "a"
        started, updated, closed = [
            event for event in await daemon.events(run) if event.kind.startswith("tool.")
        ]
        assert payload(started)["kind"] == "dance"
        assert payload(updated)["status"] == "vanished"
        assert facts(closed)["outcome"] == "unknown"
        (plan,) = await daemon.events(run, "plan.updated")
        assert payload(plan)["entries"][0]["status"] == "dreaming"


async def test_notices_and_compaction_keep_their_place() -> None:
    """Shown as what they are and in order, no part of the answer, and no history for the agent."""
    script = """
INIT {"agentCapabilities": {"loadSession": null, "sessionCapabilities": {"resume": null}}}
ON prompt "hi"
    UPDATE {"sessionUpdate": "notice", "severity": "warning", "title": "Slow today"}
    UPDATE {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"}
    UPDATE {"sessionUpdate": "compaction_summary_chunk", "compactionId": "k",
        "content": {"type": "text", "text": "so far"}}
    UPDATE {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed",
        "summary": null}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")

        assert (run.status, run.empty) == ("completed", True)
        kinds = [event.kind for event in await daemon.events(run)]
        assert kinds[-5:-1] == ["notice"] + ["compaction.updated"] * 3
        (last,) = (await daemon.events(run, "compaction.updated"))[-1:]
        assert payload(last)["summary"] is None
        os.kill(daemon.launches()[-1], signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        await daemon.ask(session, "again")
        packet = daemon.heard("session/prompt")[-1]["params"]["prompt"][0]["text"]
        assert "Slow today" not in packet
        assert "so far" not in packet
        (greeting, _) = daemon.heard("initialize")
        offered = greeting["params"]["clientCapabilities"]["session"]
        assert offered == {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}
