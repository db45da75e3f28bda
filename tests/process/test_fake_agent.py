"""Every step word of the fake agent, as a real process shows it."""

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.fake_agent import FakeAgent, Message, kind_of, playing, recorded, texts

Play = Callable[..., AbstractContextManager[FakeAgent]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Play a script given as text, with a record and the test's folder as DIR."""

    def start(
        script: str, *arguments: str, **environment: str
    ) -> AbstractContextManager[FakeAgent]:
        path = tmp_path / "test.script"
        path.write_text(script, encoding="utf-8")
        extra = ["--record", str(tmp_path / "record"), "--set", f"DIR={tmp_path}"]
        return playing(str(path), *extra, *arguments, **environment)

    return start


def test_a_linear_script_plays_a_conversation(play: Play) -> None:
    script = """
INIT {"agentCapabilities": {"loadSession": false},
      "authMethods": [{"id": "login", "name": "Login"}]}
NEW s1 {"modes": null}
PROMPT "hi"
MSG "Hello, "
THOUGHT "hm"
PLAN completed:"Look around" pending:Answer
CALL c1 pending title="Read a file" kind=read rawInput={"path": "/x"}
UPD c1 completed content="done"
END max_tokens usage={"totalTokens": 3}
"""
    with play(script) as agent:
        answer, _ = agent.answer(agent.request("initialize", protocolVersion=1))
        capabilities = answer["result"]["agentCapabilities"]
        assert capabilities["loadSession"] is False
        assert capabilities["promptCapabilities"]["image"] is True
        assert answer["result"]["authMethods"] == [{"id": "login", "name": "Login"}]
        answer, _ = agent.answer(agent.request("session/new", cwd="/w", mcpServers=[]))
        assert answer["result"] == {"sessionId": "s1", "modes": None}
        answer, before = agent.answer(agent.prompt("s1", "hi there"))
        assert answer["result"] == {"stopReason": "max_tokens", "usage": {"totalTokens": 3}}
        updates = [message["params"]["update"] for message in before]
        assert updates == [
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": "Hello, "},
            },
            {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}},
            {
                "sessionUpdate": "plan",
                "entries": [
                    {"content": "Look around", "priority": "medium", "status": "completed"},
                    {"content": "Answer", "priority": "medium", "status": "pending"},
                ],
            },
            {
                "sessionUpdate": "tool_call",
                "toolCallId": "c1",
                "title": "Read a file",
                "status": "pending",
                "kind": "read",
                "rawInput": {"path": "/x"},
            },
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "c1",
                "status": "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": "done"}}],
            },
        ]
        assert agent.end() == 0


def test_what_no_step_takes_is_answered_as_a_good_agent_would(play: Play) -> None:
    with play("") as agent:
        session = agent.open()
        answer, before = agent.answer(agent.prompt(session, "anything"))
        assert (texts(before), answer["result"]) == ("ok", {"stopReason": "end_turn"})
        answer, _ = agent.answer(agent.request("x/unknown"))
        assert answer["error"]["code"] == -32601
        answer, _ = agent.answer(agent.prompt("nobody", "anything"))
        assert answer["error"]["code"] == -32002
        answer, _ = agent.answer(
            agent.request("session/load", sessionId="x", cwd="/", mcpServers=[])
        )
        assert answer["error"]["code"] == -32002
        answer, _ = agent.answer(agent.request("session/list"))
        assert answer["result"]["sessions"] == [{"sessionId": session, "cwd": "/w"}]
        for method in ("authenticate", "session/set_mode", "session/close"):
            answer, _ = agent.answer(agent.request(method, sessionId=session))
            assert answer["result"] == {}
        answer, _ = agent.answer(agent.prompt(session, "after close"))
        assert answer["error"]["code"] == -32002


