"""Step words that speak ACP: messages, plans, tool calls, permissions, requests."""

from acphost.demo import plain_json
from acphost.demo.books import Asked
from acphost.demo.memory import text_chunk
from acphost.demo.outlet import json_line, write_atomically
from acphost.demo.plain_json import NOTHING
from acphost.demo.script import EVERYWHERE, Step, Word
from acphost.demo.stage import Stage, Verb
from acphost.demo.tokens import JsonObject, ScriptError


def say(stage: Stage, step: Step) -> None:
    """MSG, THOUGHT, USER: one chunk of text."""
    kind = {"MSG": "agent_message_chunk", "THOUGHT": "agent_thought_chunk"}.get(
        step.word, "user_message_chunk"
    )
    stage.update(text_chunk(kind, stage.text(step, 0)))


def plan(stage: Stage, step: Step) -> None:
    """PLAN: the whole plan, one argument an entry."""
    entries = []
    for token in step.args:
        status, colon, content = token.text(stage.lookup).partition(":")
        if not colon:
            raise ScriptError(f"{step.where}: an entry is STATUS:TEXT, not {status!r}")
        entries.append({"content": content, "priority": "medium", "status": status})
    stage.update({"sessionUpdate": "plan", "entries": entries})


def tool_call(stage: Stage, step: Step) -> None:
    """CALL and UPD: a tool call, announced or changed."""
    update: JsonObject = {
        "sessionUpdate": "tool_call" if step.word == "CALL" else "tool_call_update",
        "toolCallId": stage.text(step, 0),
    }
    if step.word == "CALL" and "title" not in step.options:
        update["title"] = stage.text(step, 0)
    if len(step.args) > 1:
        update["status"] = stage.text(step, 1)
    update |= fields(stage, step)
    stage.update(update)


def fields(stage: Stage, step: Step, *, without: frozenset[str] = frozenset()) -> JsonObject:
    """The options as fields of a message; content= may be a plain text."""
    found: JsonObject = {}
    for key, token in step.options.items():
        if key in EVERYWHERE or key in without:
            continue
        value = token.value(stage.lookup)
        if key == "content" and isinstance(value, str):
            value = [{"type": "content", "content": {"type": "text", "text": value}}]
        found[key] = value
    return found


def raw_update(stage: Stage, step: Step) -> None:
    """UPDATE: a session/update with this update, whatever it is."""
    value = step.args[0].value(stage.lookup)
    if isinstance(value, dict):
        stage.update(value)
    else:
        stage.notify("session/update", {"sessionId": stage.session_id, "update": value})


_ASK_OPTIONS = frozenset({"id", "as", "save", "within"})


def _is_nowait(step: Step, index: int) -> bool:
    return len(step.args) > index and step.args[index].plain() == "nowait"


def permission(stage: Stage, step: Step) -> None:
    """PERM: ask for permission; the outcome is in ${OUTCOME}."""
    call: JsonObject = {"toolCallId": stage.text(step, 0)}
    options, nowait = [], False
    for token in step.args[1:]:
        text = token.text(stage.lookup)
        if text == "nowait":
            nowait = True
            continue
        option_id, colon, rest = text.partition(":")
        if not colon:
            raise ScriptError(f"{step.where}: an option is ID:KIND or ID:KIND:NAME, not {text!r}")
        kind, _, name = rest.partition(":")
        label = name or option_id.replace("_", " ").capitalize()
        options.append({"optionId": option_id, "name": label, "kind": kind})
    call |= fields(stage, step, without=_ASK_OPTIONS)
    params = {"sessionId": stage.session_id, "toolCall": call, "options": options}
    _ask(stage, step, "session/request_permission", params, nowait=nowait)


def ask(stage: Stage, step: Step) -> None:
    """ASK: any request to the host."""
    params = stage.object_of(step, step.args[1]) if len(step.args) > 1 else {}
    _ask(stage, step, stage.text(step, 0), params, nowait=_is_nowait(step, 2))


