"""The profiles of Hermes and Reasonix behave as the recorded agents did."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent, Message, kind_of, playing, texts

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROFILES = {"hermes": "hermes-0.19", "reasonix": "reasonix-1.38"}
TRANSCRIPTS = sorted(path.stem for path in (FIXTURES / "transcripts").glob("*-*.jsonl"))


def label(message: Message) -> str:
    """What counts of a message when two conversations are compared."""
    if "error" in message:
        return f"{message['id']}: error {message['error']['code']}"
    if "method" not in message:
        return f"{message['id']}: {message['result'].get('stopReason', 'result')}"
    if message["method"].endswith("status_update"):
        params = message["params"]
        return f"{params['event']} {params['status']['phase']} {params['status']['state']}"
    if message["method"] == "session/request_permission":
        params = message["params"]
        options = [(option["optionId"], option["kind"]) for option in params["options"]]
        return f"{message['id']}: {params['toolCall']['toolCallId']} {options}"
    update = message["params"]["update"]
    return f"{kind_of(message)} {update.get('status', '')}".strip()


def shape(messages: list[Message]) -> list[str]:
    """The labels in order; a run of equal ones counts once, and a title may come at any time."""
    labels = [found for found in map(label, messages) if found != "session_info_update"]
    return [one for n, one in enumerate(labels) if n == 0 or labels[n - 1] != one]


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_profile_answers_a_recorded_host_as_the_recorded_agent_did(name: str) -> None:
    path = FIXTURES / "transcripts" / f"{name}.jsonl"
    entries: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    expected: list[Message] = []
    seen: list[Message] = []
    sessions: dict[str, str] = {}

    with playing("--profile", PROFILES[name.partition("-")[0]]) as agent:

        def catch_up() -> None:
            """Read until as much has been said as in the recording."""
            while len(shape(seen)) < len(shape(expected)):
                seen.append(agent.message())
            old, new = opened(expected), opened(seen)
            sessions.update(zip(old, new, strict=False))

        for entry in entries:
            if entry["dir"] == "out":
                expected.append(entry["message"])
                continue
            catch_up()
            line = json.dumps(entry["message"])
            for recorded, ours in sessions.items():
                line = line.replace(recorded, ours)
            agent.write(line.encode() + b"\n")
        catch_up()
    assert shape(seen) == shape(expected)


def opened(messages: list[Message]) -> list[str]:
    """The ids of the sessions these messages opened."""
    results = [message.get("result") for message in messages]
    return [result["sessionId"] for result in results if result and "sessionId" in result]


@pytest.fixture
def hermes() -> Iterator[FakeAgent]:
    with playing("--profile", "hermes-0.19") as agent:
        yield agent


@pytest.fixture
def reasonix() -> Iterator[FakeAgent]:
    with playing("--profile", "reasonix-1.38") as agent:
        yield agent


def load(agent: FakeAgent, session: str) -> tuple[Message, list[Message]]:
    return agent.answer(agent.request("session/load", sessionId=session, cwd="/w", mcpServers=[]))


def test_hermes_answers_a_cancel_during_a_permission_with_an_error_and_is_wedged(
    hermes: FakeAgent,
) -> None:
    session = hermes.open()
    number = hermes.prompt(session, 'write_file {"path":"/w/x"}')
    hermes.until("session/request_permission")
    hermes.cancel(session)
    answer, _ = hermes.answer(number)
    assert answer["error"]["code"] == -32603
    for queued in (1, 2):
        answer, before = hermes.answer(hermes.prompt(session, "say 1"))
        assert texts(before) == f"Queued for the next turn. ({queued} queued)"
        assert answer["result"] == {"stopReason": "end_turn"}
    load(hermes, session)
    _, before = hermes.answer(hermes.prompt(session, "say 1"))
    assert texts(before).startswith("Queued")
    answer, _ = hermes.answer(hermes.prompt(hermes.new(), "say 1"))
    assert "usage" in answer["result"]


def test_hermes_counts_usage_up_and_asks_under_ids_of_the_process(hermes: FakeAgent) -> None:
    totals, questions = [], []
    one = hermes.open()
    for session in (one, one, hermes.new()):
        number = hermes.prompt(session, 'write_file {"path":"/w/x"}')
        question = hermes.until("session/request_permission")[-1]
        questions.append((question["id"], question["params"]["toolCall"]["toolCallId"]))
        hermes.choose(question, "deny")
        answer, rest = hermes.answer(number)
        assert "tool_call_update" not in map(kind_of, rest)
        totals.append(answer["result"]["usage"]["totalTokens"])
    assert totals == [10727, 21454, 10727]
    assert questions == [(0, "edit-approval-1"), (1, "edit-approval-2"), (2, "edit-approval-3")]


def test_hermes_replays_other_tool_ids_and_the_updates_it_left_out(hermes: FakeAgent) -> None:
    session = hermes.open()
    _, live = hermes.answer(hermes.prompt(session, 'read_file {"path":"/w/x"}'))
    answer, replay = load(hermes, session)
    calls = [m["params"]["update"] for m in live + replay if kind_of(m).startswith("tool_call")]
    assert [call["sessionUpdate"] for call in calls] == [
        "tool_call",
        "tool_call",
        "tool_call_update",
    ]
    assert calls[0]["toolCallId"].startswith("tc-")
    assert calls[1]["toolCallId"].startswith("call_")
    assert calls[1]["toolCallId"] == calls[2]["toolCallId"]
    assert "modes" in answer["result"]


def test_hermes_ends_on_json_that_is_no_object_and_only_on_that(hermes: FakeAgent) -> None:
    hermes.open()
    hermes.write(b"hello\n")
    hermes.new()
    hermes.write(b"[]\n")
    assert hermes.wait() == 1


def test_hermes_finishes_its_turn_unheard_when_stdin_ends(hermes: FakeAgent) -> None:
    hermes.prompt(hermes.open(), "say 5 20")
    hermes.until("agent_message_chunk")
    assert hermes.end() == 0
    assert not any(b"stopReason" in line for line in hermes.lines)


def test_hermes_can_freeze_as_a_whole() -> None:
    with playing("--profile", "hermes-0.19", "--set", "FREEZE=yes") as agent:
        session = agent.open()
        agent.prompt(session, 'terminal {"command":"sleep 20"}')
        agent.until("tool_call")
        agent.answer(agent.prompt(session, "say 1"))
        agent.cancel(session)
        agent.prompt(session, "say 1")
        os.kill(agent.process.pid, signal.SIGTERM)
        assert agent.wait() == -15


def test_a_later_hermes_restores_a_session_that_is_prompted_without_a_load(tmp_path: Path) -> None:
    with playing("--profile", "hermes-0.19", "--store", str(tmp_path)) as agent:
        session = agent.open()
        agent.answer(agent.prompt(session, "say 1"))
    with playing("--profile", "hermes-0.19", "--store", str(tmp_path)) as agent:
        _, before = agent.answer(agent.prompt(session, "recall"))
        assert texts(before) == "say 1"


def test_a_later_reasonix_replays_but_has_lost_settings_and_cancelled_text(tmp_path: Path) -> None:
    arguments = ("--profile", "reasonix-1.38", "--store", str(tmp_path))
    with playing(*arguments) as agent:
        session = agent.open()
        agent.answer(agent.request("session/set_mode", sessionId=session, modeId="plan"))
        number = agent.prompt(session, "slow 100 20")
        agent.until("agent_message_chunk")
        agent.cancel(session)
        answer, _ = agent.answer(number)
        assert answer["result"] == {"stopReason": "cancelled"}
        answer, _ = agent.answer(agent.prompt(session, "say 1"))
    with playing(*arguments) as agent:
        agent.answer(agent.request("initialize"))
        answer, replay = load(agent, session)
        assert answer["result"]["modes"]["currentModeId"] == "normal"
        said = [message["params"]["update"]["content"]["text"] for message in replay]
        assert said[0].startswith("<session-context")
        assert said[1:] == ["slow 100 20", "say 1", "tok0"]
        after = [agent.message(), agent.message()]
        assert [kind_of(message) for message in after] == ["available_commands_update", "plan"]
        _, turn = agent.answer(agent.prompt(session, "recall"))
        assert turn[0]["params"]["sequence"] == 1
        assert texts(turn) == "slow 100 20"


def test_reasonix_refuses_a_second_prompt_and_does_not_remember_it(reasonix: FakeAgent) -> None:
    session = reasonix.open()
    first = reasonix.prompt(session, "http 500")
    reasonix.until("_reasonix.io/session/status_update")
    answer, _ = reasonix.answer(reasonix.prompt(session, "say 1"))
    assert answer["error"]["code"] == -32600
    reasonix.cancel(session)
    answer, _ = reasonix.answer(first)
    assert answer["result"]["stopReason"] == "cancelled"
    _, replay = load(reasonix, session)
    assert [message["params"]["update"]["content"]["text"] for message in replay[1:]] == [
        "http 500"
    ]


def test_reasonix_counts_its_questions_by_session(reasonix: FakeAgent) -> None:
    seen = []
    one = reasonix.open()
    for session in (one, one, reasonix.new()):
        reasonix.answer(
            reasonix.request(
                "session/set_config_option",
                sessionId=session,
                configId="tool_approval",
                value="read-only",
            )
        )
        number = reasonix.prompt(session, 'tool bash {"command":"ls"}')
        question = reasonix.until("session/request_permission")[-1]
        seen.append((question["id"], question["params"]["toolCall"]["toolCallId"]))
        reasonix.choose(question, None)
        answer, rest = reasonix.answer(number)
        assert answer["result"]["stopReason"] == "end_turn"
        assert rest[0]["params"]["update"]["status"] == "failed"
    assert seen == [(1, "gate-1"), (2, "gate-2"), (3, "gate-1")]


def test_reasonix_answers_open_turns_when_stdin_ends(reasonix: FakeAgent) -> None:
    session = reasonix.open()
    reasonix.prompt(session, 'tool bash {"command":"sleep 9"}')
    reasonix.until("tool_call")
    assert reasonix.end() == 0
    assert json.loads(reasonix.lines[-1])["result"] == {"stopReason": "cancelled"}


def test_reasonix_answers_garbage_and_lists_what_is_live_here(reasonix: FakeAgent) -> None:
    session = reasonix.open()
    reasonix.write(b"[1]\n")
    assert reasonix.until("answer")[-1]["error"]["code"] == -32700
    answer, _ = reasonix.answer(reasonix.request("session/list"))
    assert answer["result"]["sessions"] == [{"sessionId": session, "cwd": "/w"}]


def test_the_flood_profile_floods_paces_and_grows(tmp_path: Path) -> None:
    with playing("--profile", "flood") as agent:
        session = agent.open()
        _, before = agent.answer(agent.prompt(session, "flood 1001"))
        assert texts(before[-1:]) == "tok000 "
        assert len(before) == 1001
        _, before = agent.answer(agent.prompt(session, "paced 2 0.1"))
        assert [text.isdecimal() for text in (texts([m]) for m in before)] == [True, True]
        _, before = agent.answer(agent.prompt(session, "big 64K"))
        assert len(texts(before)) == 65536


def test_hermes_does_not_wait_for_an_answer_for_ever() -> None:
    """Unanswered for its time it is denied; the turn goes on, and a late yes changes nothing."""
    with playing("--profile", "hermes-0.19", "--set", "PATIENCE=0.2") as agent:
        session = agent.open()
        for text in ('write_file {"path":"/w/x"}', 'terminal {"command":"rm x"}'):
            number = agent.prompt(session, text)
            question = agent.until("session/request_permission")[-1]
            answer, rest = agent.answer(number)
            assert answer["result"]["stopReason"] == "end_turn"
            assert "denied" in texts(rest) or "blocked" in texts(rest)
            agent.choose(question, "allow_once")
            answer, rest = agent.answer(agent.prompt(session, "say 1"))
            assert texts(rest) == "tok0 "


def test_hermes_works_at_four_turns_at_once(hermes: FakeAgent, tmp_path: Path) -> None:
    """The fifth waits for one to end; stopped while it waits, it fails when its turn comes."""
    gates = [tmp_path / str(number) for number in range(4)]
    session = hermes.open()
    others = [session, *(hermes.new() for _ in range(5))]
    running = [hermes.prompt(one, f"gate {gate}") for one, gate in zip(others, gates, strict=False)]
    for _ in running:
        hermes.until("agent_message_chunk")
    fifth, sixth = hermes.prompt(others[4], "say 1"), hermes.prompt(others[5], "say 1")
    _, before = hermes.answer(hermes.request("session/list"))
    assert not {kind_of(message) for message in before} & {"agent_message_chunk", "answer"}
    hermes.cancel(others[5])
    _, before = hermes.answer(hermes.request("session/list"))
    assert "answer" not in map(kind_of, before)
    gates[0].touch()
    ended = [hermes.until("answer")[-1] for _ in range(3)]
    assert [each["id"] for each in ended[:2]] == [running[0], fifth]
    assert ended[2]["id"] == sixth
    assert ended[2]["error"]["code"] == -32603


ASK = (
    '[[tool ask {"questions": [{"header": "C", "question": "Colour?", "options": [{"label": "Red",'
    ' "description": "r"}, {"label": "Blue", "description": "b"}]}, {"header": "S", "question": '
    '"Size?", "options": [{"label": "Big", "description": "b"}]}]} ;; say 2]]'
)


def test_reasonix_asks_the_user_question_by_question(reasonix: FakeAgent) -> None:
    """Under ids that count the calls of the session; cancelling one fails the whole prompt."""
    session = reasonix.open()
    number = reasonix.prompt(session, ASK)
    seen = []
    for option in ("q1:2", "q2:1"):
        question = reasonix.until("session/request_permission")[-1]
        seen.append(question["params"]["toolCall"]["toolCallId"])
        options = question["params"]["options"]
        assert {each["kind"] for each in options[:-1]} == {"allow_once"}
        assert options[-1]["kind"] == "reject_once"
        reasonix.choose(question, option)
    answer, rest = reasonix.answer(number)
    assert answer["result"]["stopReason"] == "end_turn"
    said = rest[0]["params"]["update"]
    assert said["status"] == "completed"
    assert "C: Blue\n- S: Big" in said["content"][0]["content"]["text"]

    number = reasonix.prompt(session, ASK)
    question = reasonix.until("session/request_permission")[-1]
    seen.append(question["params"]["toolCall"]["toolCallId"])
    reasonix.choose(question, None)
    answer, rest = reasonix.answer(number)
    assert answer["error"]["code"] == -32603
    assert rest[0]["params"]["update"]["status"] == "failed"
    assert seen == ["ask-1-q1", "ask-1-q2", "ask-2-q1"]


def test_reasonix_leaves_plan_mode_at_the_end_of_the_turn(reasonix: FakeAgent) -> None:
    session = reasonix.open()
    reasonix.answer(reasonix.request("session/set_mode", sessionId=session, modeId="plan"))
    for modes in (["normal"], []):
        answer, before = reasonix.answer(reasonix.prompt(session, f"say {len(modes) + 1}"))
        assert answer["result"] == {"stopReason": "end_turn"}
        updates = [message["params"].get("update", {}) for message in before]
        seen = [each["currentModeId"] for each in updates if "currentModeId" in each]
        assert seen == modes


def test_reasonix_pursues_a_goal_until_it_is_stopped(reasonix: FakeAgent) -> None:
    """One prompt, many answers of the model, no end of its own; then the mode is normal again."""
    session = reasonix.open()
    reasonix.answer(reasonix.request("session/set_mode", sessionId=session, modeId="goal"))
    number = reasonix.prompt(session, "make thing")
    for _ in range(4):
        reasonix.until("agent_message_chunk")
    reasonix.cancel(session)
    answer, rest = reasonix.answer(number)
    assert answer["result"] == {"stopReason": "cancelled"}
    assert rest[-1]["params"]["update"]["currentModeId"] == "normal"
    answer, _ = reasonix.answer(reasonix.prompt(session, "say 1"))
    assert answer["result"] == {"stopReason": "end_turn"}