def test_rules_are_tried_in_order_with_text_pattern_once_nth_and_guard(play: Play) -> None:
    script = """
ON prompt "special" ONCE
    MSG "once "
ON prompt nth=3
    MSG "third"
ON prompt ~"add (?P<left>\\d+) to (\\d+)"
    MSG "${LEFT}+${2}"
    SET LAST ${2}
ON prompt IF ${LAST} = 5
    MSG "five before: $PROMPT in $SESSION"
"""
    with play(script) as agent:
        session = agent.open()
        said = []
        for text in ("SPECIAL", "special: add 4 to 5", "special", "special", "x"):
            _, before = agent.answer(agent.prompt(session, text))
            said.append(texts(before))
        tail = f"in {session}"
        assert said == [
            "once ",
            "4+5",
            "third",
            f"five before: special {tail}",
            f"five before: x {tail}",
        ]


@pytest.mark.parametrize("option", ["a", "d", None])
def test_a_permission_branches_on_its_outcome(play: Play, option: str | None) -> None:
    script = """
ON prompt
    PERM c1 a:allow_once:"Yes, do" d:reject_once title=Write save=${DIR}/answer
    IF ${OUTCOME} = a
        MSG allowed
    ELSE
        IF ${OUTCOME} = d
            MSG denied
        ELSE
            MSG "it was ${OUTCOME}"
"""
    with play(script) as agent:
        session = agent.open()
        number = agent.prompt(session, "x")
        question = agent.message()
        assert question["params"] == {
            "sessionId": session,
            "toolCall": {"toolCallId": "c1", "title": "Write"},
            "options": [
                {"optionId": "a", "name": "Yes, do", "kind": "allow_once"},
                {"optionId": "d", "name": "D", "kind": "reject_once"},
            ],
        }
        agent.choose(question, option)
        _, before = agent.answer(number)
        assert texts(before) == {"a": "allowed", "d": "denied", None: "it was cancelled"}[option]


def test_permissions_may_be_asked_without_waiting_and_under_any_id(
    play: Play, tmp_path: Path
) -> None:
    script = """
ON prompt
    PERM c1 a:allow_once id="r1" nowait as=first
    PERM c2 a:allow_once id=${#ID} nowait as=second
    MSG "both asked "
    AWAIT second save=${DIR}/second
    AWAIT first
    MSG ${OUTCOME}
"""
    with play(script) as agent:
        session = agent.open()
        number = agent.prompt(session, "x")
        first, second, _ = agent.message(), agent.message(), agent.message()
        assert (first["id"], second["id"]) == ("r1", number)
        agent.choose(first, "a")
        agent.send(id=number, error={"code": -1, "message": "no"})
        _, before = agent.answer(number)
        assert texts(before) == "a"
        saved = json.loads((tmp_path / "second").read_text())
        assert saved == {"error": {"code": -1, "message": "no"}}


def test_an_answer_may_be_waited_for_within_a_time(play: Play) -> None:
    script = """
ON prompt
    PERM c1 a:allow_once within=0.05
    MSG ${OUTCOME}
    PERM c2 a:allow_once within=60
    MSG " ${OUTCOME}"
"""
    with play(script) as agent:
        number = agent.prompt(agent.open(), "x")
        late, _, question = agent.message(), agent.message(), agent.message()
        agent.choose(late, "a")
        agent.choose(question, "a")
        _, before = agent.answer(number)
        assert texts(before) == " a"


def test_a_block_that_waits_holds_up_neither_other_sessions_nor_reading(
    play: Play, tmp_path: Path
) -> None:
    script = """
ON prompt ~"wait for (\\S+)"
    MARK ${DIR}/waiting-${1} $SESSION
    GATE ${DIR}/${1}
    MSG "${1} came"
ON prompt "ask"
    PERM c1 a:allow_once
"""
    with play(script) as agent:
        one = agent.open()
        two, three = agent.new(), agent.new()
        first = agent.prompt(one, "wait for go")
        second = agent.prompt(two, "ask")
        assert kind_of(agent.message()) == "session/request_permission"
        answer, before = agent.answer(agent.prompt(three, "x"))
        assert (texts(before), answer["result"]["stopReason"]) == ("ok", "end_turn")
        assert (tmp_path / "waiting-go").read_text() == one
        (tmp_path / "go").touch()
        _, before = agent.answer(first)
        assert texts(before) == "go came"
        agent.send(id=0, result={"outcome": {"outcome": "cancelled"}})
        agent.answer(second)