def _ask(stage: Stage, step: Step, method: str, params: object, *, nowait: bool) -> None:
    given = step.options["id"].value(stage.lookup) if "id" in step.options else NOTHING
    asked = stage.ask(method, params, given)
    label = stage.option(step, "as")
    if label:
        stage.host.labels[label] = asked
    if not nowait:
        _await(stage, step, asked)


def _patience(stage: Stage, step: Step) -> float | None:
    text = stage.option(step, "within")
    try:
        return float(text) if text else None
    except ValueError:
        raise ScriptError(f"{step.where}: within={text} is no number of seconds") from None


def _await(stage: Stage, step: Step, asked: Asked) -> None:
    is_answered = stage.wait(lambda: asked.answer is not None, seconds=_patience(stage, step))
    answer = (is_answered and asked.answer) or {}
    stage.values["ANSWER"] = plain_json.encode(answer).decode()
    stage.values["OUTCOME"] = _outcome(answer) if is_answered else "timeout"
    match answer:
        case {"result": {"terminalId": str() as terminal}}:
            stage.values["TERMINAL"] = terminal
    file = stage.option(step, "save")
    if file:
        write_atomically(file, json_line(answer))


def _outcome(answer: JsonObject) -> str:
    """One word for an answer: the chosen option, `cancelled`, `ok`, or `error`."""
    match answer:
        case {"result": {"outcome": {"outcome": "selected", "optionId": str(chosen)}}}:
            return chosen
        case {"result": {"outcome": {"outcome": str(outcome)}}}:
            return outcome
        case {"result": _}:
            return "ok"
    return "error"


def await_answers(stage: Stage, step: Step) -> None:
    """AWAIT: wait for what was asked with `nowait`."""
    for token in step.args:
        label = token.text(stage.lookup)
        asked = stage.host.labels.get(label)
        if not isinstance(asked, Asked):
            raise ScriptError(f"{step.where}: nothing was asked as={label}")
        _await(stage, step, asked)


_ANSWERS = frozenset({"OUTCOME", "ANSWER", "TERMINAL"})
SPEAKING = (
    Verb(Word("MSG", "MSG TEXT", "a piece of the answer", 1, 1), say),
    Verb(Word("THOUGHT", "THOUGHT TEXT", "a piece of thinking", 1, 1), say),
    Verb(Word("USER", "USER TEXT", "an echo of the user's words", 1, 1), say),
    Verb(Word("PLAN", "PLAN STATUS:TEXT …", "the whole plan", 0, None), plan),
    Verb(
        Word("CALL", "CALL ID [STATUS] [field=value …]", "announce a tool call", 1, 2, None),
        tool_call,
    ),
    Verb(
        Word("UPD", "UPD ID [STATUS] [field=value …]", "change a tool call", 1, 2, None),
        tool_call,
    ),
    Verb(
        Word(
            "PERM",
            "PERM CALL OPTION:KIND[:NAME] … [nowait] [within=SECONDS] [as=L] [id=ID] [save=FILE] "
            "[field=value …]",
            "ask for permission and wait; then ${OUTCOME} is the option, cancelled, error, or "
            "timeout",
            1,
            None,
            None,
            sets=_ANSWERS,
        ),
        permission,
    ),
    Verb(
        Word(
            "ASK",
            "ASK METHOD [{…} [nowait]] [within=SECONDS] [as=L] [id=ID] [save=FILE]",
            "ask the host anything and wait; the answer is in ${ANSWER} and the file",
            1,
            3,
            _ASK_OPTIONS,
            sets=_ANSWERS,
        ),
        ask,
    ),
    Verb(
        Word(
            "AWAIT",
            "AWAIT LABEL … [save=FILE]",
            "wait for the answer to something asked with nowait",
            1,
            None,
            frozenset({"save"}),
        ),
        await_answers,
    ),
    Verb(Word("UPDATE", "UPDATE JSON", "a session/update, whatever is in it", 1, 1), raw_update),
)