CANCELS: dict[str, tuple[str, list[str], Message]] = {
    "default": ("", [], {"result": {"stopReason": "cancelled"}}),
    "replaced": (
        "ON cancel\n    MSG late\n    END cancelled",
        ["late"],
        {"result": {"stopReason": "cancelled"}},
    ),
    "error": (
        "ON cancel\n    FAIL -32603",
        [],
        {"error": {"code": -32603, "message": "Internal error"}},
    ),
    "ignored": (
        "ON cancel KEEP\n    MARK ${DIR}/go",
        ["end"],
        {"result": {"stopReason": "end_turn"}},
    ),
}


@pytest.mark.parametrize("name", CANCELS)
def test_a_cancel_ends_the_turn_or_does_what_the_rule_says(play: Play, name: str) -> None:
    rule, said, body = CANCELS[name]
    script = f"ON prompt\n    MSG begin\n    GATE ${{DIR}}/go\n    MSG end\n{rule}\n"
    with play(script) as agent:
        session = agent.open()
        number = agent.prompt(session, "x")
        agent.until("agent_message_chunk")
        agent.cancel(session)
        answer, before = agent.answer(number)
        assert [texts([message]) for message in before] == said
        assert {key: answer[key] for key in body} == body


def test_the_linear_part_may_take_a_cancel_and_answer_a_prompt_much_later(play: Play) -> None:
    script = """
NEW s1
PROMPT as=p1
MSG a
CANCEL
PROMPT as=p2
MSG b
END cancelled for=p1
END end_turn for=p2
END refusal for=p2
END end_turn id=999
"""
    with play(script) as agent:
        agent.open()
        first = agent.prompt("s1", "x")
        agent.until("agent_message_chunk")
        agent.cancel("s1")
        second = agent.prompt("s1", "y")
        answers = [agent.message() for _ in range(5)][1:]
        assert [(a["id"], a["result"]["stopReason"]) for a in answers] == [
            (first, "cancelled"),
            (second, "end_turn"),
            (second, "refusal"),
            (999, "end_turn"),
        ]


def test_a_cancelled_turn_of_the_linear_part_goes_on_with_the_next_step_that_receives(
    play: Play,
) -> None:
    script = "NEW s1\nPROMPT\nMSG a\nGATE ${DIR}/never\nMSG never\nPROMPT\n    MSG b\n"
    with play(script) as agent:
        agent.open()
        number = agent.prompt("s1", "x")
        agent.until("agent_message_chunk")
        agent.cancel("s1")
        answer, _ = agent.answer(number)
        assert answer["result"]["stopReason"] == "cancelled"
        _, before = agent.answer(agent.prompt("s1", "y"))
        assert texts(before) == "b"


def test_a_noanswer_leaves_the_prompt_open_until_it_is_cancelled(play: Play) -> None:
    with play("ON prompt\n    MSG a\n    NOANSWER\n") as agent:
        session = agent.open()
        number = agent.prompt(session, "x")
        agent.until("agent_message_chunk")
        agent.cancel(session)
        answer, _ = agent.answer(number)
        assert answer["result"]["stopReason"] == "cancelled"


def test_raw_bytes_batches_and_line_ends_are_written_as_they_are(play: Play) -> None:
    script = """
EOL crlf
RAW "Loaded\\n\\n"
RAW "\\x1b]0;title\\x07\\xff\\u20ac"
INIT
NEW s1
PROMPT
BATCH unterminated
    MSG "a\\u2028b\\u0085"
    RAW "noise\\n" times=3
    END end_turn
"""
    with play(script) as agent:
        agent.request("initialize")
        agent.request("session/new")
        lines = [agent.line() for _ in range(4)]
        assert lines[:2] == [b"Loaded\n", b"\n"]
        assert lines[2] is not None
        assert lines[2].startswith(b'\x1b]0;title\x07\xff\xe2\x82\xac{"jsonrpc"')
        assert lines[2].endswith(b"}\r\n")
        agent.prompt("s1", "x")
        chunk = agent.line()
        assert chunk is not None
        assert "a\u2028b\u0085".encode() in chunk
        assert [agent.line() for _ in range(3)] == [b"noise\n"] * 3
        agent.end()
        assert agent.lines[-1] == b'{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}\r'


def test_an_answer_may_go_under_a_wrong_id_and_an_error_to_a_notification(play: Play) -> None:
    script = """
RECV initialize as=hello
ANSWER {"protocolVersion": 1} id="${ID}"
ANSWER {"protocolVersion": 1} id=999
ANSWER {"protocolVersion": 1} for=hello
ON x/n
    FAIL -32600 "not a request"
"""
    with play(script) as agent:
        agent.request("initialize")
        assert [agent.message()["id"] for _ in range(3)] == ["0", 999, 0]
        agent.send(method="x/n")
        assert agent.wait() == 2
        assert b"test.script:7: there is no request to answer" in agent.stderr()


def test_a_tool_call_may_grow_and_a_line_may_be_broken_in_any_way(play: Play) -> None:
    script = """
ON prompt
    REPEAT 3
        SET LINES "${LINES}line ${I}\\n" scope=block
        UPD c1 in_progress content=${LINES} title=null
    RAW '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${SESSION}","update":'
    RAW '{"sessionUpdate":"x","t":"\\xe2'
    RAW '\\x82\\xac\\\\ud800"}}}\\n'
"""
    with play(script) as agent:
        session = agent.open()
        number = agent.prompt(session, "x")
        grown = [agent.message()["params"]["update"] for _ in range(3)]
        assert grown[2]["content"][0]["content"]["text"] == "line 1\nline 2\nline 3\n"
        assert grown[2]["title"] is None
        line = agent.line()
        assert line is not None
        assert line.endswith(b'"t":"\xe2\x82\xac\\ud800"}}}\n')
        agent.answer(number)


def test_any_message_update_and_notification_can_be_sent(play: Play) -> None:
    script = """
ON new
    UPDATE {"sessionUpdate": "early"} session=s9
    NEW s9
    NOTIFY x/n {"cwd": "${CWD}"}
    UPDATE [1]
    SEND {"jsonrpc": "2.0", "id": null,
          "error": {"code": -32700, "message": "parse"}}
"""
    with play(script) as agent:
        agent.request("initialize")
        agent.request("session/new", cwd="/home", mcpServers=[])
        messages = [agent.message() for _ in range(6)][1:]
        assert [message.get("params", message) for message in messages] == [
            {"sessionId": "s9", "update": {"sessionUpdate": "early"}},
            {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s9"}},
            {"cwd": "/home"},
            {"sessionId": "s9", "update": [1]},
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "parse"}},
        ]


def test_a_request_to_the_host_keeps_its_answer(play: Play, tmp_path: Path) -> None:
    script = """
FIRSTID 7
ON prompt
    ASK elicitation/create {"mode": "form"} id="a1" save=${DIR}/asked
    ASK x/unknown
    MSG "${OUTCOME}: ${ANSWER}"
"""
    with play(script) as agent:
        number = agent.prompt(agent.open(), "x")
        first = agent.message()
        assert (first["id"], first["params"]) == ("a1", {"mode": "form"})
        agent.send(id="a1", error={"code": -32601, "message": "no"})
        assert agent.message()["id"] == 7
        agent.send(id="7", result={})  # another id than 7
        agent.send(id=7, result={"x": 1})
        _, before = agent.answer(number)
        assert texts(before) == 'ok: {"result":{"x":1}}'
        assert json.loads((tmp_path / "asked").read_text())["error"]["code"] == -32601


@pytest.mark.parametrize("kept", [True, False])
def test_a_store_lets_a_later_process_load_replay_and_recall(
    play: Play, tmp_path: Path, kept: bool
) -> None:
    script = """
ON prompt "first"
    RECALL first
ON prompt
    MSG "you "
    MSG "said ${PROMPT}"
    REMEMBER {"sessionUpdate": "plan", "entries": []}
    MSG " aside" memory=no
    THOUGHT "gone"
    FORGET
    MSG "kept"
"""
    store = ("--store", str(tmp_path / "store")) if kept else ()
    with play(script, *store) as agent:
        session = agent.open("/one")
        agent.answer(agent.prompt(session, "my name is Ada"))
        agent.process.kill()
    with play(script, *store) as agent:
        agent.answer(agent.request("initialize"))
        number = agent.request("session/load", sessionId=session, cwd="/two", mcpServers=[])
        answer, replay = agent.answer(number)
        if not kept:
            assert answer["error"]["code"] == -32002
            return
        assert answer["result"] == {}
        assert [
            (kind_of(message), message["params"]["update"]["content"]["text"]) for message in replay
        ] == [("user_message_chunk", "my name is Ada"), ("agent_message_chunk", "kept")]
        _, before = agent.answer(agent.prompt(session, "what did I say first?"))
        assert texts(before) == "my name is Ada"


def test_load_can_be_scripted_with_steps_an_answer_or_an_error(play: Play) -> None:
    script = """
LOAD s1
    USER hi
    MSG one
LOAD s2
    ANSWER null
LOAD s3
    FAIL -32603 "Internal error" {"details": "Invalid session identifier"}
RESUME s4
ON load
    USER other
    REPLAY last=1
    DISOWN
"""
    with play(script) as agent:
        agent.answer(agent.request("initialize"))
        seen = []
        for session in ("s1", "s2", "s3"):
            number = agent.request("session/load", sessionId=session, cwd="/", mcpServers=[])
            answer, before = agent.answer(number)
            seen.append((answer.get("result", answer.get("error")), [kind_of(m) for m in before]))
        details = {"details": "Invalid session identifier"}
        assert seen == [
            ({}, ["user_message_chunk", "agent_message_chunk"]),
            (None, []),
            ({"code": -32603, "message": "Internal error", "data": details}, []),
        ]
        answer, _ = agent.answer(agent.request("session/resume", sessionId="s4", cwd="/"))
        assert answer["result"] == {}
        answer, _ = agent.answer(agent.prompt("s1", "x"))
        assert answer["result"]["stopReason"] == "end_turn"
        number = agent.request("session/load", sessionId="s5", cwd="/", mcpServers=[])
        answer, before = agent.answer(number)
        assert answer["result"] == {}
        assert [kind_of(message) for message in before] == ["user_message_chunk"] * 2
        answer, _ = agent.answer(agent.prompt("s5", "x"))
        assert answer["error"]["code"] == -32002


def test_repeat_do_add_and_session_compose(play: Play) -> None:
    script = """
DEFINE greet
    MSG "${NAME}${I}/${I0} "
ON prompt
    REPEAT 2
        DO greet NAME=n
        ADD COUNT 3
    UPDATE {"sessionUpdate": "usage_update", "used": "${#COUNT}", "size": 10}
    SET WHERE process scope=process
    SET WHERE block scope=block
    MSG ${WHERE}
    SESSION other
    MSG elsewhere
"""
    with play(script) as agent:
        session = agent.open()
        _, before = agent.answer(agent.prompt(session, "x"))
        assert texts(before[:2]) == "n1/0 n2/1 "
        assert before[2]["params"]["update"]["used"] == 6
        assert texts(before[3:4]) == "block"
        assert before[4]["params"]["sessionId"] == "other"


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ("FLOOD 2500", None),
        ("BIG 70K", "x" * 70 * 1024),
        ("BIG 3 ab", "ababab"),
    ],
)
def test_floods_and_big_messages_arrive_whole(play: Play, steps: str, text: str | None) -> None:
    with play(f"ON prompt\n    {steps}\n") as agent:
        session = agent.open()
        _, before = agent.answer(agent.prompt(session, "x"))
        expected = "".join(f"tok{n % 1000:03d} " for n in range(2500)) if text is None else text
        assert texts(before) == expected


def test_paced_chunks_say_when_they_were_written(play: Play) -> None:
    with play("ON prompt\n    PACED 3 1.5\n") as agent:
        _, before = agent.answer(agent.prompt(agent.open(), "x"))
        moments = [int(texts([message])) for message in before]
        assert moments == sorted(moments)
        assert moments[2] - moments[0] >= 3_000_000


@pytest.mark.parametrize(
    ("step", "code"), [("EXIT 127", 127), ("KILL", -9), ("KILL TERM", -15), ("EXPECT a = b", 3)]
)
def test_the_process_can_end_in_many_ways(play: Play, step: str, code: int) -> None:
    with play(f'ON prompt\n    ERR "npm ERR!\\xe9\\n" times=2\n    {step}\n') as agent:
        agent.prompt(agent.open(), "x")
        assert agent.wait() == code
        assert agent.stderr().startswith(b"npm ERR!\xe9\nnpm ERR!\xe9\n")


def test_stdout_and_stdin_can_be_closed_while_it_runs_on(play: Play, tmp_path: Path) -> None:
    script = """
ON prompt "out"
    CLOSE stdout
    MSG "into the void"
    MARK ${DIR}/closed
    GATE ${DIR}/go
    EXIT 5
ON prompt "in"
    CLOSE stdin
    MSG "still here"
"""
    with play(script) as agent:
        session = agent.open()
        agent.prompt(session, "in")
        assert texts(agent.until("agent_message_chunk")) == "still here"
        agent.message()
        assert agent.process.stdin is not None
        with pytest.raises(BrokenPipeError):  # noqa: PT012 - the pipe breaks once it is closed
            while True:
                agent.prompt(session, "x" * 1000)
    with play(script) as agent:
        agent.prompt(agent.open(), "out")
        assert agent.line() is None
        (tmp_path / "go").touch()
        assert agent.process.wait(10) == 5


@pytest.mark.parametrize("flags", ["", "setsid ignore-term hold"])
def test_a_spawned_child_says_its_pid_and_outlives_its_parent(
    play: Play, tmp_path: Path, flags: str
) -> None:
    script = f"ON prompt\n    SPAWN ${{DIR}}/pid {flags}\n    GATE ${{DIR}}/pid\n    MSG up\n"
    with play(script) as agent:
        agent.answer(agent.prompt(agent.open(), "x"))
        pid = int((tmp_path / "pid").read_text())
        try:
            assert (os.getsid(pid) == pid) == bool(flags)
            agent.process.kill()
            agent.process.wait(10)
            assert os.getpgid(pid) in (pid, agent.process.pid)
            assert agent.process.stderr is not None
            ended, _, _ = select.select([agent.process.stderr], [], [], 0)
            assert bool(ended) == (not flags)  # with hold there is still a writer
        finally:
            os.kill(pid, signal.SIGKILL)


def test_it_can_leave_stdin_alone_and_take_it_up_again(play: Play, tmp_path: Path) -> None:
    script = """
ON prompt "stop"
    STOPREADING
    MSG stopped
    GATE ${DIR}/go
    NOTE "going on"
    READ
"""
    with play(script) as agent:
        session = agent.open()
        first = agent.prompt(session, "stop")
        agent.until("agent_message_chunk")
        second = agent.prompt(session, "x")
        (tmp_path / "go").touch()
        for number in (first, second):
            answer, _ = agent.answer(number)
            assert answer["result"]["stopReason"] == "end_turn"
    *_, note, prompt = recorded(tmp_path / "record")
    assert (note["note"], prompt["read"]["id"]) == ("going on", second)


def test_a_frozen_process_answers_nothing_and_ends_by_a_signal_only(play: Play) -> None:
    with play("ON prompt\n    FREEZE\n") as agent:
        session = agent.open()
        agent.prompt(session, "x")
        agent.prompt(session, "y")
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        agent.process.terminate()
        assert agent.wait() == -15
        assert len(agent.lines) == 2


def test_the_end_of_stdin_can_be_survived_drained_or_obeyed(play: Play, tmp_path: Path) -> None:
    script = "ON prompt\n    MSG a\n    GATE ${DIR}/go\n    MARK ${DIR}/done\n"
    with play(script) as agent:
        agent.prompt(agent.open(), "x")
        agent.until("agent_message_chunk")
        assert agent.end() == 0
    assert not (tmp_path / "done").exists()
    with play(script + "ON eof\n    MARK ${DIR}/go\n    DRAIN\n") as agent:
        agent.prompt(agent.open(), "x")
        agent.until("agent_message_chunk")
        assert agent.end() == 0
    assert (tmp_path / "done").exists()
    with play("IGNORE TERM INT\nON eof\n    MARK ${DIR}/eof\n    STAY\n") as agent:
        agent.open()
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        agent.process.terminate()
        agent.process.send_signal(signal.SIGKILL)
        assert agent.wait() == -9


def test_sigterm_can_be_a_rule(play: Play) -> None:
    with play("ON term\n    EXIT 9\n") as agent:
        agent.open()
        agent.process.terminate()
        assert agent.wait() == 9


def test_lines_that_are_no_object_are_an_event(play: Play, tmp_path: Path) -> None:
    with play('ON garbage ~"^\\["\n    EXIT 1\nON garbage\n    NOTE "odd: ${LINE}"\n') as agent:
        agent.open()
        agent.write(b"not json\n\n[]\n")
        assert agent.wait() == 1
    lines = recorded(tmp_path / "record")
    assert [line["note"] for line in lines if "note" in line] == ["odd: not json"]
    assert [line["garbage"] for line in lines if "garbage" in line] == ["not json", "[]"]


def test_the_record_holds_every_message_in_order(play: Play, tmp_path: Path) -> None:
    with play("") as agent:
        session = agent.open()
        agent.answer(agent.prompt(session, "hello"))
        lines = recorded(tmp_path / "record")
        assert {line["pid"] for line in lines} == {agent.process.pid}
    assert "started" in lines[0]
    assert [line["read"]["method"] for line in lines[1:]] == [
        "initialize",
        "session/new",
        "session/prompt",
    ]


VIOLATIONS: dict[str, Callable[[FakeAgent, str], object]] = {
    "one-prompt": lambda agent, session: (agent.prompt(session, "a"), agent.prompt(session, "b")),
    "one-load": lambda agent, session: agent.request("session/load", sessionId=session, cwd="/"),
    "running-cancel": lambda agent, session: agent.cancel(session),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violated_expectation_is_recorded_and_ends_the_process(
    play: Play, tmp_path: Path, name: str
) -> None:
    with play(f"EXPECT {name}\nON prompt\n    STAY\n") as agent:
        session = agent.open()
        VIOLATIONS[name](agent, session)
        assert agent.wait() == 3
    assert session in recorded(tmp_path / "record")[-1]["violation"]


@pytest.mark.parametrize(
    ("servers", "fault"),
    [
        ([{"name": "m", "command": "/bin/m", "args": [], "env": []}], None),
        ([{"type": "http", "name": "m", "url": "http://127.0.0.1", "headers": []}], None),
        ([{"name": "m", "command": "/bin/m", "args": [], "env": {"A": "b"}}], "mcpServers[0].env"),
        ([{"name": "m", "command": "m", "args": [], "env": []}], "mcpServers[0].command"),
        (None, "mcpServers"),
    ],
)
def test_a_strict_agent_refuses_mcp_servers_of_the_wrong_shape(
    play: Play, servers: object, fault: str | None
) -> None:
    with play("EXPECT mcp-arrays\n") as agent:
        answer, _ = agent.answer(agent.request("session/new", cwd="/", mcpServers=servers))
        if fault is None:
            assert "result" in answer
        else:
            assert answer["error"]["code"] == -32602
            assert answer["error"]["message"].startswith(fault)


def test_a_script_may_bring_words_of_its_own(play: Play, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(
        "from acphost.demo.script import Word\n"
        "from acphost.demo.stage import Verb\n"
        'VERBS = [Verb(Word("SHOUT", "SHOUT TEXT", "loud", 1, 1),\n'
        '    lambda stage, step: stage.notify("shout", stage.text(step, 0).upper()))]\n'
    )
    with play("WORDS more.py\nON prompt\n    SHOUT hey\n") as agent:
        _, before = agent.answer(agent.prompt(agent.open(), "x"))
        assert before[0]["params"] == "HEY"


def test_a_mistake_in_a_script_is_told_with_file_and_line_before_anything_is_read(
    play: Play, tmp_path: Path
) -> None:
    with play("INIT\nPROMPT\n    MSGG x\n") as agent:
        assert agent.wait() == 2
        where = f"{tmp_path}/test.script:3:"
        assert agent.stderr().decode().startswith(f"acphost fake-agent: {where} 'MSGG'")


def test_a_mistake_that_shows_only_when_played_is_told_with_file_and_line(
    play: Play, tmp_path: Path
) -> None:
    with play("ON prompt\n    PAUSE soon\n") as agent:
        agent.prompt(agent.open(), "x")
        assert agent.wait() == 2
        assert f"{tmp_path}/test.script:2: 'SOON' is not a number" in agent.stderr().decode()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[FakeAgent]:
    with playing(ACPHOST_DEMO_STORE=str(tmp_path / "demo")) as agent:
        yield agent


def test_the_demo_agent_shows_a_thought_a_plan_a_tool_call_and_a_question(demo: FakeAgent) -> None:
    session = demo.open()
    number = demo.prompt(session, "please ask for permission")
    messages = demo.until("session/request_permission")
    demo.choose(messages[-1], "allow_once")
    answer, rest = demo.answer(number)
    assert [kind_of(message) for message in messages + rest] == [
        "agent_thought_chunk",
        "plan",
        "tool_call",
        "session/request_permission",
        "tool_call_update",
        "tool_call_update",
        "plan",
        *["agent_message_chunk"] * 3,
    ]
    assert answer["result"]["stopReason"] == "end_turn"


def test_the_demo_agent_cancels_at_once_and_remembers_after_a_restart(
    demo: FakeAgent, tmp_path: Path
) -> None:
    session = demo.open()
    number = demo.prompt(session, "slow please")
    demo.until("agent_message_chunk")
    demo.cancel(session)
    answer, _ = demo.answer(number)
    assert answer["result"]["stopReason"] == "cancelled"
    assert demo.end() == 0
    with playing(ACPHOST_DEMO_STORE=str(tmp_path / "demo")) as later:
        later.answer(later.request("initialize"))
        later.answer(later.request("session/load", sessionId=session, cwd="/w", mcpServers=[]))
        _, before = later.answer(later.prompt(session, "do you remember?"))
        assert texts(before) == "You began with: slow please"


def test_help_prints_every_step_word() -> None:
    with playing("--help") as agent:
        assert agent.wait() == 0
        text = b"".join(agent.lines).decode()
    for word in ("INIT", "PERM", "SPAWN", "RECALL", "EXPECT"):
        assert f"\n  {word}" in text
    assert sys.executable not in text
